"""Paths over edges: which edges may be followed, how relevant an end is, and a path in words. Finds no paths."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.memory import Relation, parse_relation
from sidecar.domain.store_values import Edge

RelationWeights = Mapping[Relation, float]
"""How much of a memory's relevance each relation passes on, 0 to 1."""

RELATION_WEIGHTS: Final[RelationWeights] = {
    Relation.SUPERSEDES: 1.0,
    Relation.CAUSED_BY: 0.9,
    Relation.DERIVED_FROM: 0.9,
    Relation.RELATES_TO: 0.7,
    Relation.CONTRADICTS: 0.5,
}
MAX_EDGES_PER_MEMORY: Final = 200
"""Of a memory with more edges than that, the heaviest are followed."""

_FORWARD: Final = {
    Relation.RELATES_TO: "relates to",
    Relation.SUPERSEDES: "supersedes",
    Relation.CAUSED_BY: "was caused by",
    Relation.CONTRADICTS: "contradicts",
    Relation.DERIVED_FROM: "is derived from",
}
_BACKWARD: Final = {
    Relation.RELATES_TO: "relates to",
    Relation.SUPERSEDES: "is superseded by",
    Relation.CAUSED_BY: "caused",
    Relation.CONTRADICTS: "is contradicted by",
    Relation.DERIVED_FROM: "is the source of",
}

EdgesById = Mapping[str, Sequence[Edge]]
"""The edges that start or end at each of several memories; one without edges may be left out."""


class Direction(StrEnum):
    """Which way edges are followed, seen from the memory one stands at."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class RelationChoice:
    """Which relations are followed: those in `included` (all if it is empty) that are not in `excluded`."""

    included: frozenset[Relation] = frozenset()
    excluded: frozenset[Relation] = frozenset()

    def covers(self, relation: Relation) -> bool:
        """Tell whether this relation is followed."""
        return (not self.included or relation in self.included) and relation not in self.excluded


ANY_RELATION: Final = RelationChoice()


def parse_relation_choice(included: Iterable[str], excluded: Iterable[str]) -> RelationChoice:
    """Return the choice that these names make.

    Raises:
        UnknownRelationError: Names the field, `include_edge_types` or `exclude_edge_types`, and the valid names.
    """
    return RelationChoice(
        frozenset(parse_relation(name, field_name="include_edge_types") for name in included),
        frozenset(parse_relation(name, field_name="exclude_edge_types") for name in excluded),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One edge as it is walked. `is_forward` says whether from its source to its target."""

    edge_id: int
    relation: Relation
    weight: float
    end_id: str
    is_forward: bool

    @property
    def verb(self) -> str:
        """What the memory it leaves does to the one it reaches."""
        return (_FORWARD if self.is_forward else _BACKWARD)[self.relation]


@dataclass(frozen=True, slots=True)
class EdgePath:
    """A walk from a memory over edges; no memory comes twice. Without steps it ends where it starts."""

    start_id: str
    steps: tuple[Step, ...] = ()

    @property
    def end_id(self) -> str:
        """Where it ends."""
        return self.steps[-1].end_id if self.steps else self.start_id

    @property
    def hops(self) -> int:
        """How many edges it takes."""
        return len(self.steps)

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memories on it, both ends included."""
        return (self.start_id, *(step.end_id for step in self.steps))

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations of its steps."""
        return tuple(step.relation for step in self.steps)

    @property
    def total_weight(self) -> float:
        """Product of the weights, 0 to 1; 1 without steps."""
        return math.prod(step.weight for step in self.steps)

    def then(self, step: Step) -> "EdgePath":
        """Return the path with one more step."""
        return EdgePath(self.start_id, (*self.steps, step))

    def relevance(
        self, similarity: float, *, decay: float, relation_weights: RelationWeights = RELATION_WEIGHTS
    ) -> float:
        """Return how relevant its end is to a query, 0 to 1, never above `similarity`.

        That is similarity x decay^hops x product of weights x geometric mean of the relations' weights.

        Args:
            similarity: Of query and start; what is below 0 counts as 0, above 1 as 1.
            decay: What one step leaves, 0 to 1.
            relation_weights: Of every relation that the path may hold.
        """
        start = clamp_fraction(similarity)
        if not self.steps:
            return start
        passed_on = math.prod(relation_weights[step.relation] for step in self.steps) ** (1.0 / self.hops)
        return min(start, start * decay**self.hops * self.total_weight * passed_on)

    def in_words(self) -> str:
        """Return the path as a sentence, such as `mem_A supersedes mem_B, which relates to mem_C`."""
        if not self.steps:
            return self.start_id
        first, *others = (f"{step.verb} {step.end_id}" for step in self.steps)
        return ", which ".join((f"{self.start_id} {first}", *others))


def followed_steps(
    memory_id: str, edges: Iterable[Edge], *, relations: RelationChoice, direction: Direction
) -> tuple[Step, ...]:
    """Return the steps that leave a memory, the heaviest first, equal ones by edge id.

    Edges of other memories and edges from a memory to itself lead nowhere. At most `MAX_EDGES_PER_MEMORY`.
    """
    steps = (
        step
        for edge in edges
        if relations.covers(edge.relation) and (step := _step(memory_id, edge, direction)) is not None
    )
    return tuple(sorted(steps, key=lambda step: (-step.weight, step.edge_id))[:MAX_EDGES_PER_MEMORY])


def clamp_fraction(value: float) -> float:
    """Return the value within 0 to 1; what is not a number is 0."""
    if value >= 1.0:
        return 1.0
    return value if value > 0.0 else 0.0


def _step(memory_id: str, edge: Edge, direction: Direction) -> Step | None:
    is_out = edge.source_id == memory_id
    if is_out == (edge.target_id == memory_id):
        return None
    if direction is (Direction.IN if is_out else Direction.OUT):
        return None
    end_id = edge.target_id if is_out else edge.source_id
    return Step(edge.id, edge.relation, clamp_fraction(edge.weight), end_id, is_forward=is_out)
