"""What is asked of stored edges and what becomes of it, and the rule that nothing may replace itself. No paths."""

from dataclasses import dataclass
from enum import StrEnum

from sidecar.domain.edge_paths import Direction
from sidecar.domain.memory import Memory, MemoryState, Relation, parse_fraction
from sidecar.domain.namespace import GLOBAL
from sidecar.domain.store_values import CatalogRow, Edge
from sidecar.domain.succession import SuccessionRows
from sidecar.errors import InvalidInputError


class EdgeOrigin(StrEnum):
    """Why an edge is there."""

    DECLARED = "declared"
    AUTO = "auto"
    INHERITED = "inherited"
    DETECTED = "detected"


@dataclass(frozen=True, slots=True)
class NewEdge:
    """An edge to store. `weight` is 0 to 1.

    Raises:
        InvalidInputError: If it starts where it ends, or the weight is something else.
    """

    source_id: str
    target_id: str
    relation: Relation
    weight: float = 1.0
    origin: EdgeOrigin = EdgeOrigin.DECLARED

    def __post_init__(self) -> None:
        parse_fraction(self.weight, field_name="weight")
        if self.source_id == self.target_id:
            raise InvalidInputError("target_id", self.target_id, "another memory than the source")

    def may_replace(self, origin: EdgeOrigin) -> bool:
        """Tell whether it may set the weight of an edge that is there for that reason."""
        return self.origin is EdgeOrigin.DECLARED or origin is not EdgeOrigin.DECLARED


@dataclass(frozen=True, slots=True)
class StoredEdge:
    """An edge as it is now. `changed` lists every memory whose catalog fields are new by it."""

    edge: Edge
    is_created: bool
    changed: tuple[CatalogRow, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeOfId:
    """One edge, by the database's id."""

    edge_id: int


@dataclass(frozen=True, slots=True)
class EdgesOfMemory:
    """The edges that start or end at a memory. Without relations, all of them."""

    memory_id: str
    direction: Direction = Direction.BOTH
    relations: frozenset[Relation] = frozenset()


@dataclass(frozen=True, slots=True)
class EdgesOfPair:
    """The edges from one memory to another. Without relations, all of them."""

    source_id: str
    target_id: str
    relations: frozenset[Relation] = frozenset()


EdgeSelector = EdgeOfId | EdgesOfMemory | EdgesOfPair


@dataclass(frozen=True, slots=True)
class DeletedEdges:
    """What was deleted, by id. `changed` lists every memory whose catalog fields are new by it."""

    edge_ids: tuple[int, ...]
    changed: tuple[CatalogRow, ...] = ()


def may_auto_link(source: Memory, target: Memory) -> bool:
    """Tell whether a memory may be related to one near it without anyone asking."""
    return (
        source.key != target.key
        and source.owner == target.owner
        and source.state is target.state is MemoryState.ACTIVE
        and target.namespace in (source.namespace, GLOBAL)
    )


def check_refinement(relation: Relation) -> None:
    """Let a relation pass that an edge made without anyone asking may be given.

    Raises:
        InvalidInputError: If it is `supersedes`, which takes its target out of every answer.
    """
    if relation is Relation.SUPERSEDES:
        raise InvalidInputError("relation", relation, "one that leaves both memories as they are")


def closes_circle(rows: SuccessionRows, source_key: int, target_key: int) -> bool:
    """Tell whether the target replaces the source already, so that both would stand aside for each other."""
    waiting, seen = [target_key], {target_key}
    while waiting:
        key = waiting.pop()
        if key == source_key:
            return True
        further = set(rows.replaced(rows.memory(key))) - seen
        seen |= further
        waiting += sorted(further)
    return False
