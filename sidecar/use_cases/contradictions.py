"""Looks for memories that contradict one: the nearest by their vectors, compared by rules and then by a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidecar.domain.contradiction import MIN_SIMILARITY, StatementComparison, Verdict, compare_statements
from sidecar.domain.edges import EdgeOrigin, NewEdge
from sidecar.domain.llm_contradictions import METHOD as LLM_METHOD
from sidecar.domain.memory import Caller, Memory, MemoryState, Relation, parse_fraction
from sidecar.domain.value_rules import Method
from sidecar.errors import MemoryNotFoundError
from sidecar.ports import GraphStore, MemoryStore
from sidecar.use_cases.compare_by_llm import CompareByLlm, LlmComparison
from sidecar.use_cases.memory_ids import require_id
from sidecar.use_cases.near_memories import NearMemories, NearMemory

# What a rule settled: the texts say the same, or the newer one says that things have changed.
_SETTLED: Final = frozenset((Method.SAME_WORDS, Method.EQUAL_VALUE, Method.CHANGE_WORDS))

_Compared = tuple[NearMemory, StatementComparison]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two memories that cannot both be true.

    Attributes:
        memory_id: The other one.
        similarity: Raw cosine of the two.
        method: The rule that found it, or `language_model`.
        own_part: What differs in the memory that was asked about; `other_part` in the other. Empty if not known.
        edge_id: Of the relation, 0 if none was made.
    """

    memory_id: str
    similarity: float
    method: str
    own_part: str
    other_part: str
    edge_id: int = 0


@dataclass(frozen=True, slots=True)
class Contradictions:
    """What was found, the most similar first; how many were compared; and what was not checked, for a person."""

    found: tuple[Contradiction, ...]
    compared: int
    not_checked: tuple[str, ...]


class DetectContradictions:
    """Compares a memory with those near it."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        graph: GraphStore,
        near: NearMemories,
        threshold: float = MIN_SIMILARITY,
        by_llm: CompareByLlm | None = None,
    ) -> None:
        """Take what is needed; `threshold` holds where the caller names none, and without `by_llm` rules decide."""
        self._by_llm = by_llm or CompareByLlm(None)
        self._store = store
        self._graph = graph
        self._near = near
        self._threshold = threshold

    async def run(
        self, caller: Caller, memory_id: str, *, threshold: float | None, is_relating: bool
    ) -> Contradictions:
        """Return what contradicts a memory, and with `is_relating` relate it.

        Args:
            threshold: Lowest raw cosine of what is compared; None for the default.

        Raises:
            InvalidInputError: If the threshold is outside 0 to 1.
            MemoryNotFoundError: If the memory is not there, or forgotten.
        """
        least = parse_fraction(self._threshold if threshold is None else threshold, field_name="similarity_threshold")
        memory = await self._store.get(caller.owner, require_id(memory_id))
        if memory.state is MemoryState.FORGOTTEN:
            raise MemoryNotFoundError(memory_id)
        nearby = await self._near.find(memory, threshold=least)
        compared = [(near, _compare(memory, near, least)) for near in nearby.memories]
        open_ones = [near.memory for near, comparison in compared if _is_open(comparison)]
        by_llm = await self._by_llm.run(memory, open_ones)
        found = _found(memory, compared, by_llm)
        if is_relating and found:
            found = await self._related(caller.owner, memory, found)
        not_checked = (*nearby.not_checked, *by_llm.not_checked, *_doubts(compared, by_llm))
        return Contradictions(tuple(found), len(compared), not_checked)

    async def _related(self, owner: str, memory: Memory, found: Sequence[Contradiction]) -> list[Contradiction]:
        """Relate each pair, unless it is related so already, either way."""
        known = {
            edge.target_id if edge.source_id == memory.id else edge.source_id: edge.id
            for edge in await self._store.edges(owner, memory.id)
            if edge.relation is Relation.CONTRADICTS
        }
        related: list[Contradiction] = []
        for contradiction in found:
            edge_id = known.get(contradiction.memory_id)
            if edge_id is None:
                new = NewEdge(
                    memory.id,
                    contradiction.memory_id,
                    Relation.CONTRADICTS,
                    min(max(contradiction.similarity, 0.0), 1.0),
                    EdgeOrigin.DETECTED,
                )
                edge_id = (await self._graph.put_edge(owner, new)).edge.id
            related.append(replace(contradiction, edge_id=edge_id))
        return related


def _compare(memory: Memory, near: NearMemory, threshold: float) -> StatementComparison:
    older, newer = _by_age(memory, near.memory)
    return compare_statements(older.content, newer.content, similarity=near.similarity, min_similarity=threshold)


def _is_open(comparison: StatementComparison) -> bool:
    return comparison.verdict is not Verdict.CONTRADICTS and comparison.method not in _SETTLED


def _found(memory: Memory, compared: Sequence[_Compared], by_llm: LlmComparison) -> list[Contradiction]:
    """Return what either way of comparing found, the most similar first."""
    found: list[Contradiction] = []
    for near, comparison in compared:
        parts = by_llm.contradicting.get(near.memory.id)
        if comparison.verdict is Verdict.CONTRADICTS:
            found.append(_contradiction(memory, near, comparison))
        elif parts is not None:
            found.append(Contradiction(near.memory.id, near.similarity, LLM_METHOD, parts.own, parts.other))
    return found


def _doubts(compared: Sequence[_Compared], by_llm: LlmComparison) -> list[str]:
    """Return what the rules could not look at, unless the model decided."""
    return [
        f"{near.memory.id}: {phrase}"
        for near, comparison in compared
        if comparison.verdict is not Verdict.CONTRADICTS and near.memory.id not in by_llm.decided_ids
        for phrase in comparison.not_checked
    ]


def _contradiction(memory: Memory, near: NearMemory, comparison: StatementComparison) -> Contradiction:
    evidence = comparison.evidence
    older_part, newer_part = (evidence.older, evidence.newer) if evidence else ("", "")
    is_newer = _by_age(memory, near.memory)[1] is memory
    own_part, other_part = (newer_part, older_part) if is_newer else (older_part, newer_part)
    return Contradiction(near.memory.id, near.similarity, comparison.method, own_part, other_part)


def _by_age(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """Return the two, the older first."""
    return (one, other) if (one.created_at, one.key) < (other.created_at, other.key) else (other, one)
