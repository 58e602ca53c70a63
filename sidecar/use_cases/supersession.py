"""Looks for an older memory that one has proved better than, and puts it in its place."""

from dataclasses import dataclass
from typing import Final

from sidecar.domain.confidence import ValidationSummary
from sidecar.domain.edges import EdgeOrigin, NewEdge, StoredEdge
from sidecar.domain.memory import Caller, Memory, MemoryState, Relation
from sidecar.domain.supersession import (
    LEAST_SUCCESSES,
    SAME_TOPIC_SIMILARITY,
    KeptReason,
    OlderMemory,
    SupersessionCheck,
    TrackRecord,
    check_supersedes,
)
from sidecar.errors import MemoryNotFoundError
from sidecar.ports import GraphStore, MemoryStore, ValidationStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.memory_ids import require_id
from sidecar.use_cases.near_memories import NearMemories

_NO_REPORTS: Final = ValidationSummary()


@dataclass(frozen=True, slots=True)
class Supersession:
    """What came of it.

    Attributes:
        superseded_id: The memory that it replaces; empty if none.
        reason: Why, or why none was found, for a person.
        edge_id: Of the relation, 0 if none was made.
    """

    superseded_id: str
    reason: str
    edge_id: int = 0


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
        threshold: float = SAME_TOPIC_SIMILARITY,
    ) -> None:
        """Take what is needed; from a raw cosine of `threshold` on two memories are on one topic."""
        self._store = store
        self._graph = graph
        self._validation = validation
        self._near = near
        self._catalog = catalog
        self._completion = completion
        self._threshold = threshold

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
        newer = _record(memory, own.get(memory.id, _NO_REPORTS))
        if newer.summary.succeeded < LEAST_SUCCESSES:
            return Supersession("", f"{KeptReason.TOO_FEW_SUCCESSES}: it has {newer.summary.succeeded}")
        nearby = await self._near.find(memory, threshold=self._threshold)
        if not nearby.memories:
            return Supersession("", "; ".join(nearby.not_checked) or "no other memory is on the same topic")
        summaries = await self._validation.validation_summaries(
            caller.owner, [near.memory.id for near in nearby.memories]
        )
        older = [
            OlderMemory(_record(near.memory, summaries.get(near.memory.id, _NO_REPORTS)), near.similarity)
            for near in nearby.memories
        ]
        check = check_supersedes(newer, older, is_forced=is_forced, similarity_threshold=self._threshold)
        if not check.superseded:
            return Supersession("", _kept_in_words(check))
        best = check.superseded[0]
        edge_id = 0
        if is_relating:
            edge = NewEdge(memory.id, best.record.memory_id, Relation.SUPERSEDES, origin=EdgeOrigin.DETECTED)
            edge_id = (await self._completion.run(self._put(caller.owner, edge))).edge.id
        return Supersession(best.record.memory_id, _replaced_in_words(newer, best), edge_id)

    async def _put(self, owner: str, edge: NewEdge) -> StoredEdge:
        stored = await self._graph.put_edge(owner, edge)
        self._catalog.apply(stored.changed)
        return stored


def _record(memory: Memory, summary: ValidationSummary) -> TrackRecord:
    return TrackRecord(
        memory_id=memory.id,
        created_at=memory.created_at,
        confidence=memory.confidence,
        is_golden_rule=memory.is_golden_rule,
        summary=summary,
        state=memory.state,
    )


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
