"""What surrounds a memory, as values to show: nodes, edges and paths. Reads no store and draws nothing.

Runs in rounds like `Expansion`; a last one asks for the edges between the memories that are shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sidecar.domain.display import one_line
from sidecar.domain.edge_paths import (
    ANY_RELATION,
    RELATION_WEIGHTS,
    Direction,
    EdgePath,
    EdgesById,
    RelationChoice,
    RelationWeights,
)
from sidecar.domain.expansion import DEFAULT_DECAY, Expansion, ExpansionQuery, Reached
from sidecar.domain.memory import Memory, MemoryType, Relation
from sidecar.domain.store_values import Edge

DEFAULT_GRAPH_DEPTH: Final = 2
MAX_NODES: Final = 100
MAX_EDGES: Final = 200
MAX_PATHS: Final = 50
PREVIEW_CHARACTERS: Final = 150


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """What to look at.

    Attributes:
        max_depth: Most edges from the origin, 1 to 5.
        direction: Which way edges are followed, at every step.
        is_scored: Whether paths carry their relevance.
        decay: What is left of the relevance after each edge, 0 to 1.
        relation_weights: See `ExpansionQuery`.
    """

    origin_id: str
    max_depth: int = DEFAULT_GRAPH_DEPTH
    direction: Direction = Direction.BOTH
    relations: RelationChoice = ANY_RELATION
    is_scored: bool = True
    decay: float = DEFAULT_DECAY
    relation_weights: RelationWeights = field(default_factory=lambda: RELATION_WEIGHTS)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A memory of the graph. `preview` is one line of at most 150 characters; `depth` counts edges from the origin."""

    id: str
    preview: str
    type: MemoryType
    confidence: float
    importance: float
    depth: int


@dataclass(frozen=True, slots=True)
class GraphPath:
    """The most relevant way from the origin to a memory.

    Attributes:
        memory_ids: From the origin to the end.
        relations: Between them, one fewer.
        edge_ids: See `relations`.
        total_weight: Product of the weights, 0 to 1.
        relevance: As in recall, for an origin of similarity 1; None without scores.
    """

    memory_ids: tuple[str, ...]
    relations: tuple[Relation, ...]
    edge_ids: tuple[int, ...]
    total_weight: float
    relevance: float | None


@dataclass(frozen=True, slots=True)
class GraphStats:
    """How much is shown. `deepest` is the largest depth of a node."""

    node_count: int
    edge_count: int
    path_count: int
    deepest: int


@dataclass(frozen=True, slots=True)
class GraphView:
    """What surrounds a memory.

    Attributes:
        nodes: The origin first, then the nearest, the most relevant first among equally near ones.
        edges: Between these nodes, by id.
        paths: One to each node, the most relevant first.
        truncated: Which of `nodes`, `edges` and `paths` were cut at their caps.
    """

    origin_id: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    paths: tuple[GraphPath, ...]
    stats: GraphStats
    truncated: tuple[str, ...]


class GraphWalk:
    """One look at what surrounds a memory."""

    def __init__(self, query: GraphQuery) -> None:
        """Start at the origin; see `ExpansionQuery` for what is refused."""
        self._query = query
        self._edges: dict[str, tuple[Edge, ...]] = {}
        self._expansion = Expansion(
            [(query.origin_id, 1.0)],
            ExpansionQuery(
                max_depth=query.max_depth,
                decay=query.decay,
                relations=query.relations,
                direction=query.direction,
                max_visited=MAX_NODES,
                min_relevance=0.0,
                relation_weights=query.relation_weights,
            ),
        )

    def wanted(self) -> tuple[str, ...]:
        """See `Expansion.wanted`."""
        missing = self._expansion.wanted()
        return missing or tuple(memory_id for memory_id in self.memory_ids() if memory_id not in self._edges)

    def feed(self, edges: EdgesById) -> None:
        """See `Expansion.feed`."""
        for memory_id in self.wanted():
            self._edges[memory_id] = tuple(edges.get(memory_id, ()))
        if self._expansion.wanted():
            self._expansion.feed(edges)

    def memory_ids(self) -> tuple[str, ...]:
        """Return the memories that are shown so far, the origin first."""
        return (self._query.origin_id, *(reached.memory_id for reached in self._by_distance()))

    def view(self, memories: Mapping[str, Memory]) -> GraphView:
        """Return what was found, once nothing more is wanted.

        Args:
            memories: Those of `memory_ids`; what leads over one that is missing, since it is gone, is left out.
        """
        nodes = self._nodes(memories)
        all_paths = [
            r.path for r in self._expansion.reached() if all(step_id in memories for step_id in r.path.memory_ids)
        ]
        paths = all_paths[:MAX_PATHS]
        all_edges = self._edges_among({node.id for node in nodes}, paths)
        edges = tuple(sorted(all_edges[:MAX_EDGES], key=lambda edge: edge.id))
        caps = {
            "nodes": self._expansion.is_capped,
            "edges": len(all_edges) > MAX_EDGES,
            "paths": len(all_paths) > MAX_PATHS,
        }
        deepest = max((node.depth for node in nodes), default=0)
        return GraphView(
            origin_id=self._query.origin_id,
            nodes=nodes,
            edges=edges,
            paths=tuple(map(self._graph_path, paths)),
            stats=GraphStats(len(nodes), len(edges), len(paths), deepest),
            truncated=tuple(name for name, is_cut in caps.items() if is_cut),
        )

    def _by_distance(self) -> list[Reached]:
        # Stable: `reached` comes by relevance.
        return sorted(self._expansion.reached(), key=lambda reached: reached.distance)

    def _nodes(self, memories: Mapping[str, Memory]) -> tuple[GraphNode, ...]:
        depths = {self._query.origin_id: 0} | {r.memory_id: r.distance for r in self._by_distance()}
        return tuple(_node(memories[memory_id], depth) for memory_id, depth in depths.items() if memory_id in memories)

    def _edges_among(self, shown: set[str], paths: list[EdgePath]) -> list[Edge]:
        """Return the edges between these nodes, those of the paths first, then the heaviest."""
        on_paths = {step.edge_id for path in paths for step in path.steps}
        among = {
            edge.id: edge
            for memory_id in shown
            for edge in self._edges.get(memory_id, ())
            if {edge.source_id, edge.target_id} <= shown and self._query.relations.covers(edge.relation)
        }
        return sorted(among.values(), key=lambda edge: (edge.id not in on_paths, -edge.weight, edge.id))

    def _graph_path(self, path: EdgePath) -> GraphPath:
        return GraphPath(
            path.memory_ids,
            path.relations,
            tuple(step.edge_id for step in path.steps),
            path.total_weight,
            self._relevance(path) if self._query.is_scored else None,
        )

    def _relevance(self, path: EdgePath) -> float:
        query = self._query
        return path.relevance(1.0, decay=query.decay, relation_weights=query.relation_weights)


def _node(memory: Memory, depth: int) -> GraphNode:
    return GraphNode(
        memory.id,
        one_line(memory.content, limit=PREVIEW_CHARACTERS),
        memory.type,
        memory.confidence,
        memory.importance,
        depth,
    )
