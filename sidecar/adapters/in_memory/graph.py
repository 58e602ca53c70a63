"""The graph store in plain collections."""

from collections.abc import Sequence
from dataclasses import replace

from sidecar.adapters.in_memory.succession import InMemorySuccessionRows, settle
from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.edge_paths import MAX_EDGES_PER_MEMORY, Direction
from sidecar.domain.edges import (
    DeletedEdges,
    EdgeOfId,
    EdgeOrigin,
    EdgeSelector,
    EdgesOfMemory,
    NewEdge,
    StoredEdge,
    check_refinement,
    closes_circle,
    may_auto_link,
)
from sidecar.domain.memory import Memory, MemoryState, Relation
from sidecar.domain.store_values import Edge
from sidecar.errors import EdgeNotFoundError, MemoryNotFoundError, SupersessionCircleError
from sidecar.ports import Clock


class InMemoryGraph:
    """Implements `GraphStore`; a part of `InMemoryStore`."""

    _tables: Tables
    _clock: Clock

    async def put_edge(self, owner: str, new: NewEdge) -> StoredEdge:
        """See `GraphStore.put_edge`."""
        return self._put_edge(owner, new)

    async def delete_edges(self, owner: str, selector: EdgeSelector) -> DeletedEdges:
        """See `GraphStore.delete_edges`."""
        tables = self._tables
        named = _named_by(tables, owner, selector)
        deleted = [edge for edge in tables.edges if edge.id in named]
        if not deleted and isinstance(selector, EdgeOfId):
            raise EdgeNotFoundError(selector.edge_id)
        tables.edges = [edge for edge in tables.edges if edge.id not in named]
        for edge in deleted:
            tables.edge_origins.pop(edge.id, None)
        given_back = {tables.keys[edge.target_id] for edge in deleted if edge.relation is Relation.SUPERSEDES}
        return DeletedEdges(tuple(edge.id for edge in deleted), tuple(settle(tables, sorted(given_back))))

    async def neighbours(
        self, owner: str, memory_ids: Sequence[str], *, relations: frozenset[Relation] = frozenset()
    ) -> dict[str, tuple[Edge, ...]]:
        """See `GraphStore.neighbours`."""
        tables = self._tables
        forgotten = {memory.id for memory in tables.memories.values() if memory.state is MemoryState.FORGOTTEN}
        shown = [
            edge
            for edge in sorted(tables.edges, key=lambda edge: (-edge.weight, edge.id))
            if not {edge.source_id, edge.target_id} & forgotten and (not relations or edge.relation in relations)
        ]
        around = {
            memory_id: tuple(edge for edge in shown if memory_id in (edge.source_id, edge.target_id))
            for memory_id in memory_ids
            if tables.find(owner, memory_id) is not None
        }
        return {memory_id: edges[:MAX_EDGES_PER_MEMORY] for memory_id, edges in around.items() if edges}

    async def auto_link(self, key: int, near: Sequence[tuple[int, float]]) -> tuple[Edge, ...]:
        """See `GraphStore.auto_link`."""
        tables, now = self._tables, self._clock.now()
        source = tables.memories.get(key)
        added: list[Edge] = []
        for target_key, cosine in near:
            target = tables.memories.get(target_key)
            if source is None or target is None or not may_auto_link(source, target):
                continue
            if any({edge.source_id, edge.target_id} == {source.id, target.id} for edge in tables.edges):
                continue
            weight = min(max(cosine, 0.0), 1.0)
            tables.add_edge(source.id, target.id, Relation.RELATES_TO, at=now, weight=weight, origin=EdgeOrigin.AUTO)
            added.append(tables.edges[-1])
        return tuple(added)

    async def refine_edge(self, owner: str, edge_id: int, relation: Relation) -> Edge | None:
        """See `GraphStore.refine_edge`."""
        check_refinement(relation)
        tables = self._tables
        place = next((number for number, edge in enumerate(tables.edges) if edge.id == edge_id), None)
        if place is None or not _is_refinable(tables, owner, tables.edges[place], relation):
            return None
        tables.edges[place] = replace(tables.edges[place], relation=relation)
        tables.edge_origins[edge_id] = EdgeOrigin.DETECTED
        return tables.edges[place]

    def _put_edge(self, owner: str, new: NewEdge) -> StoredEdge:
        tables = self._tables
        source, target = _end(tables, owner, new.source_id), _end(tables, owner, new.target_id)
        triple = (source.id, target.id, new.relation)
        for place, edge in enumerate(tables.edges):
            if (edge.source_id, edge.target_id, edge.relation) == triple:
                if new.may_replace(tables.edge_origins.get(edge.id, EdgeOrigin.DECLARED)):
                    tables.edges[place] = replace(edge, weight=new.weight)
                    tables.edge_origins[edge.id] = new.origin
                return StoredEdge(tables.edges[place], is_created=False)
        is_superseding = new.relation is Relation.SUPERSEDES
        if is_superseding and closes_circle(InMemorySuccessionRows(tables), source.key, target.key):
            raise SupersessionCircleError(source.id, target.id)
        tables.add_edge(*triple, at=self._clock.now(), weight=new.weight, origin=new.origin)
        changed = settle(tables, [target.key]) if is_superseding else []
        return StoredEdge(tables.edges[-1], is_created=True, changed=tuple(changed))


def _is_refinable(tables: Tables, owner: str, edge: Edge, relation: Relation) -> bool:
    ends = {edge.source_id, edge.target_id}
    found = [tables.find(owner, memory_id) for memory_id in ends]
    return (
        tables.edge_origins.get(edge.id) is EdgeOrigin.AUTO
        and edge.relation is Relation.RELATES_TO
        and all(memory is not None and memory.state is MemoryState.ACTIVE for memory in found)
        and not any(
            {other.source_id, other.target_id} == ends and other.relation is relation and other.id != edge.id
            for other in tables.edges
        )
    )


def _end(tables: Tables, owner: str, memory_id: str) -> Memory:
    memory = tables.find(owner, memory_id)
    if memory is None or memory.state is MemoryState.FORGOTTEN:
        raise MemoryNotFoundError(memory_id)
    return memory


def _named_by(tables: Tables, owner: str, selector: EdgeSelector) -> set[int]:
    """Return the ids of the edges that a selector names."""
    own = [edge for edge in tables.edges if tables.find(owner, edge.source_id) is not None]
    if isinstance(selector, EdgeOfId):
        return {edge.id for edge in own if edge.id == selector.edge_id}
    if isinstance(selector, EdgesOfMemory):
        ids = {selector.memory_id}
        starts = [edge for edge in own if edge.source_id in ids and selector.direction is not Direction.IN]
        ends = [edge for edge in own if edge.target_id in ids and selector.direction is not Direction.OUT]
        found = [*starts, *ends]
    else:
        ids = {selector.source_id, selector.target_id}
        pair = (selector.source_id, selector.target_id)
        found = [edge for edge in own if (edge.source_id, edge.target_id) == pair]
    for memory_id in sorted(ids):
        if tables.find(owner, memory_id) is None:
            raise MemoryNotFoundError(memory_id)
    return {edge.id for edge in found if not selector.relations or edge.relation in selector.relations}
