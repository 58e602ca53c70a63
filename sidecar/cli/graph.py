"""Commands on the relations between memories: relate, unrelate, graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import graph_service_pb2 as service
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as memory_service
from sidecar.cli import completing, values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output
from sidecar.domain.edge_paths import Direction
from sidecar.domain.ids import is_memory_id
from sidecar.domain.memory import Relation
from sidecar.errors import InvalidInputError

if TYPE_CHECKING:
    from sidecar.client import Sidecar

_RELATION = pb.Relation.DESCRIPTOR
_TYPE = pb.MemoryType.DESCRIPTOR
_PREVIEW_CHARACTERS = 80
_WHY = {
    service.EDGE_ORIGIN_UNSPECIFIED: "it is not known why it was there",
    service.EDGE_ORIGIN_DECLARED: "somebody declared it",
    service.EDGE_ORIGIN_AUTO: "made by itself, for nearness",
    service.EDGE_ORIGIN_INHERITED: "left by a memory that was purged",
    service.EDGE_ORIGIN_DETECTED: "found by comparing",
}
_ID_OF_EDGE_OR_MEMORIES = "the number of a relation, the id of a memory, or the ids of two"


def relate(
    context: typer.Context,
    *,
    source: Annotated[
        str,
        typer.Argument(help="Id of the memory it starts at.", metavar="SOURCE", autocompletion=completing.memory_ids),
    ],
    relation: Annotated[Relation, typer.Argument(help="What it says.", metavar="RELATION")],
    target: Annotated[
        str,
        typer.Argument(help="Id of the memory it leads to.", metavar="TARGET", autocompletion=completing.memory_ids),
    ],
    weight: Annotated[
        float | None,
        typer.Option(
            "--weight", "-w", min=0.0, max=1.0, help="How strong it is.", show_default="setting relate_weight"
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Relate two memories, read as a sentence: `sidecar relate A supersedes B`. Doing it again sets the weight.

    RELATION is `relates_to`, `supersedes`, `caused_by`, `contradicts` or `derived_from`.
    """
    call = Invocation.of(context, home, is_json=as_json)
    request = service.RelateRequest(
        source_id=source, target_id=target, relation=values.relation(relation), weight=weight
    )
    with call.sidecar() as sidecar:
        answer = sidecar.relate(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    edge = answer.edge
    how = "new" if answer.created else "it was there; its weight is set"
    call.output.line(f"Relation {edge.id}: {_sentence(edge)}, weight {edge.weight:.2f} ({how})")
    call.output.line(f"undo: sidecar unrelate {edge.id}", indent=3)


def unrelate(
    context: typer.Context,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            help="Number of a relation; or a memory, for all of its relations; or two.",
            metavar="ID…",
            autocompletion=completing.memory_ids,
        ),
    ],
    relations: values.RelationsOption = None,
    direction: Annotated[
        Direction | None,
        typer.Option("--direction", "-d", help="For one memory: which way they go.", show_default="both"),
    ] = None,
    yes: values.YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete relations: one by its number, those of a memory, or those from one memory to another.

    For memories it first shows which and asks; without a terminal only `--yes` goes on.
    """
    call = Invocation.of(context, home, is_json=as_json)
    edge_id = _checked_selector(what, relations, direction)
    with call.sidecar() as sidecar:
        if edge_id:
            answer = sidecar.delete_edges(service.DeleteEdgesRequest(edge_id=edge_id))
            _show_deleted(call.output, answer)
            return
        edges = _selected(sidecar, what, relations, direction or Direction.BOTH)
        if edges and not yes and not _consents(call.output, edges):
            return
        answer = _delete_each(sidecar, edges)
    _show_deleted(call.output, answer)


def graph(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=1, max=5, help="How many relations away.", show_default="setting graph_depth"),
    ] = None,
    direction: Annotated[
        Direction, typer.Option("--direction", "-d", help="Which way to follow relations.")
    ] = Direction.BOTH,
    relations: values.RelationsOption = None,
    decay: Annotated[
        float | None,
        typer.Option(
            "--decay",
            min=0.0,
            max=1.0,
            help="What is left of the relevance after each relation.",
            show_default="setting relation_decay",
        ),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores/--no-scores", help="Whether paths carry their relevance.")] = True,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Only the drawing, as Mermaid.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is related to a memory, as lists or as a drawing."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.InspectGraphRequest(
        memory_id=memory_id,
        max_depth=depth or 0,
        direction=values.direction(direction),
        relations=values.relations(relations),
        include_scores=scores,
        decay_factor=decay,
        include_mermaid=mermaid,
    )
    with call.sidecar() as sidecar:
        answer = sidecar.inspect_graph(request)
    if call.output.is_json:
        call.output.document(plain(answer))
    elif mermaid:
        call.output.raw(answer.mermaid)
    else:
        _show_graph(call.output, answer)
    if answer.truncated:
        call.output.warn(f"There is more than is shown of: {', '.join(answer.truncated)}.")


def _checked_selector(what: Sequence[str], relations: Sequence[Relation] | None, direction: Direction | None) -> int:
    """Return the number of the relation, 0 if memories were named."""
    is_number = what[0].isdecimal() and what[0].isascii()
    if is_number and (len(what) > 1 or relations or direction):
        raise InvalidInputError("ID", " ".join(what), "one number alone, without further options")
    if not is_number and (len(what) > 2 or not all(map(is_memory_id, what))):
        raise InvalidInputError("ID", " ".join(what), _ID_OF_EDGE_OR_MEMORIES)
    if len(what) == 2 and direction:
        raise InvalidInputError("--direction", direction.value, "left out for two memories: it is from first to second")
    return int(what[0]) if is_number else 0


def _selected(
    sidecar: "Sidecar", what: Sequence[str], relations: Sequence[Relation] | None, direction: Direction
) -> list[pb.Edge]:
    """Return the relations that are meant, as they are now."""
    answer = sidecar.get_memory(memory_service.GetMemoryRequest(memory_id=what[0]))
    wanted = set(values.relations(relations)) or set(pb.Relation.values())
    return [
        edge
        for edge in answer.edges
        if edge.relation in wanted and (_leads(edge, what) if len(what) == 2 else _goes(edge, what[0], direction))
    ]


def _leads(edge: pb.Edge, pair: Sequence[str]) -> bool:
    return [edge.source_id, edge.target_id] == list(pair)


def _goes(edge: pb.Edge, memory_id: str, direction: Direction) -> bool:
    if direction is Direction.BOTH:
        return True
    return (edge.source_id if direction is Direction.OUT else edge.target_id) == memory_id


def _consents(output: Output, edges: Sequence[pb.Edge]) -> bool:
    """Show what would be deleted and return whether to go on."""
    if output.is_json:
        output.document({"preview": True, "edges": [plain(edge) for edge in edges]})
        return False
    output.table(("number", "from", "relation", "to"), [_row(edge) for edge in edges])
    what = "this relation" if len(edges) == 1 else f"these {len(edges)} relations"
    if not output.can_ask:
        output.note(f"Nothing was changed. Add `--yes` to delete {what}.")
        return False
    if typer.confirm(f"Delete {what}?", err=True):
        return True
    output.note("Nothing was changed.")
    return False


def _delete_each(sidecar: "Sidecar", edges: Sequence[pb.Edge]) -> service.DeleteEdgesResponse:
    """Delete exactly the relations that were shown; there may be others by now."""
    outcome = service.DeleteEdgesResponse()
    for edge in edges:
        answer = sidecar.delete_edges(service.DeleteEdgesRequest(edge_id=edge.id))
        outcome.MergeFrom(answer)
    outcome.count = len(outcome.deleted_edge_ids)
    return outcome


def _show_deleted(output: Output, answer: service.DeleteEdgesResponse) -> None:
    """Show each relation that is gone, and how to make it again."""
    if output.is_json:
        output.document(plain(answer))
        return
    for deleted in answer.deleted_edges:
        edge = deleted.edge
        output.line(f"Deleted: relation {edge.id}, {_sentence(edge)} ({_WHY[deleted.origin]})")
        output.line(f"undo: sidecar relate {_sentence(edge)} --weight {edge.weight!r}", indent=3)
    if not answer.deleted_edge_ids:
        output.note("There is no such relation; nothing was changed.")


def _show_graph(output: Output, answer: service.InspectGraphResponse) -> None:
    rows = [
        (
            str(node.depth),
            node.id,
            short_name(_TYPE, node.type),
            output.preview(node.preview, limit=_PREVIEW_CHARACTERS),
        )
        for node in answer.nodes
    ]
    output.entries(("hops", "id", "type", "memory"), rows)
    if not answer.edges:
        output.note("Nothing is related to it that way. `sidecar relate` makes relations.")
        return
    output.line()
    output.table(("number", "from", "relation", "to"), [_row(edge) for edge in answer.edges])
    output.line()
    paths = [
        (
            f"{path.relevance:.3f}" if path.HasField("relevance") else "-",
            f"{path.total_weight:.2f}",
            " → ".join(short_name(_RELATION, relation) for relation in path.relations),
            path.node_ids[-1],
        )
        for path in answer.paths
        if path.relations
    ]
    output.table(("relevance", "weight", "path", "to"), paths)


def _row(edge: pb.Edge) -> tuple[str, str, str, str]:
    return str(edge.id), edge.source_id, short_name(_RELATION, edge.relation), edge.target_id


def _sentence(edge: pb.Edge) -> str:
    return f"{edge.source_id} {short_name(_RELATION, edge.relation)} {edge.target_id}"
