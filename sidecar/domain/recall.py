"""What a recall asks and answers, as values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidecar.domain.memory import Memory, MemoryState, MemoryType
from sidecar.domain.namespace import NamespaceScope

DEFAULT_RESULTS: Final = 5
MAX_RESULTS: Final = 100


class RecallLeg(StrEnum):
    """One of the two ways a memory is found."""

    MEANING = "meaning"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which memories may be returned. Forgotten ones never are, unless `states` names them.

    Attributes:
        owner: Whose memories.
        types: Only these; empty means all.
        min_importance: 0 to 1.
        created_before: Exclusive, UTC; None means no bound. So too `created_after`, which is inclusive.
    """

    owner: str
    scope: NamespaceScope
    types: tuple[MemoryType, ...] = ()
    min_importance: float = 0.0
    states: tuple[MemoryState, ...] = (MemoryState.ACTIVE,)
    created_after: datetime | None = None
    created_before: datetime | None = None

    def covers(self, memory: Memory) -> bool:
        """Tell whether this memory may be returned."""
        return (
            memory.owner == self.owner
            and self.scope.covers(memory.namespace)
            and (not self.types or memory.type in self.types)
            and memory.importance >= self.min_importance
            and memory.state in self.states
            and (self.created_after is None or memory.created_at >= self.created_after)
            and (self.created_before is None or memory.created_at < self.created_before)
        )


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """What a memory's score is made of: `score` is the product of relevance and the four factors.

    Attributes:
        similarity: Raw cosine of query and memory; None if one of them has no embedding.
        word_score: Share of the best possible BM25 score of this query, 0 to 1; None if no word matched.
        relevance: Calibrated from the two, 0 to 1.
    """

    similarity: float | None
    word_score: float | None
    relevance: float
    type_weight: float = 1.0
    age_factor: float = 1.0
    provenance_factor: float = 1.0
    reinforcement: float = 1.0

    @property
    def score(self) -> float:
        """The figure that memories are ordered by."""
        return self.relevance * self.factors * self.reinforcement

    @property
    def factors(self) -> float:
        """Product of the factors beside reinforcement."""
        return self.type_weight * self.age_factor * self.provenance_factor


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """One memory of an answer."""

    memory: Memory
    parts: ScoreParts
    is_disputed: bool = False


@dataclass(frozen=True, slots=True)
class ExpandedMemory:
    """A memory that relations lead to.

    Attributes:
        relevance: 0 to 1, never above that of the memory it was reached from.
        distance: How many relations away.
        path: Ids from the found memory to this one.
        explanation: The path in words.
    """

    memory: Memory
    relevance: float
    distance: int
    path: tuple[str, ...]
    explanation: str


@dataclass(frozen=True, slots=True)
class DegradedLeg:
    """A leg that did not take part, and why."""

    leg: RecallLeg
    reason: str


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """What a recall delivered, best first."""

    recall_id: str
    memories: tuple[RecalledMemory, ...]
    total_matched: int
    degraded: tuple[DegradedLeg, ...] = ()
    expanded: tuple[ExpandedMemory, ...] = ()
