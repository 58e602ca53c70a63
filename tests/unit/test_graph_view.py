"""The graph view: what it shows, where it cuts, and that no text breaks out of the drawing."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.domain.display import one_line
from sidecar.domain.edge_paths import Direction, RelationChoice
from sidecar.domain.graph_view import (
    MAX_EDGES,
    MAX_NODES,
    MAX_PATHS,
    PREVIEW_CHARACTERS,
    GraphQuery,
    GraphView,
    GraphWalk,
)
from sidecar.domain.memory import Memory, MemoryType, Relation
from sidecar.domain.mermaid import mermaid
from sidecar.domain.store_values import Edge
from tests.unit.test_expansion import Graph, edge, edges_of, graphs

NOW = datetime(2026, 3, 1, tzinfo=UTC)

NODE = re.compile(r'  (n\d+)\["((?:[A-Za-z0-9 .,:\-_/]|[^\W\d_]|#\d+;)*)"\]')
EDGE = re.compile(r'  (n\d+) -->\|"([a-z_]+) (\d\.\d\d)"\| (n\d+)')
OTHER = re.compile(r"flowchart LR|  style n\d+ stroke-width:3px|  %% (nodes|edges|paths) cut at the cap")

HOSTILE_TEXTS = (
    'a"]; click n0 "javascript:alert(1)"',
    "x\n  n9[evil]",
    "`code` ```mermaid\nflowchart```",
    "%%{init: {'theme':'dark'}}%%",
    "end\nsubgraph s",
    "#quot;]#35;",
    '"]-->|x|n1',
    "\x1b[31mred\x07 \u202eesrever\u2028line",
    "<img src=x onerror=alert(1)>",
    "a\\\"b {} () | & ; 'q'",
)


def memory(memory_id: str, content: str = "text") -> Memory:
    return Memory(memory_id, "ada", "global", MemoryType.DECISION, content, "", NOW, NOW)


def look(graph: Graph, query: GraphQuery, texts: dict[str, str] | None = None) -> GraphView:
    walk = GraphWalk(query)
    while wanted := walk.wanted():
        walk.feed(edges_of(graph, wanted))
    return walk.view({name: memory(name, (texts or {}).get(name, name)) for name in walk.memory_ids()})


def drawn_labels(drawing: str) -> dict[str, str]:
    """Parse a drawing by a grammar that has no room for anything else, and return node name and decoded label."""
    labels: dict[str, str] = {}
    for line in drawing.removesuffix("\n").split("\n"):
        if found := NODE.fullmatch(line):
            labels[found[1]] = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), found[2])
        elif found := EDGE.fullmatch(line):
            assert {found[1], found[4]} <= labels.keys()
            assert found[2] in set(Relation)
        else:
            assert OTHER.fullmatch(line), f"not of the grammar: {line!r}"
    return labels


def test_small_graph_to_the_field() -> None:
    """Nodes by distance, edges with the database's ids, one path to each node."""
    graph = (
        edge(11, "a", Relation.SUPERSEDES, "b"),
        edge(12, "b", Relation.RELATES_TO, "c", 0.8),
        edge(13, "c", Relation.RELATES_TO, "d", 0.8),
    )
    view = look(graph, GraphQuery("a"), {"a": "line\nbreak " + "x" * 200})
    assert [(node.id, node.depth) for node in view.nodes] == [("a", 0), ("b", 1), ("c", 2)]
    assert view.nodes[0].preview.startswith("line break x")
    assert len(view.nodes[0].preview) == PREVIEW_CHARACTERS
    assert [e.id for e in view.edges] == [11, 12]
    assert [(p.memory_ids, p.edge_ids, p.total_weight) for p in view.paths] == [
        (("a", "b"), (11,), 1.0),
        (("a", "b", "c"), (11, 12), 0.8),
    ]
    assert view.paths[1].relevance == pytest.approx(0.328, abs=5e-4)
    assert view.paths[1].relations == (Relation.SUPERSEDES, Relation.RELATES_TO)
    assert (view.stats.node_count, view.stats.edge_count, view.stats.path_count, view.stats.deepest) == (3, 2, 2, 2)
    assert view.truncated == ()


def test_edges_between_the_outermost_nodes_are_shown() -> None:
    """Two neighbours that contradict each other are worth seeing although no path needs that edge."""
    graph = (
        edge(1, "a", Relation.RELATES_TO, "b"),
        edge(2, "a", Relation.RELATES_TO, "c"),
        edge(3, "b", Relation.CONTRADICTS, "c"),
        edge(4, "c", Relation.RELATES_TO, "far"),
    )
    assert [e.id for e in look(graph, GraphQuery("a", max_depth=1)).edges] == [1, 2, 3]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [(Direction.OUT, ["a", "out"]), (Direction.IN, ["a", "in"]), (Direction.BOTH, ["a", "in", "out"])],
)
def test_direction_is_kept(direction: Direction, expected: list[str]) -> None:
    """Outgoing shows what a memory points to, incoming what points to it."""
    graph = (edge(1, "a", Relation.RELATES_TO, "out"), edge(2, "in", Relation.RELATES_TO, "a"))
    assert sorted(node.id for node in look(graph, GraphQuery("a", direction=direction)).nodes) == expected


