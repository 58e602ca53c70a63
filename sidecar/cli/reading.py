"""Commands that look: recall, get, list, count. They count no access and leave no trace in the evidence."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import rendering, values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption, project_here
from sidecar.cli.output import Output
from sidecar.cli.typed_text import text_of
from sidecar.domain.memory import MemoryState, MemoryType, Relation
from sidecar.domain.namespace import EVERYTHING
from sidecar.domain.store_values import OrderBy

if TYPE_CHECKING:
    from sidecar.client import Sidecar

_FIRST_STEPS = (
    'There are no memories yet. Store one with `sidecar remember "…"`, or watch the whole loop with `sidecar demo`.'
)
_LEG = service.RecallLeg.DESCRIPTOR
_PREVIEW_CHARACTERS = 200

_LimitOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--limit", "-l", min=1, max=100, help="Most memories to show.", show_default="setting default_results"
    ),
]
_DepthOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--depth", min=1, max=5, help="Related ones so many relations away.", show_default="setting expand_depth"
    ),
]
_MostRelatedOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--max-related", min=1, max=100, help="Most related ones.", show_default="setting expand_max"),
]
_DecayOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--decay",
        min=0.0,
        max=1.0,
        help="What is left of the relevance after each relation.",
        show_default="setting relation_decay",
    ),
]
_FollowOption: TypeAlias = Annotated[
    list[Relation] | None, typer.Option("--follow", help="Follow only this relation.", show_default="all")
]
_AvoidOption: TypeAlias = Annotated[
    list[Relation] | None, typer.Option("--avoid", help="Never follow this relation; wins over `--follow`.")
]


def recall(
    context: typer.Context,
    *,
    query: Annotated[
        list[str], typer.Argument(help="What you want to know, in words; `-` reads it from stdin.", metavar="QUERY…")
    ],
    limit: _LimitOption = None,
    namespace: values.ReadNamespaceOption = "",
    types: values.TypesOption = None,
    min_importance: values.MinImportanceOption = 0.0,
    include_superseded: Annotated[
        bool, typer.Option("--include-superseded", help="Show memories that were replaced, too.")
    ] = False,
    related: Annotated[
        bool, typer.Option("--related", "-r", help="Also memories that are related to those found.")
    ] = False,
    depth: _DepthOption = None,
    most_related: _MostRelatedOption = None,
    decay: _DecayOption = None,
    follow: _FollowOption = None,
    avoid: _AvoidOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score came about.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the memories that bear on a question."""
    from sidecar.client.readiness import wait_for_model  # noqa: PLC0415

    call = Invocation.of(context, home, is_json=as_json)
    request = service.RecallRequest(
        query=text_of(query, what="query"),
        n_results=limit or 0,
        namespace=values.namespace(namespace),
        memory_types=values.memory_types(types),
        min_importance=min_importance,
        include_superseded=include_superseded,
        include_related=related,
        max_depth=depth or 0,
        max_expanded=most_related or 0,
        decay_factor=decay,
        include_edge_types=values.relations(follow),
        exclude_edge_types=values.relations(avoid),
        explain=explain,
        internal=True,
    )
    with call.sidecar() as sidecar:
        with call.output.waiting("Loading the model …"):
            wait_for_model(sidecar)
        answer = sidecar.recall(request)
        is_store_empty = not answer.memories and _is_empty(sidecar)
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show_recall(call.output, answer, explain=explain)
    for leg in answer.degraded:
        call.output.note(f"Note: recall by {short_name(_LEG, leg.leg)} did not take part: {leg.reason}")
    if not answer.memories:
        call.output.note(
            _FIRST_STEPS if is_store_empty else f"Nothing bears on that in {_place(namespace)}. {_elsewhere(namespace)}"
        )


