"""Looks at what is related to a memory. Changes nothing, and nothing counts as delivered."""

from collections.abc import Collection
from dataclasses import dataclass, field

from sidecar.domain.edge_paths import RELATION_WEIGHTS, RelationWeights
from sidecar.domain.expansion import DEFAULT_DECAY
from sidecar.domain.graph_view import DEFAULT_GRAPH_DEPTH, GraphQuery, GraphView, GraphWalk
from sidecar.domain.memory import Caller
from sidecar.domain.store_values import Edge
from sidecar.ports import GraphStore, MemoryStore
from sidecar.use_cases.memory_ids import memories_of, require_id


@dataclass(frozen=True, slots=True)
class GraphDefaults:
    """What holds where the caller says nothing; see `GraphQuery`."""

    max_depth: int = DEFAULT_GRAPH_DEPTH
    decay: float = DEFAULT_DECAY
    relation_weights: RelationWeights = field(default_factory=lambda: RELATION_WEIGHTS)


class InspectGraph:
    """Reads the graph around a memory."""

    def __init__(self, *, store: MemoryStore, graph: GraphStore, defaults: GraphDefaults) -> None:
        self.defaults = defaults
        self._store = store
        self._graph = graph

    async def run(self, caller: Caller, query: GraphQuery) -> GraphView:
        """Return what surrounds a memory.

        Raises:
            InvalidInputError: If the id is missing, or depth or decay is outside its bounds.
            MemoryNotFoundError: If the memory is not there.
        """
        walk = GraphWalk(query)
        await self._store.get(caller.owner, require_id(query.origin_id))
        while wanted := walk.wanted():
            walk.feed(await self._graph.neighbours(caller.owner, wanted))
        return walk.view(await memories_of(self._store, caller.owner, walk.memory_ids()))

    async def between(self, caller: Caller, memory_ids: Collection[str]) -> list[Edge]:
        """Return the edges that lead from one of these memories to another, by id."""
        wanted = set(memory_ids)
        if not wanted:
            return []
        edges = await self._graph.neighbours(caller.owner, sorted(wanted))
        both = {edge.id: edge for around in edges.values() for edge in around if edge.target_id in wanted}
        return [edge for _, edge in sorted(both.items()) if edge.source_id in wanted]
