"""How memories are related: as a picture to move about in, and as the same relations in a table.

The picture is drawn from the data that this page gives its script; everything in it is text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from sidecar.domain.display import one_line
from sidecar.domain.graph_view import DEFAULT_GRAPH_DEPTH, GraphQuery
from sidecar.domain.memory import MemoryType, Relation
from sidecar.domain.store_values import Edge
from sidecar.use_cases.browse import Selection
from sidecar.web.page import Page, PageRoute, Visit

_EVERYWHERE: Final = "*"
_MOST_NODES: Final = 1000
_PREVIEW_CHARACTERS: Final = 90
_ROWS: Final = 200
_COLUMNS: Final = (("From", "wrap"), ("Relation", ""), ("To", "wrap"))


@dataclass(frozen=True, slots=True)
class _Node:
    id: str
    preview: str
    type: MemoryType


@dataclass(frozen=True, slots=True)
class _Row:
    """An edge with what its ends say."""

    edge: Edge
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class _Picture:
    """Nodes and the edges between them. `looked_at`: among how many memories."""

    nodes: Sequence[_Node]
    edges: Sequence[Edge]
    looked_at: int


async def graph(visit: Visit) -> Response:
    """Show the page."""
    seed, namespace = visit.query("seed").strip(), visit.query("namespace").strip()
    depth = visit.number("depth", DEFAULT_GRAPH_DEPTH)
    picture = await _picture(visit)
    texts = {node.id: node.preview for node in picture.nodes}
    return visit.show(
        "graph/page.html",
        {
            "seed": seed,
            "namespace": namespace,
            "depth": depth,
            "depths": [(str(each), f"{each} steps" if each > 1 else "1 step") for each in range(1, 6)],
            "relations": [each.value for each in Relation],
            "columns": _COLUMNS,
            "picture": picture,
            "rows": [_Row(e, texts[e.source_id], texts[e.target_id]) for e in picture.edges[:_ROWS]],
            "data_address": visit.site.url("graph", "data", seed=seed, namespace=namespace, depth=depth),
            "memories_address": visit.site.url("memories"),
        },
    )


async def data(visit: Visit) -> Response:
    """Give the picture to the script."""
    picture = await _picture(visit)
    return visit.data({"nodes": _plain_nodes(picture.nodes), "edges": _plain_edges(picture.edges)})


async def _picture(visit: Visit) -> _Picture:
    seed = visit.query("seed").strip()
    if seed:
        depth = visit.number("depth", DEFAULT_GRAPH_DEPTH)
        view = await visit.services.graph.run(visit.caller, GraphQuery(seed, max_depth=depth))
        return _Picture([_Node(n.id, n.preview, n.type) for n in view.nodes], view.edges, len(view.nodes))
    selection = Selection(namespace=visit.query("namespace").strip() or _EVERYWHERE)
    page = await visit.services.browse.list_page(visit.caller, selection, limit=_MOST_NODES)
    edges = await visit.services.graph.between(visit.caller, [memory.id for memory in page.memories])
    related = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    nodes = [
        _Node(memory.id, one_line(memory.content, limit=_PREVIEW_CHARACTERS), memory.type)
        for memory in page.memories
        if memory.id in related
    ]
    return _Picture(nodes, edges, len(page.memories))


def _plain_nodes(nodes: Iterable[_Node]) -> list[Mapping[str, str]]:
    return [{"id": node.id, "text": node.preview, "type": node.type.value} for node in nodes]


def _plain_edges(edges: Iterable[Edge]) -> list[Mapping[str, str]]:
    return [
        {"id": f"edge-{e.id}", "source": e.source_id, "target": e.target_id, "relation": e.relation.value}
        for e in edges
    ]


PAGE: Final = Page(
    name="graph",
    title="Graph",
    path="graph",
    order=30,
    icon="M4 11.5l3-5M9 6.5l3 4M5 13h5M3 11.5h2v3H3zM7 3.5h2v3H7zM11 10.5h2v3h-2z",
    routes=(PageRoute("", graph), PageRoute("data", data)),
)
