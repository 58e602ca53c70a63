"""Adds to what a recall found the memories that relations lead to from there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sidecar.domain.edge_paths import ANY_RELATION, RELATION_WEIGHTS, RelationChoice, RelationWeights
from sidecar.domain.expansion import DEFAULT_DECAY, DEFAULT_DEPTH, Expansion, ExpansionQuery, Reached
from sidecar.domain.memory import Memory
from sidecar.domain.recall import ExpandedMemory, MemoryFilter, RecalledMemory
from sidecar.errors import InvalidInputError
from sidecar.ports import GraphStore, MemoryStore
from sidecar.use_cases.memory_ids import memories_of

DEFAULT_EXPANDED: Final = 20
MAX_EXPANDED: Final = 100


@dataclass(frozen=True, slots=True)
class ExpandPolicy:
    """What holds where the caller says nothing; see `ExpandQuery`."""

    max_depth: int = DEFAULT_DEPTH
    max_expanded: int = DEFAULT_EXPANDED
    decay: float = DEFAULT_DECAY
    relation_weights: RelationWeights = field(default_factory=lambda: RELATION_WEIGHTS)


@dataclass(frozen=True, slots=True)
class ExpandQuery:
    """How far to look.

    Attributes:
        max_depth: Most relations away, 1 to 5; 0 for the default.
        max_expanded: Most memories, 1 to 100; 0 for the default.
        decay: What is left of the relevance after each relation, 0 to 1; None for the default.
    """

    max_depth: int = 0
    max_expanded: int = 0
    decay: float | None = None
    relations: RelationChoice = ANY_RELATION


class Expand:
    """Follows relations from what was found."""

    def __init__(self, *, store: MemoryStore, graph: GraphStore, policy: ExpandPolicy) -> None:
        self._store = store
        self._graph = graph
        self._policy = policy

    def check(self, query: ExpandQuery) -> None:
        """Let a query pass whose figures are right; before anything is looked for.

        Raises:
            InvalidInputError: If one is outside its bounds.
        """
        self._expansion_query(query)
        self._limit(query)

    async def run(
        self, owner: str, seeds: Sequence[RecalledMemory], query: ExpandQuery, selection: MemoryFilter
    ) -> tuple[ExpandedMemory, ...]:
        """Return the related memories that the recall's filter covers, the most relevant first; never a seed.

        A path may lead over memories that the filter leaves out, such as one that was replaced.
        """
        # Found by words alone, a memory has no similarity; its relevance is the next best figure.
        similarities = [
            (seed.memory.id, seed.parts.relevance if seed.parts.similarity is None else seed.parts.similarity)
            for seed in seeds
        ]
        expansion = Expansion(similarities, self._expansion_query(query))
        while wanted := expansion.wanted():
            expansion.feed(await self._graph.neighbours(owner, wanted))
        reached = expansion.reached()
        memories = await memories_of(self._store, owner, (found.memory_id for found in reached))
        expanded = (_expanded(found, memories[found.memory_id]) for found in reached if found.memory_id in memories)
        return tuple(e for e in expanded if selection.covers(e.memory))[: self._limit(query)]

    def _expansion_query(self, query: ExpandQuery) -> ExpansionQuery:
        return ExpansionQuery(
            max_depth=query.max_depth or self._policy.max_depth,
            decay=self._policy.decay if query.decay is None else query.decay,
            relations=query.relations,
            relation_weights=self._policy.relation_weights,
        )

    def _limit(self, query: ExpandQuery) -> int:
        limit = query.max_expanded or self._policy.max_expanded
        if not 1 <= limit <= MAX_EXPANDED:
            raise InvalidInputError("max_expanded", limit, f"a whole number from 1 to {MAX_EXPANDED}")
        return limit


def _expanded(reached: Reached, memory: Memory) -> ExpandedMemory:
    return ExpandedMemory(
        memory, reached.relevance, reached.distance, path=reached.path.memory_ids, explanation=reached.explanation
    )