def test_relation_filter_and_scores_off() -> None:
    """Edges of other relations are neither followed nor shown; without scores paths have none."""
    graph = (edge(1, "a", Relation.CAUSED_BY, "b"), edge(2, "a", Relation.RELATES_TO, "b"))
    query = GraphQuery("a", relations=RelationChoice(frozenset({Relation.CAUSED_BY})), is_scored=False)
    view = look(graph, query)
    assert [e.id for e in view.edges] == [1]
    assert [p.relevance for p in view.paths] == [None]


def test_caps_hold_and_are_said() -> None:
    """A hub with a thousand neighbours shows the nearest hundred nodes, and says what was cut."""
    spokes = tuple(edge(n, "hub", Relation.RELATES_TO, f"m{n:04}", n / 1000) for n in range(1, 1001))
    rim = tuple(
        edge(10 * n + 10_000 + k, f"m{n:04}", Relation.RELATES_TO, f"m{n - k:04}", 0.5)
        for n in range(1000, 900, -1)
        for k in (1, 2, 3)
    )
    view = look(spokes + rim, GraphQuery("hub"))
    assert (len(view.nodes), len(view.edges), len(view.paths)) == (MAX_NODES, MAX_EDGES, MAX_PATHS)
    assert view.truncated == ("nodes", "edges", "paths")
    shown = {e.id for e in view.edges}
    assert all(shown.issuperset(path.edge_ids) for path in view.paths)
    assert mermaid(view).count(" cut at the cap") == 3
    drawn_labels(mermaid(view))


@given(graphs(), st.integers(1, 5), st.sampled_from(list(Direction)))
def test_view_is_closed(graph: Graph, depth: int, direction: Direction) -> None:
    """Every edge and path lies among the nodes; each node but the origin has a path, none deeper than asked for."""
    view = look(graph, GraphQuery("a", max_depth=depth, direction=direction))
    names = {node.id for node in view.nodes}
    assert view.nodes[0].id == "a"
    assert [node.depth for node in view.nodes] == sorted(node.depth for node in view.nodes)
    assert {path.memory_ids[-1] for path in view.paths} == names - {"a"}
    assert all({e.source_id, e.target_id} <= names for e in view.edges)
    assert all(set(path.memory_ids) <= names and len(path.relations) <= depth for path in view.paths)


def test_what_is_gone_meanwhile_is_left_out() -> None:
    """A memory purged between two reads takes its edges and the paths over it with it."""
    graph = (edge(1, "a", Relation.RELATES_TO, "b"), edge(2, "b", Relation.RELATES_TO, "c"))
    walk = GraphWalk(GraphQuery("a"))
    while wanted := walk.wanted():
        walk.feed(edges_of(graph, wanted))
    view = walk.view({"a": memory("a"), "c": memory("c")})
    assert [node.id for node in view.nodes] == ["a", "c"]
    assert (view.edges, view.paths) == ((), ())


def test_lone_memory_is_a_graph() -> None:
    """Without edges there is one node, and nothing else."""
    view = look((), GraphQuery("a"))
    assert drawn_labels(mermaid(view)) == {"n0": "a decision: a"}
    assert view.paths == ()


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=300), st.sampled_from(HOSTILE_TEXTS)), st.text(max_size=40))
def test_no_label_breaks_out(first: str, second: str) -> None:
    """Whatever a memory says, the drawing parses line by line, and its label reads as it was shown."""
    view = look((edge(1, "a", Relation.CONTRADICTS, "b", 0.25),), GraphQuery("a"), {"a": first, "b": second})
    labels = drawn_labels(mermaid(view))
    assert labels == {
        "n0": f"a decision: {one_line(first, limit=PREVIEW_CHARACTERS)}",
        "n1": f"b decision: {one_line(second, limit=PREVIEW_CHARACTERS)}",
    }


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_texts_stay_one_line_each(text: str) -> None:
    """Two nodes and one edge are six lines at most, whatever they say."""
    pair: tuple[Edge, ...] = (edge(1, "a", Relation.RELATES_TO, "b"),)
    drawing = mermaid(look(pair, GraphQuery("a"), {"a": text, "b": text}))
    assert len(drawing.splitlines()) == 5
    assert not set('`\\{}()<>&"') & set(drawing.splitlines()[1].removeprefix('  n0["').removesuffix('"]'))
