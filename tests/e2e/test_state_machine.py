"""Whatever is asked in whatever order, killed and restarted in between, a real sidecar holds what the rules say."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import maintenance_service_pb2 as maintenance
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.client import DataFolder, Sidecar, stop
from sidecar.errors import EmbedderUnavailableError, SidecarError
from tests.e2e.memory_model import DisputeEntry, Entry, MemoryModel
from tests.e2e.running import running_sidecar, wait_until_embedded

Answer = TypeVar("Answer")
Remembered = tuple[pb.RememberRequest, pb.RememberResponse]
Forgotten = tuple[pb.ForgetMemoriesRequest, pb.ForgetMemoriesResponse]

OWN: Final = "project:tested"
NAMESPACES: Final = (OWN, "global", "project:elsewhere")
SCOPES: Final = {"": NAMESPACES[:2], "*": NAMESPACES, **{name: (name,) for name in NAMESPACES}}
STATES: Final = (
    memory_pb2.MEMORY_STATE_ACTIVE,
    memory_pb2.MEMORY_STATE_SUPERSEDED,
    memory_pb2.MEMORY_STATE_FORGOTTEN,
)
TYPES: Final = (
    memory_pb2.MEMORY_TYPE_SESSION,
    memory_pb2.MEMORY_TYPE_DECISION,
    memory_pb2.MEMORY_TYPE_GOTCHA,
    memory_pb2.MEMORY_TYPE_GOLDEN_RULE,
)
RELATIONS: Final = tuple(memory_pb2.Relation.values()[1:])
SUPERSEDES: Final = memory_pb2.RELATION_SUPERSEDES
ORDERS: Final[dict[pb.OrderBy.ValueType, Callable[[memory_pb2.Memory], object]]] = {
    pb.ORDER_BY_CREATE_TIME: lambda memory: memory.create_time.ToNanoseconds(),
    pb.ORDER_BY_ACCESS_TIME: lambda memory: memory.access_time.ToNanoseconds(),
    pb.ORDER_BY_IMPORTANCE: lambda memory: memory.importance,
    pb.ORDER_BY_CONFIDENCE: lambda memory: memory.confidence,
}
WORDS: Final = ("broker", "cache", "deploys", "flaky", "gateway", "linux", "parser", "retries", "schema", "tokens")
KEPT_REQUESTS: Final = 4

# Few, so that the same is said again, in another place or after it was replaced.
texts = st.one_of(
    st.sampled_from(("gateway retries twice", "schema of tokens", "flaky parser", "broker deploys linux cache")),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
)
which = st.sampled_from(range(61))
"""A memory, by its place among those there are, counted round."""
some_relations = st.sampled_from((SUPERSEDES, SUPERSEDES, SUPERSEDES, *RELATIONS))
some_links = st.lists(st.tuples(some_relations, which), min_size=1, max_size=3)


class MemoryMachine(RuleBasedStateMachine):
    """Asks a sidecar and the model the same, and compares answers, refusals and all that is stored.

    The sidecar goes on from one example to the next; each ends with purging everything.
    """

    def __init__(self, sidecar: Sidecar, home: Path, *, has_meaning: bool, interruptions: int) -> None:
        super().__init__()
        self._sidecar = sidecar
        self._home = home
        self._has_meaning = has_meaning
        self._interruptions = interruptions
        self._model = MemoryModel()
        self._keys = 0
        self._remembered: list[Remembered] = []
        self._forgotten: list[Forgotten] = []

    def teardown(self) -> None:
        """Check the whole, then remove it."""
        try:
            self._check_everything()
        finally:
            for memory in self._listed("*", STATES):
                self._sidecar.forget_memories(pb.ForgetMemoriesRequest(memory_id=memory.id, purge=True, force=True))
        assert self._listed("*", STATES) == []
        assert not list(self._sidecar.list_disputes(validation.ListDisputesRequest(include_resolved=True)).disputes)

    # --- storing

    @initialize(several=st.lists(st.tuples(texts, st.sampled_from(TYPES)), min_size=3, max_size=8))
    def begin(self, several: list[tuple[str, memory_pb2.MemoryType.ValueType]]) -> None:
        for text, memory_type in several:
            self._remember(pb.RememberRequest(content=text, memory_type=memory_type))

    @rule(
        text=texts,
        namespace=st.sampled_from(("", *NAMESPACES)),
        memory_type=st.sampled_from(TYPES),
        importance=st.sampled_from((0.2, 0.5, 0.9)),
        confidence=st.sampled_from(("0.3", "0.5", "0.85", "0.9")),
        provenance=st.sampled_from((memory_pb2.PROVENANCE_AGENT, memory_pb2.PROVENANCE_MACHINE)),
        is_waiting=st.booleans(),
    )
    def remember(
        self,
        *,
        text: str,
        namespace: str,
        memory_type: memory_pb2.MemoryType.ValueType,
        importance: float,
        confidence: str,
        provenance: memory_pb2.Provenance.ValueType,
        is_waiting: bool,
    ) -> None:
        request = pb.RememberRequest(
            content=f" {text}\n",
            namespace=namespace,
            memory_type=memory_type,
            importance=importance,
            confidence=float(confidence),
            provenance=provenance,
            wait_for_index=is_waiting and self._has_meaning,
        )
        self._remember(request)

    @rule(text=texts, links=some_links, is_waiting=st.booleans())
    def remember_with_links(self, *, text: str, links: list[tuple[int, int]], is_waiting: bool) -> None:
        request = pb.RememberRequest(content=text, wait_for_index=is_waiting and self._has_meaning)
        for relation, place in links:
            request.links.add(relation=memory_pb2.Relation.ValueType(relation), memory_id=self._id(place))
        self._remember(request)

    @precondition(lambda self: self._model.memories)
    @rule(place=which, links=st.one_of(st.just([]), some_links))
    def remember_what_is_there(self, *, place: int, links: list[tuple[int, int]]) -> None:
        """The same words once more: active, or replaced or forgotten by now."""
        entries = list(self._model.memories.values())
        away = [entry for entry in entries if self._model.state(entry) != memory_pb2.MEMORY_STATE_ACTIVE]
        entry = _nth(away if away and place % 3 else entries, place)
        request = pb.RememberRequest(content=entry.text, namespace=entry.namespace)
        for relation, other in links:
            request.links.add(relation=memory_pb2.Relation.ValueType(relation), memory_id=self._id(other))
        self._remember(request)

    @rule()
    def repeat_requests(self) -> None:
        """A repeated request is answered as the first, and does nothing."""
        for remember, first in self._remembered:
            again = self._sidecar.remember(remember)
            assert (again.memory_id, again.deduplicated) == (first.memory_id, first.deduplicated)
        for forget, told in self._forgotten:
            repeated = self._sidecar.forget_memories(forget)
            assert (repeated.deleted_ids, repeated.skipped) == (told.deleted_ids, told.skipped)

    def _remember(self, request: pb.RememberRequest) -> None:
        request.request_key = self._new_key()
        # What is related by itself must be told of before the next step, or it would seem to come from nowhere.
        request.auto_link = request.wait_for_index
        answer, refusal = _attempt(lambda: self._sidecar.remember(request))
        new = Entry(
            id=answer.memory_id if answer and not answer.deduplicated else "",
            namespace=request.namespace or OWN,
            text=request.content.strip(),
            type=request.memory_type or memory_pb2.MEMORY_TYPE_SESSION,
            importance=request.importance if request.HasField("importance") else 0.5,
            confidence=Decimal(str(request.confidence)) if request.HasField("confidence") else Decimal("0.3"),
            provenance=request.provenance or memory_pb2.PROVENANCE_AGENT,
        )
        links = [(int(link.relation), link.memory_id) for link in request.links]
        is_twin, expected = _attempt(lambda: self._model.remember(new, links))
        assert refusal is expected, f"{request}: {refusal}, the model {expected}"
        if answer is None:
            return
        assert answer.deduplicated == is_twin
        entry = self._model.memories[answer.memory_id]
        assert (entry.namespace, entry.text) == (new.namespace, new.text)
        if request.wait_for_index:
            assert answer.indexed
        self._adopt(entry, list(answer.auto_relationships), {target_id for _, target_id in links})
        self._remembered = [*self._remembered[-KEPT_REQUESTS:], (request, answer)]
        self._written()
        self._check_edges(entry.id)

    def _adopt(self, entry: Entry, edges: list[memory_pb2.Edge], linked: set[str]) -> None:
        """Take over relations that were made by similarity, if they keep to the rules."""
        allowed = {each.id for each in self._model.active((entry.namespace, "global"))} - {entry.id} - linked
        assert len(edges) <= 5
        for edge in edges:
            assert (edge.source_id, edge.relation) == (entry.id, memory_pb2.RELATION_RELATES_TO)
            assert edge.target_id in allowed
            assert edge.weight >= 0.6
            self._model.relate(edge.source_id, edge.target_id, edge.relation, edge.weight)

    # --- forgetting

    @rule(
        place=which,
        is_replacing=st.booleans(),
        is_forced=st.booleans(),
        is_purge=st.sampled_from((False, False, True)),
        is_only_shown=st.sampled_from((False, False, False, True)),
    )
    def forget(self, *, place: int, is_replacing: bool, is_forced: bool, is_purge: bool, is_only_shown: bool) -> None:
        memory_id = self._replacing(place) if is_replacing else self._mostly_there(place)
        request = pb.ForgetMemoriesRequest(
            memory_id=memory_id, force=is_forced, purge=is_purge, request_key=self._new_key()
        )
        if is_only_shown:
            shown = pb.ForgetMemoriesRequest()
            shown.CopyFrom(request)
            shown.confirm = False
            preview, refusal = _attempt(lambda: self._sidecar.forget_memories(shown))
            entry = self._model.memories.get(memory_id)
            assert (refusal is None) == (entry is not None)
            if preview is not None and entry is not None:
                reason = self._model.skip_reason(entry, is_forced=is_forced, is_purge=is_purge)
                assert list(preview.deleted_ids) == ([] if reason else [memory_id])
            return
        answer, refusal = _attempt(lambda: self._sidecar.forget_memories(request))
        reason_left, expected = _attempt(lambda: self._model.forget(memory_id, is_forced=is_forced, is_purge=is_purge))
        assert refusal is expected
        if answer is None:
            return
        skipped = [(each.memory_id, each.reason) for each in answer.skipped]
        assert list(answer.deleted_ids) == ([] if reason_left else [memory_id])
        assert skipped == ([(memory_id, reason_left)] if reason_left else [])
        self._forgotten = [*self._forgotten[-KEPT_REQUESTS:], (request, answer)]
        self._written()

    @rule(place=which, is_forced=st.booleans(), namespace=st.sampled_from(tuple(SCOPES)))
    def forget_by_query(self, *, place: int, is_forced: bool, namespace: str) -> None:
        """Only what is near in meaning goes; without meaning, nothing does."""
        entry = self._model.memories.get(self._id(place))
        if entry is None:
            return
        request = pb.ForgetMemoriesRequest(
            query=entry.text, namespace=namespace, n_results=2, similarity_floor=0.9, force=is_forced
        )
        if not self._has_meaning:
            with pytest.raises(EmbedderUnavailableError):
                self._sidecar.forget_memories(request)
            return
        self._wait_for_meaning()
        answer = self._sidecar.forget_memories(request)
        allowed = {each.id for each in self._model.active(SCOPES[namespace])}
        skipped = {each.memory_id: each.reason for each in answer.skipped}
        assert {*answer.deleted_ids, *skipped} <= allowed
        for memory_id in (*answer.deleted_ids, *skipped):
            reason = self._model.forget(memory_id, is_forced=is_forced, is_purge=False)
            assert reason == skipped.get(memory_id, "")
        self._written()

    @precondition(lambda self: any(entry.is_forgotten for entry in self._model.memories.values()))
    @rule(place=which)
    def restore(self, place: int) -> None:
        forgotten = [entry.id for entry in self._model.memories.values() if entry.is_forgotten]
        # Mostly one that can be; now and then one that cannot.
        memory_id = forgotten[place % len(forgotten)] if place % 7 else self._id(place)
        answer, refusal = _attempt(lambda: self._sidecar.restore_memory(pb.RestoreMemoryRequest(memory_id=memory_id)))
        _, expected = _attempt(lambda: self._model.restore(memory_id))
        assert refusal is expected, f"{memory_id}: {refusal}, the model {expected}"
        if answer is not None:
            self._check_memory(answer.memory)
            self._written()

    # --- relations

    @rule(start=which, end=which, relation=some_relations, weight=st.sampled_from((0.0, 0.25, 1.0)))
    def relate(self, *, start: int, end: int, relation: int, weight: float) -> None:
        source_id, target_id = self._mostly_there(start), self._mostly_there(end)
        request = graph.RelateRequest(
            source_id=source_id,
            target_id=target_id,
            relation=memory_pb2.Relation.ValueType(relation),
            weight=weight,
        )
        answer, refusal = _attempt(lambda: self._sidecar.relate(request))
        is_new, expected = _attempt(lambda: self._model.relate(source_id, target_id, relation, weight))
        assert refusal is expected, f"{refusal}, the model {expected}"
        if answer is None:
            return
        known = self._model.edges[source_id, target_id, relation]
        assert answer.created == is_new
        assert answer.edge.id == (known.id or answer.edge.id)
        assert answer.edge.weight == weight
        known.id = answer.edge.id
        self._written()

    @precondition(lambda self: self._model.edges)
    @rule(
        place=which,
        other=which,
        mode=st.sampled_from(("id", "memory", "pair")),
        direction=st.sampled_from(graph.Direction.values()),
        relations=st.sets(some_relations, max_size=2),
    )
    def delete_edges(
        self, *, place: int, other: int, mode: str, direction: graph.Direction.ValueType, relations: set[int]
    ) -> None:
        ids = [edge.id for edge in self._model.edges.values()]
        edge_id = ids[other % len(ids)] if place % 7 else 10**9
        # Mostly the ends of a relation that is there.
        triples = list(self._model.edges)
        source_id, target_id, _ = triples[place % len(triples)]
        if other % 7 == 0:
            source_id, target_id = self._id(place), self._id(other)
        request = graph.DeleteEdgesRequest()

        def expected_ids() -> list[int]:
            if mode == "id":
                return self._model.delete_edge(edge_id)
            if mode == "pair":
                return self._model.delete_edges_between(source_id, target_id)
            return self._model.delete_edges_of(
                source_id,
                is_out=direction != graph.DIRECTION_IN,
                is_in=direction != graph.DIRECTION_OUT,
                relations=relations,
            )

        if mode == "id":
            request.edge_id = edge_id
        elif mode == "pair":
            request.pair.source_id, request.pair.target_id = source_id, target_id
        else:
            request.memory.memory_id, request.memory.direction = source_id, direction
            request.relations.extend(memory_pb2.Relation.ValueType(relation) for relation in sorted(relations))
        answer, refusal = _attempt(lambda: self._sidecar.delete_edges(request))
        deleted, expected = _attempt(expected_ids)
        assert refusal is expected
        if answer is not None:
            assert list(answer.deleted_edge_ids) == deleted
            self._written()

    # --- whether they hold

    @rule(place=which, is_success=st.booleans(), adjustment=st.sampled_from(("", "0", "0.05", "0.1", "0.3", "0.6")))
    def report(self, *, place: int, is_success: bool, adjustment: str) -> None:
        """An outcome without an adjustment, else a validation."""
        memory_id = self._id(place)
        before = self._model.memories.get(memory_id)
        old = before.confidence if before else Decimal(0)
        change, refusal = _attempt(lambda: self._report(memory_id, is_success=is_success, adjustment=adjustment))
        moved, expected = _attempt(
            lambda: self._model.report(memory_id, is_success=is_success, adjustment=Decimal(adjustment or "0.1"))
        )
        assert refusal is expected
        if change is None or before is None:
            return
        assert (change.promoted, change.demoted) == moved
        assert (change.old_confidence, change.new_confidence) == (float(old), float(before.confidence))
        assert change.type == before.type
        self._written()

    def _report(self, memory_id: str, *, is_success: bool, adjustment: str) -> validation.ConfidenceChange:
        if not adjustment:
            outcome = validation.RecordOutcomeRequest(memory_id=memory_id, success=is_success)
            return self._sidecar.record_outcome(outcome).change
        direct = validation.ValidateMemoryRequest(memory_id=memory_id, success=is_success, adjustment=float(adjustment))
        return self._sidecar.validate_memory(direct).change

    @rule(place=which, reason=st.sampled_from(("wrong by now", "never true")))
    def challenge(self, *, place: int, reason: str) -> None:
        memory_id = self._id(place)
        request = validation.ChallengeMemoryRequest(memory_id=memory_id, reason=reason)
        answer, refusal = _attempt(lambda: self._sidecar.challenge_memory(request))
        known, expected = _attempt(lambda: self._model.challenge(memory_id, reason))
        assert refusal is expected
        if answer is None:
            return
        assert answer.already_pending == bool(known)
        assert answer.dispute.id == (known or answer.dispute.id)
        if not known:
            self._model.disputes[answer.dispute.id] = DisputeEntry(memory_id, reason)
        self._written()

    @precondition(lambda self: self._model.disputes)
    @rule(number=which, successor=which, resolution=st.sampled_from(validation.Resolution.values()[1:]))
    def resolve(self, *, number: int, successor: int, resolution: validation.Resolution.ValueType) -> None:
        ids = sorted(self._model.disputes)
        dispute_id = ids[number % len(ids)]
        successor_id = self._id(successor) if resolution == validation.RESOLUTION_SUPERSEDE else ""
        request = validation.ResolveDisputeRequest(
            dispute_id=dispute_id, resolution=resolution, successor_id=successor_id
        )
        answer, refusal = _attempt(lambda: self._sidecar.resolve_dispute(request))
        _, expected = _attempt(lambda: self._model.resolve(dispute_id, resolution, successor_id))
        assert refusal is expected, f"{refusal}, the model {expected}"
        if answer is not None:
            assert answer.dispute.resolution == resolution
            self._written()
            self._check_edges(answer.dispute.memory_id)

    # --- reading

    @rule(
        place=which,
        cut=st.integers(0, 3),
        namespace=st.sampled_from(tuple(SCOPES)),
        is_internal=st.booleans(),
        is_with_superseded=st.booleans(),
        types=st.sets(st.sampled_from(TYPES), max_size=2),
        min_importance=st.sampled_from((0.0, 0.0, 0.5, 0.9)),
        n_results=st.sampled_from((1, 3, 100)),
    )
    def recall(
        self,
        *,
        place: int,
        cut: int,
        namespace: str,
        is_internal: bool,
        is_with_superseded: bool,
        types: set[memory_pb2.MemoryType.ValueType],
        min_importance: float,
        n_results: int,
    ) -> None:
        """Only what may be delivered is; and whoever asks for a phrase gets those that hold it."""
        named = self._model.memories.get(self._id(place))
        words = (named.text if named else WORDS[place % len(WORDS)]).split()
        phrase = " ".join(words[cut % len(words) :])
        request = pb.RecallRequest(
            query=phrase,
            namespace=namespace,
            internal=is_internal,
            include_superseded=is_with_superseded,
            memory_types=sorted(types),
            min_importance=min_importance,
            n_results=n_results,
        )
        answer = self._sidecar.recall(request)
        states = STATES[:2] if is_with_superseded else STATES[:1]
        allowed = {
            entry.id
            for entry in self._model.memories.values()
            if entry.namespace in SCOPES[namespace]
            and self._model.state(entry) in states
            and (not types or entry.type in types)
            and entry.importance >= min_importance
        }
        found = [recalled.memory.id for recalled in answer.memories]
        holding = {memory_id for memory_id in allowed if f" {phrase} " in f" {self._model.memories[memory_id].text} "}
        assert len(set(found)) == len(found) <= n_results
        assert set(found) <= allowed
        assert answer.total_matched >= len(holding)
        if n_results == 100:
            assert holding <= set(found)
        scores = [recalled.score for recalled in answer.memories]
        assert scores == sorted(scores, reverse=True)
        for recalled in answer.memories:
            self._check_memory(recalled.memory)
            assert recalled.disputed == self._model.is_disputed(recalled.memory.id)
        if not is_internal:
            for memory_id in found:
                self._model.memories[memory_id].accesses += 1
                self._model.memories[memory_id].unsettled += 1

    @rule(place=which)
    def get(self, place: int) -> None:
        memory_id = self._id(place)
        answer, refusal = _attempt(lambda: self._sidecar.get_memory(pb.GetMemoryRequest(memory_id=memory_id)))
        assert (refusal is None) == (memory_id in self._model.memories)
        if answer is not None:
            self._check_memory(answer.memory)
            self._check_edges(memory_id)

    @rule(
        namespace=st.sampled_from(tuple(SCOPES)),
        states=st.sets(st.sampled_from(STATES)),
        types=st.sets(st.sampled_from(TYPES), max_size=2),
        page_size=st.integers(1, 5),
        order_by=st.sampled_from(tuple(ORDERS)),
        is_ascending=st.booleans(),
    )
    def list_and_count(
        self,
        *,
        namespace: str,
        states: set[memory_pb2.MemoryState.ValueType],
        types: set[memory_pb2.MemoryType.ValueType],
        page_size: int,
        order_by: pb.OrderBy.ValueType,
        is_ascending: bool,
    ) -> None:
        """Page by page there is everything once, in order; and it is as many as are counted."""
        meant = pb.MemoryFilter(namespace=namespace, states=sorted(states), memory_types=sorted(types))
        self._settle_accesses()
        listed = list(self._pages(meant, page_size=page_size, order_by=order_by, ascending=is_ascending))
        wanted = [
            entry
            for entry in self._model.memories.values()
            if entry.namespace in SCOPES[namespace]
            and self._model.state(entry) in (states or STATES[:1])
            and (not types or entry.type in types)
        ]
        assert sorted(memory.id for memory in listed) == sorted(entry.id for entry in wanted)
        places = [(ORDERS[order_by](memory), memory.id) for memory in listed]
        assert places == sorted(places, reverse=not is_ascending)
        counts = self._sidecar.count_memories(pb.CountMemoriesRequest(filter=meant))
        names = [memory_pb2.MemoryType.Name(memory.type).removeprefix("MEMORY_TYPE_").lower() for memory in listed]
        assert counts.total == len(listed)
        assert dict(counts.by_type) == {name: names.count(name) for name in names}
        assert counts.by_namespace == {
            name: number for name in NAMESPACES if (number := sum(entry.namespace == name for entry in wanted))
        }

    # --- being interrupted

    @precondition(lambda self: self._interruptions)
    @rule(how=st.sampled_from(("killed", "stopped", "index lost")))
    def interrupt(self, how: str) -> None:
        """Nothing that was acknowledged is lost, and the index is as good as before."""
        self._interruptions -= 1
        if how == "killed":
            os.kill(self._sidecar.get_status().pid, signal.SIGKILL)
        else:
            if self._has_meaning:
                self._wait_for_meaning()
                wait_until_embedded(self._sidecar)
            stop(self._home)
            # What was accepted is finished before it ends.
            self._written()
        snapshots = list(DataFolder.at(self._home).index_folder.glob("*"))
        if how == "index lost":
            for path in snapshots:
                path.unlink()
        # Asked while the model is still being loaded: by words everything is found at once.
        self._check_everything()
        if self._has_meaning:
            self._wait_for_meaning()
            index = self._sidecar.get_status().index
            if how == "index lost" and self._model.memories:
                assert (index.origin, bool(index.rebuild_reason)) == ("rebuilt", True)

    # --- comparing

    @invariant()
    def everything_is_as_the_rules_say(self) -> None:
        listed = self._listed("*", STATES)
        assert [memory.id for memory in listed] == list(self._model.memories)
        for memory in listed:
            self._check_memory(memory)

    def _check_everything(self) -> None:
        for memory in self._listed("*", STATES):
            entry = self._model.memories[memory.id]
            # After a kill it is as many as were counted by then.
            assert entry.accesses - entry.unsettled <= memory.access_count <= entry.accesses
            entry.accesses, entry.unsettled = memory.access_count, 0
        self.everything_is_as_the_rules_say()
        for entry in self._model.memories.values():
            self._check_edges(entry.id)
            query = pb.RecallRequest(query=entry.text, namespace=entry.namespace, n_results=100, internal=True)
            found = {recalled.memory.id for recalled in self._sidecar.recall(query).memories}
            assert found <= {each.id for each in self._model.active((entry.namespace,))}
            assert (entry.id in found) == (self._model.state(entry) == memory_pb2.MEMORY_STATE_ACTIVE)
        open_only = self._sidecar.list_disputes(validation.ListDisputesRequest()).disputes
        disputes = self._sidecar.list_disputes(validation.ListDisputesRequest(include_resolved=True)).disputes
        assert [dispute.id for dispute in disputes] == sorted(self._model.disputes, reverse=True)
        assert [dispute.id for dispute in open_only] == [each.id for each in disputes if not each.resolution]
        for dispute in disputes:
            expected = self._model.disputes[dispute.id]
            assert (dispute.memory_id, dispute.resolution) == (expected.memory_id, expected.resolution)
        self._check_integrity()

    def _check_integrity(self) -> None:
        if self._has_meaning:
            self._wait_for_meaning()
            wait_until_embedded(self._sidecar)
        found = self._sidecar.check_integrity(maintenance.CheckIntegrityRequest())
        assert list(found.faults) == []
        expected = len(self._model.memories) if self._has_meaning else 0
        assert (found.stored_vectors, found.indexed_vectors) == (expected, expected)

    def _check_memory(self, memory: memory_pb2.Memory) -> None:
        entry = self._model.memories[memory.id]
        expected = (
            entry.namespace,
            entry.text,
            memory_pb2.MemoryState.Name(memory_pb2.MemoryState.ValueType(self._model.state(entry))),
            self._model.successor(entry),
            entry.type,
            entry.importance,
            float(entry.confidence),
            entry.provenance,
        )
        found = (
            memory.namespace,
            memory.content,
            memory_pb2.MemoryState.Name(memory.state),
            memory.superseded_by,
            memory.type,
            memory.importance,
            memory.confidence,
            memory.provenance,
        )
        assert found == expected, f"{memory.id} is {found}, the model says {expected}"
        assert entry.accesses - entry.unsettled <= memory.access_count <= entry.accesses

    def _check_edges(self, memory_id: str) -> None:
        """Compare the relations of a memory, and learn the ids of those that came with an operation."""
        found = self._sidecar.get_memory(pb.GetMemoryRequest(memory_id=memory_id)).edges
        expected = self._model.edges_of(memory_id)
        weights = {(edge.source_id, edge.target_id, int(edge.relation)): edge.weight for edge in found}
        assert weights == {triple: edge.weight for triple, edge in expected.items()}
        assert len(weights) == len(found)
        for edge in found:
            known = expected[edge.source_id, edge.target_id, int(edge.relation)]
            known.id = known.id or edge.id
            assert known.id == edge.id

    # --- asking

    def _id(self, place: int) -> str:
        """Return the id of a memory, or of one that was purged, by its place among all."""
        ids = [*self._model.memories, *self._model.purged[-1:]]
        return ids[place % len(ids)] if ids else "mem_00000000000000000000000000"

    def _mostly_there(self, place: int) -> str:
        """Return the id of a memory that is not forgotten; now and then of any."""
        there = [entry.id for entry in self._model.memories.values() if not entry.is_forgotten]
        return there[place % len(there)] if there and place % 7 else self._id(place)

    def _replacing(self, place: int) -> str:
        """Return the id of a memory that replaced another, forgotten or not; of any if none did."""
        sources = [source for source, _, relation in self._model.edges if relation == SUPERSEDES]
        return sources[place % len(sources)] if sources else self._id(place)

    def _new_key(self) -> str:
        self._keys += 1
        return f"{id(self)}-{self._keys}"

    def _written(self) -> None:
        """Note that a write was acknowledged: all deliveries before it are counted by now."""
        for entry in self._model.memories.values():
            entry.unsettled = 0
        self._remembered = [each for each in self._remembered if each[1].memory_id in self._model.memories]
        for memory_id in {triple[0] for triple, edge in self._model.edges.items() if not edge.id}:
            self._check_edges(memory_id)

    def _settle_accesses(self) -> None:
        """Have deliveries counted: an operation behind them that changes nothing."""
        if any(entry.unsettled for entry in self._model.memories.values()):
            request = validation.DemoteMemoryRequest(memory_id=next(iter(self._model.memories)))
            self._sidecar.demote_memory(request)
            self._written()

    def _wait_for_meaning(self) -> None:
        for _ in range(600):
            if self._sidecar.get_status().embedder.state == admin.PART_STATE_READY:
                return
            threading.Event().wait(0.05)
        raise AssertionError("the model was not loaded within 30 s")

    def _listed(self, namespace: str, states: tuple[memory_pb2.MemoryState.ValueType, ...]) -> list[memory_pb2.Memory]:
        meant = pb.MemoryFilter(namespace=namespace, states=states)
        return list(self._pages(meant, page_size=1000, order_by=pb.ORDER_BY_CREATE_TIME, ascending=True))

    def _pages(
        self, meant: pb.MemoryFilter, *, page_size: int, order_by: pb.OrderBy.ValueType, ascending: bool
    ) -> Iterator[memory_pb2.Memory]:
        request = pb.ListMemoriesRequest(filter=meant, page_size=page_size, order_by=order_by, ascending=ascending)
        while True:
            page = self._sidecar.list_memories(request)
            yield from page.memories
            request.page_token = page.next_page_token
            if not request.page_token:
                return


def _nth(entries: list[Entry], place: int) -> Entry:
    return entries[place % len(entries)]


def _attempt(ask: Callable[[], Answer]) -> tuple[Answer | None, type[SidecarError] | None]:
    """Return the answer, or as what it was refused."""
    try:
        return ask(), None
    except SidecarError as error:
        return None, type(error)


def _run(home: Path, *, embedder: str, examples: int, steps: int, interruptions: int) -> None:
    size = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        # Each attempt at a shorter program takes seconds here; what failed is printed as a program as it is.
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    has_meaning = embedder != "none"
    with running_sidecar(home, embedder=embedder) as sidecar:

        class Machine(MemoryMachine):
            def __init__(self) -> None:
                super().__init__(sidecar, home, has_meaning=has_meaning, interruptions=interruptions)

        run_state_machine_as_test(Machine, settings=size)


def test_a_few_steps_by_words(tmp_path: Path) -> None:
    """Nothing differs from the rules; the short form of the one that takes minutes."""
    _run(tmp_path / "home", embedder="none", examples=12, steps=30, interruptions=1)


def test_a_few_steps_by_meaning(tmp_path: Path) -> None:
    """The same with the real model and its index, which is lost and rebuilt among the steps."""
    _run(tmp_path / "home", embedder="minilm-onnx", examples=4, steps=30, interruptions=1)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_ten_thousand_steps_by_words(tmp_path: Path) -> None:
    """200 programs of 50 steps, each with up to two kills or restarts."""
    _run(tmp_path / "home", embedder="none", examples=200, steps=50, interruptions=2)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_thousands_of_steps_by_meaning(tmp_path: Path) -> None:
    """50 programs of 50 steps with the real model, whose index is lost and rebuilt among them."""
    _run(tmp_path / "home", embedder="minilm-onnx", examples=50, steps=50, interruptions=2)
