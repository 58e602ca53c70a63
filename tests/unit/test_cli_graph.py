"""The commands on relations and the one that shows a context, against a scripted sidecar."""

import io
import json
import sys

import pytest

from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.errors import EdgeNotFoundError, MemoryNotFoundError
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to
from tests.unit.test_cli_commands import A, B, command

C = "mem_01J8ZQ6B2C4E6G8J0M2P4R6T8W"


def edge(number: int, source: str = A, target: str = B, relation: int = pb.RELATION_SUPERSEDES) -> pb.Edge:
    """Return a stored relation."""
    return pb.Edge(id=number, source_id=source, target_id=target, relation=relation, weight=0.5)  # type: ignore[arg-type]


def with_edges(*edges: pb.Edge) -> ScriptedSidecar:
    """Return a sidecar that knows these relations of A, and deletes by number."""
    return ScriptedSidecar(
        get_memory=service.GetMemoryResponse(edges=edges),
        delete_edges=lambda request: deleted(edge(request.edge_id)),
    )


def deleted(*edges: pb.Edge) -> graph.DeleteEdgesResponse:
    """Return that these relations, which nobody had declared, are gone."""
    gone = [graph.DeletedEdge(edge=one, origin=graph.EDGE_ORIGIN_AUTO) for one in edges]
    return graph.DeleteEdgesResponse(deleted_edge_ids=[one.id for one in edges], count=len(edges), deleted_edges=gone)


@pytest.mark.parametrize(("is_new", "told"), [(True, "(new)"), (False, "its weight is set")])
def test_relate_reads_as_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_new: bool, told: str
) -> None:
    """Source, relation, target: the order in which one would say it; the way back is told."""
    sidecar = ScriptedSidecar(relate=graph.RelateResponse(edge=edge(7), created=is_new))
    connect_to(monkeypatch, sidecar)
    assert command("relate", A, "supersedes", B, "--weight", "0.5") == 0
    printed = capsys.readouterr().out.replace("\n", " ")
    assert told in " ".join(printed.split())
    assert "sidecar unrelate 7" in printed
    request = sidecar.requests[0]
    assert (request.source_id, request.target_id, request.relation) == (A, B, pb.RELATION_SUPERSEDES)
    assert request.weight == 0.5


def test_unknown_relation_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error in the relation is told before any sidecar is asked."""
    assert command("relate", A, "replaces", B) == 2
    assert "derived_from" in capsys.readouterr().err


def test_relation_is_deleted_by_its_number_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number names exactly one relation, so there is nothing to ask."""
    sidecar = with_edges()
    connect_to(monkeypatch, sidecar)
    assert command("unrelate", "7") == 0
    printed = capsys.readouterr().out
    assert f"Deleted: relation 7, {A} supersedes {B} (made by itself" in printed
    assert f"undo: sidecar relate {A} supersedes {B} --weight 0.5" in printed
    assert [request.edge_id for request in sidecar.requests] == [7]


def test_relations_of_a_memory_are_shown_before_they_are_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal and without `--yes` nothing is deleted, in both forms."""
    sidecar = with_edges(edge(7), edge(8, C, A))
    connect_to(monkeypatch, sidecar)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert command("unrelate", A) == 0
    captured = capsys.readouterr()
    assert C in captured.out
    assert "--yes" in captured.err
    assert command("unrelate", A, "--json") == 0
    assert [found["id"] for found in json.loads(capsys.readouterr().out)["edges"]] == [7, 8]
    assert not any(isinstance(request, graph.DeleteEdgesRequest) for request in sidecar.requests)


@pytest.mark.parametrize(
    ("arguments", "deleted"),
    [
        ((A,), [7, 8, 9]),
        ((A, "--direction", "out"), [7, 9]),
        ((A, "--direction", "in"), [8]),
        ((A, "--relation", "caused_by"), [9]),
        ((A, B), [7, 9]),
        ((A, B, "--relation", "supersedes"), [7]),
        ((A, C), []),
    ],
)
def test_exactly_the_selected_relations_are_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], deleted: list[int]
) -> None:
    """Direction, pair and relation narrow it down; each deleted one says how it is made again."""
    sidecar = with_edges(edge(7), edge(8, C, A), edge(9, relation=pb.RELATION_CAUSED_BY))
    connect_to(monkeypatch, sidecar)
    assert command("unrelate", *arguments, "--yes") == 0
    found = [request.edge_id for request in sidecar.requests if isinstance(request, graph.DeleteEdgesRequest)]
    assert found == deleted
    assert capsys.readouterr().out.count("undo: sidecar relate") == len(deleted)


@pytest.mark.parametrize(
    "arguments",
    [
        ("7", A),
        ("7", "--direction", "out"),
        ("7", "--relation", "caused_by"),
        (A, B, C),
        (A, B, "--direction", "in"),
        (A, "7"),
        ("nonsense",),
    ],
)
def test_mixed_or_half_given_selectors_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """What could mean two things deletes nothing."""
    sidecar = with_edges(edge(7))
    connect_to(monkeypatch, sidecar)
    assert command("unrelate", *arguments, "--yes") == 2
    assert not sidecar.requests
    assert capsys.readouterr().err.startswith("Error: ")


def test_missing_relation_ends_with_seven(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A relation that is not there is told like a memory that is not there."""
    connect_to(monkeypatch, ScriptedSidecar(delete_edges=EdgeNotFoundError(7)))
    assert command("unrelate", "7") == 7
    connect_to(monkeypatch, ScriptedSidecar(get_memory=MemoryNotFoundError(A)))
    assert command("unrelate", A, "-y") == 7
    assert "Traceback" not in capsys.readouterr().err