def get(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one memory in whatever state, with its relations and what is known of its use."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        answer = sidecar.get_memory(service.GetMemoryRequest(memory_id=values.memory_id(memory_id)))
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    memory = answer.memory
    call.output.line(memory.content)
    call.output.line()
    facts = {
        "id": memory.id,
        "type": rendering.type_name(memory),
        "state": rendering.state_name(memory)
        + (f", replaced by {memory.superseded_by}" if memory.superseded_by else ""),
        "namespace": memory.namespace,
        "importance": f"{memory.importance:.2f}",
        "confidence": f"{memory.confidence:.2f}",
        "source": short_name(pb.Provenance.DESCRIPTOR, memory.provenance)
        + (f", {memory.client}" if memory.client else ""),
        "stored": memory.create_time.ToJsonString(),
        "delivered": rendering.counted(memory.access_count, "time"),
        "use": rendering.use(answer),
    }
    call.output.table(("", ""), list(facts.items()))
    if answer.edges:
        call.output.line()
        rows = [
            (str(edge.id), edge.source_id, short_name(pb.Relation.DESCRIPTOR, edge.relation), edge.target_id)
            for edge in answer.edges
        ]
        call.output.table(("number", "from", "relation", "to"), rows)
    if answer.usage_events:
        call.output.line()
        columns = ("when", "client", "session", "says", "weight")
        call.output.table(columns, [rendering.usage_row(event) for event in answer.usage_events])


def list_memories(
    context: typer.Context,
    *,
    namespace: values.ReadNamespaceOption = "",
    types: values.TypesOption = None,
    states: Annotated[
        list[MemoryState] | None,
        typer.Option("--state", help="Only this state; may be given several times.", show_default="active"),
    ] = None,
    min_importance: values.MinImportanceOption = 0.0,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-l", min=1, max=1000, help="Most memories to show.", show_default="setting page_size"),
    ] = None,
    order: Annotated[OrderBy, typer.Option("--order-by", help="What to order by.")] = OrderBy.CREATED_AT,
    ascending: Annotated[bool, typer.Option("--ascending", help="Smallest or oldest first.")] = False,
    page: Annotated[str, typer.Option("--page", help="Token that the page before ended with.", metavar="TOKEN")] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List memories, newest first."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ListMemoriesRequest(
        filter=_filter(namespace, types, states, min_importance),
        page_size=limit or 0,
        page_token=page,
        order_by=values.order_by(order),
        ascending=ascending,
    )
    with call.sidecar() as sidecar:
        answer = sidecar.list_memories(request)
        is_store_empty = not answer.memories and _is_empty(sidecar)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    if answer.memories:
        now = datetime.now(UTC)
        rows = [
            (
                memory.id,
                rendering.type_name(memory),
                rendering.memory_age(memory, now=now),
                call.output.preview(memory.content, limit=_PREVIEW_CHARACTERS),
            )
            for memory in answer.memories
        ]
        call.output.entries(("id", "type", "age", "memory"), rows)
    else:
        call.output.note(_FIRST_STEPS if is_store_empty else f"None in {_place(namespace)}. {_elsewhere(namespace)}")
    if answer.next_page_token:
        call.output.note(f"There are more: add `--page {answer.next_page_token}`.")


def count(
    context: typer.Context,
    *,
    namespace: values.ReadNamespaceOption = EVERYTHING,
    types: values.TypesOption = None,
    states: Annotated[
        list[MemoryState] | None,
        typer.Option("--state", help="Only this state; may be given several times.", show_default="active"),
    ] = None,
    min_importance: values.MinImportanceOption = 0.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count memories by namespace, type and state."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.CountMemoriesRequest(filter=_filter(namespace, types, states, min_importance))
    with call.sidecar() as sidecar:
        answer = sidecar.count_memories(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    rows = [("total", "", str(answer.total))]
    for name, counts in (
        ("namespace", answer.by_namespace),
        ("type", answer.by_type),
        ("state", answer.by_state),
    ):
        rows += [(name, key, str(counts[key])) for key in sorted(counts)]
    call.output.table(("by", "", "memories"), rows)


def _show_recall(output: Output, answer: service.RecallResponse, *, explain: bool) -> None:
    now = datetime.now(UTC)
    for number, found in enumerate(answer.memories, start=1):
        output.line(f"{number}. {rendering.heading(found, now=now)}", style="bold")
        output.line(found.memory.content, indent=3)
        if explain:
            for line in rendering.score_parts(found):
                output.line(line, style="dim", indent=3)
    for reached in answer.expanded:
        output.line(f"+  {rendering.related_heading(reached)}", style="bold")
        output.line(reached.memory.content, indent=3)
    if answer.total_matched > answer.total:
        output.note(f"{answer.total} of {answer.total_matched}; `--limit` shows more.")


def _filter(
    namespace: str, types: list[MemoryType] | None, states: list[MemoryState] | None, min_importance: float
) -> service.MemoryFilter:
    return service.MemoryFilter(
        namespace=values.namespace(namespace),
        memory_types=values.memory_types(types),
        states=values.memory_states(states),
        min_importance=min_importance,
    )


def _place(namespace: str) -> str:
    return values.covered(namespace, project=project_here())


def _elsewhere(namespace: str) -> str:
    return "" if namespace == EVERYTHING else "`--namespace '*'` looks into every project."


def _is_empty(sidecar: "Sidecar") -> bool:
    everything = service.MemoryFilter(namespace=EVERYTHING)
    return sidecar.count_memories(service.CountMemoriesRequest(filter=everything)).total == 0
