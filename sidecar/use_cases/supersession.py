"""Looks for an older memory that one has proved better than, and puts it in its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidecar.domain.confidence import ValidationSummary
from sidecar.domain.edges import EdgeOrigin, NewEdge, StoredEdge
from sidecar.domain.llm_supersession import VetoReason, read_vetoes, veto_request
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Caller, Memory, MemoryState, Relation
from sidecar.domain.supersession import (
    RULES,
    OlderMemory,
    SupersessionCheck,
    SupersessionRules,
    TrackRecord,
    check_supersedes,
)
from sidecar.errors import MemoryNotFoundError
from sidecar.ports import GraphStore, MemoryStore, ValidationStore
from sidecar.use_cases.ask_llm import AskLlm
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.memory_ids import require_id
from sidecar.use_cases.near_memories import NearMemories, NearMemory

MAX_ASKED: Final = 5
"""Memories that the language model may object about in one question."""

_NO_REPORTS: Final = ValidationSummary()


@dataclass(frozen=True, slots=True)
class Supersession:
    """What came of it.

    Attributes:
        superseded_id: The memory that it replaces; empty if none.
        reason: Why, or why none was found, for a person.
        edge_id: Of the relation, 0 if none was made.
        vetoes: Memories that it would replace by its successes, and why the language model objects.
        not_checked: What was not looked at, as phrases for a person.
    """

    superseded_id: str
    reason: str
    edge_id: int = 0
    vetoes: tuple[tuple[str, VetoReason], ...] = ()
    not_checked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SupersessionPolicy:
    """What is needed for a replacement. `golden_confidence`: from it on a memory is a golden rule."""

    rules: SupersessionRules = RULES
    golden_confidence: float = GOLDEN_CONFIDENCE


DEFAULT_POLICY: Final = SupersessionPolicy()


@dataclass(frozen=True, slots=True)
class _Objections:
    vetoes: Mapping[str, VetoReason]
    not_checked: tuple[str, ...] = ()


class CheckSupersedes:
    """Compares the track records of memories on one topic."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        graph: GraphStore,
        validation: ValidationStore,
        near: NearMemories,
        catalog: MemoryCatalog,
        completion: Completion,
        policy: SupersessionPolicy = DEFAULT_POLICY,
        llm: AskLlm | None = None,
    ) -> None:
        """Take what is needed; without `llm` nobody objects."""
        self._store = store
        self._graph = graph
        self._validation = validation
        self._near = near
        self._catalog = catalog
        self._completion = completion
        self._policy = policy
        self._llm = llm

    async def run(self, caller: Caller, memory_id: str, *, is_relating: bool, is_forced: bool) -> Supersession:
        """Return which memory it replaces, the most similar if several, and with `is_relating` relate the two.

        Args:
            is_forced: Whether golden rules may be replaced too.

        Raises:
            MemoryNotFoundError: If the memory is not there, or forgotten.
        """
        memory = await self._store.get(caller.owner, require_id(memory_id))
        if memory.state is MemoryState.FORGOTTEN:
            raise MemoryNotFoundError(memory_id)
        if memory.state is MemoryState.SUPERSEDED:
            return Supersession("", f"{memory_id} was replaced by {memory.superseded_by} itself")
        own = await self._validation.validation_summaries(caller.owner, [memory.id])
        rules = self._policy.rules
        newer = self._record(memory, own.get(memory.id, _NO_REPORTS))
        if newer.summary.succeeded < rules.successes:
            few = f"the newer memory has fewer than {rules.successes} successes: it has {newer.summary.succeeded}"
            return Supersession("", few)
        nearby = await self._near.find(memory, threshold=rules.similarity)
        if not nearby.memories:
            return Supersession("", "; ".join(nearby.not_checked) or "no other memory is on the same topic")
        older = await self._older(caller.owner, nearby.memories)
        check = check_supersedes(newer, older, is_forced=is_forced, rules=rules)
        if not check.superseded:
            return Supersession("", _kept_in_words(check), not_checked=nearby.not_checked)
        texts = {near.memory.id: near.memory.content for near in nearby.memories}
        objections = await self._objections(memory, check.superseded, texts)
        found = await self._replace(caller.owner, newer, check.superseded, objections, is_relating=is_relating)
        return replace(found, not_checked=(*nearby.not_checked, *objections.not_checked))

    async def _older(self, owner: str, nearby: Sequence[NearMemory]) -> list[OlderMemory]:
        summaries = await self._validation.validation_summaries(owner, [near.memory.id for near in nearby])
        return [
            OlderMemory(self._record(near.memory, summaries.get(near.memory.id, _NO_REPORTS)), near.similarity)
            for near in nearby
        ]

    async def _objections(
        self, memory: Memory, superseded: Sequence[OlderMemory], texts: Mapping[str, str]
    ) -> _Objections:
        """Ask the language model, if there is one, about the first few that would be replaced."""
        if self._llm is None:
            return _Objections({})
        asked = [older.record.memory_id for older in superseded[:MAX_ASKED]]
        older_texts = [texts[memory_id] for memory_id in asked]
        reply = await self._llm.ask(lambda fence: veto_request(fence, memory.content, older_texts))
        if reply.fields is None:
            return _Objections({}, (f"whether a language model objects: {reply.problem}",))
        vetoes = read_vetoes(reply.fields, count=len(asked))
        return _Objections({asked[place]: reason for place, reason in sorted(vetoes.items())})

    async def _replace(
        self,
        owner: str,
        newer: TrackRecord,
        superseded: Sequence[OlderMemory],
        objections: _Objections,
        *,
        is_relating: bool,
    ) -> Supersession:
        """Replace the most similar one that nobody objects about."""
        vetoes = tuple(objections.vetoes.items())
        best = next((o for o in superseded[:MAX_ASKED] if o.record.memory_id not in objections.vetoes), None)
        if best is None:
            told = "; ".join(f"{memory_id} stays: {reason.in_words}" for memory_id, reason in vetoes)
            return Supersession("", f"the language model objects: {told}", vetoes=vetoes)
        edge_id = 0
        if is_relating:
            edge = NewEdge(newer.memory_id, best.record.memory_id, Relation.SUPERSEDES, origin=EdgeOrigin.DETECTED)
            edge_id = (await self._completion.run(self._put(owner, edge))).edge.id
        return Supersession(best.record.memory_id, _replaced_in_words(newer, best), edge_id, vetoes)

    def _record(self, memory: Memory, summary: ValidationSummary) -> TrackRecord:
        return TrackRecord(
            memory_id=memory.id,
            created_at=memory.created_at,
            confidence=memory.confidence,
            is_golden_rule=memory.is_golden_from(self._policy.golden_confidence),
            summary=summary,
            state=memory.state,
        )

    async def _put(self, owner: str, edge: NewEdge) -> StoredEdge:
        stored = await self._graph.put_edge(owner, edge)
        self._catalog.apply(stored.changed)
        return stored


def _kept_in_words(check: SupersessionCheck) -> str:
    """Return why each of the nearest stays; they come most similar first."""
    return "; ".join(f"{memory_id} stays: {reason}" for memory_id, reason in check.kept[:3])


def _replaced_in_words(newer: TrackRecord, older: OlderMemory) -> str:
    record = older.record
    return (
        f"on the same topic (similarity {older.similarity:.2f}) {newer.memory_id} has {newer.summary.succeeded} "
        f"successes and {newer.summary.failed} failures, the older {record.memory_id} has {record.summary.failed} "
        f"failures and a lower confidence ({record.confidence:.2f} against {newer.confidence:.2f})"
    )