def drawn() -> graph.InspectGraphResponse:
    """Return a graph of two memories."""
    nodes = [
        graph.GraphNode(id=A, preview="The new way", type=pb.MEMORY_TYPE_DECISION),
        graph.GraphNode(id=B, preview="The old \x1b[31mway", type=pb.MEMORY_TYPE_DECISION, depth=1),
    ]
    paths = [
        graph.GraphPath(node_ids=[A], relevance=1, total_weight=1),
        graph.GraphPath(node_ids=[A, B], relations=[pb.RELATION_SUPERSEDES], total_weight=0.5, relevance=0.35),
    ]
    mermaid = 'graph LR\n  n0["a"] -->|supersedes| n1["[bold]b"]'
    return graph.InspectGraphResponse(
        origin_id=A, nodes=nodes, edges=[edge(7)], paths=paths, truncated=["paths"], mermaid=mermaid
    )


def test_graph_shows_memories_relations_and_paths(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One look tells what is there, how it hangs together, and that there is more."""
    sidecar = ScriptedSidecar(inspect_graph=drawn())
    connect_to(monkeypatch, sidecar)
    assert command("graph", A, "--depth", "3", "--direction", "out", "--relation", "supersedes", "--no-scores") == 0
    captured = capsys.readouterr()
    for shown in (A, B, "supersedes", "0.350", "The new way"):
        assert shown in captured.out
    assert "\x1b" not in captured.out
    assert "paths" in captured.err
    request = sidecar.requests[0]
    assert (request.max_depth, request.direction, list(request.relations)) == (3, graph.DIRECTION_OUT, [2])
    assert request.include_scores is False


def test_mermaid_is_printed_alone_and_unwrapped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drawing is piped into another program, which a wrapped line would break."""
    answer = drawn()
    answer.mermaid += "x" * 300
    connect_to(monkeypatch, ScriptedSidecar(inspect_graph=answer))
    assert command("graph", A, "--mermaid") == 0
    assert capsys.readouterr().out == answer.mermaid + "\n"


def test_context_is_the_markdown_and_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was left out is said beside it; a person who looks is not an agent that was shown something."""
    answer = service.BuildContextResponse(markdown="# Memories\n\n> note\n", memory_ids=[A], dropped=3, overflow=2)
    sidecar = ScriptedSidecar(build_context=answer)
    connect_to(monkeypatch, sidecar)
    assert command("context", "pay", "the", "bill", "--budget", "500", "--kind", "task") == 0
    captured = capsys.readouterr()
    assert captured.out == "# Memories\n\n> note\n"
    assert "3 memories had no room" in captured.err
    assert "2 golden rules" in captured.err
    request = sidecar.requests[0]
    assert (request.query, request.token_budget, request.internal) == ("pay the bill", 500, True)
    assert request.kind == service.CONTEXT_KIND_TASK
    connect_to(monkeypatch, ScriptedSidecar(build_context=service.BuildContextResponse()))
    assert command("context") == 0
    assert "nothing to tell" in capsys.readouterr().err


def test_context_for_a_session_is_given_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts may brief an agent; once needs to know whom."""
    sidecar = ScriptedSidecar(build_context=service.BuildContextResponse())
    connect_to(monkeypatch, sidecar)
    options = ("--session", "s-1", "--client", "codex", "--once", "--min-relevance", "0.4")
    assert command("context", *options) == 0
    assert "told already" in capsys.readouterr().err
    request = sidecar.requests[0]
    assert (request.internal, request.once_per_session, request.min_relevance) == (False, True, 0.4)
    assert (request.context.session, request.context.client) == ("s-1", "codex")
    assert command("context", "--once") == 2
    assert "--session" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["relate", "inspect_graph", "build_context"])
def test_json_is_the_answer_of_the_contract(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Scripts get every field under its name in the contract."""
    calls = {
        "relate": (("relate", A, "supersedes", B), graph.RelateResponse(edge=edge(7)), "edge"),
        "inspect_graph": (("graph", A), drawn(), "origin_id"),
        "build_context": (("context",), service.BuildContextResponse(markdown="x"), "tokens_used"),
    }
    arguments, answer, field = calls[name]
    connect_to(monkeypatch, ScriptedSidecar(**{name: answer}))
    assert command(*arguments, "--json") == 0
    assert field in json.loads(capsys.readouterr().out)
