"""What is asked of stored edges and what becomes of it, and the rule that nothing may replace itself. No paths."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.edge_paths import Direction
from sidecar.domain.memory import Relation
from sidecar.domain.store_values import CatalogRow, Edge
from sidecar.domain.succession import SuccessionRows

MAX_AUTO_LINKS: Final = 20


class EdgeOrigin(StrEnum):
    """Why an edge is there."""

    DECLARED = "declared"
    AUTO = "auto"
    INHERITED = "inherited"
    DETECTED = "detected"


@dataclass(frozen=True, slots=True)
class NewEdge:
    """An edge to store. `weight` is 0 to 1."""

    source_id: str
    target_id: str
    relation: Relation
    weight: float = 1.0
    origin: EdgeOrigin = EdgeOrigin.DECLARED


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
