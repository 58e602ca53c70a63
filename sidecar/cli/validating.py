"""Commands on whether a memory holds: apply, outcome, validate, history, contradictions, supersedes."""

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import validation_service_pb2 as service
from sidecar.cli import values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output
from sidecar.domain.confidence import ValidationKind

_KIND = service.ValidationKind.DESCRIPTOR
_TYPE = pb.MemoryType.DESCRIPTOR
_VETO = service.VetoReason.DESCRIPTOR


class Verdict(StrEnum):
    """How it went with a memory."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


VerdictArgument: TypeAlias = Annotated[
    Verdict, typer.Argument(help="`succeeded` or `failed`.", metavar="succeeded|failed")
]


def apply(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    doing: Annotated[str, typer.Option("--context", "-c", metavar="TEXT", help="What is being done.")] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Note that a memory is being acted upon; `sidecar outcome` then tells how it went."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        answer = sidecar.apply_memory(service.ApplyMemoryRequest(memory_id=memory_id, context=doing))
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        call.output.line(f"Noted: {memory_id} is being acted upon.")


def outcome(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    verdict: VerdictArgument,
    error: Annotated[str, typer.Option("--error", "-e", metavar="TEXT", help="What went wrong.")] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report how acting upon a memory ended; moves its confidence."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.RecordOutcomeRequest(memory_id=memory_id, success=verdict is Verdict.SUCCEEDED, error=error)
    with call.sidecar() as sidecar:
        answer = sidecar.record_outcome(request)
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show_change(call.output, answer.change)


def validate(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    verdict: VerdictArgument,
    adjustment: Annotated[
        float | None,
        typer.Option(
            "--adjustment",
            "-a",
            min=0.0,
            max=1.0,
            help="How far confidence moves up; down it moves further, by the setting failure_factor.",
            show_default="setting validation_adjustment",
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say outright whether a memory holds; moves its confidence."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ValidateMemoryRequest(
        memory_id=memory_id, success=verdict is Verdict.SUCCEEDED, adjustment=adjustment
    )
    with call.sidecar() as sidecar:
        answer = sidecar.validate_memory(request)
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show_change(call.output, answer.change)


def history(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    kind: Annotated[
        ValidationKind | None, typer.Option("--kind", "-k", help="Only this kind.", show_default="all")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-l", min=1, max=1000, help="Most events to show.", show_default="setting listed_events"
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was reported about a memory, newest first, and the figures over all of it."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ListValidationEventsRequest(memory_id=memory_id, limit=limit or 0)
    if kind:
        request.kind = service.ValidationKind.Value(f"VALIDATION_KIND_{kind.name}")
    with call.sidecar() as sidecar:
        answer = sidecar.list_validation_events(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    if answer.events:
        call.output.entries(("time", "kind", "said", "text"), [_event_row(event) for event in answer.events])
    summary = answer.summary
    rate = f"{summary.success_rate:.0%}" if summary.HasField("success_rate") else "not known"
    call.output.line(
        f"In all {summary.total}: {summary.applied} applied, {summary.succeeded} succeeded, {summary.failed} failed; "
        f"success rate {rate}"
    )


def contradictions(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0.0,
            max=1.0,
            help="Lowest raw cosine of what is compared.",
            show_default="setting contradiction_threshold",
        ),
    ] = None,
    edges: Annotated[
        bool, typer.Option("--edges/--no-edges", help="Whether a `contradicts` relation is made for each.")
    ] = True,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for memories that contradict one, and relate them."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.DetectContradictionsRequest(
        memory_id=memory_id, similarity_threshold=threshold, create_edges=edges
    )
    with call.sidecar() as sidecar, call.output.waiting("Comparing …"):
        answer = sidecar.detect_contradictions(request)
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show_contradictions(call.output, answer)
    for text in answer.not_checked:
        call.output.note(f"Not checked: {text}")


def supersedes(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    edge: Annotated[
        bool, typer.Option("--edge/--no-edge", help="Whether a `supersedes` relation is made if there is one.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Golden rules may be replaced, too.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for an older memory that this one has proved better than, and replace it."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.CheckSupersedesRequest(memory_id=memory_id, create_edge=edge, force=force)
    with call.sidecar() as sidecar, call.output.waiting("Comparing …"):
        answer = sidecar.check_supersedes(request)
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show_supersession(call.output, answer)
    for text in answer.not_checked:
        call.output.note(f"Not checked: {text}")


def _show_supersession(output: Output, answer: service.CheckSupersedesResponse) -> None:
    if not answer.superseded_id:
        output.line(f"It replaces none: {answer.reason}")
        return
    what = "Replaced" if answer.edge_id else "Would replace"
    output.line(f"{what}: {answer.superseded_id}, {answer.reason}")
    if answer.edge_id:
        output.line(f"undo: sidecar unrelate {answer.edge_id}", indent=3)
    for veto in answer.vetoes:
        output.line(f"{veto.memory_id} stays: {short_name(_VETO, veto.reason)}, says the language model", indent=3)


def _show_change(output: Output, change: service.ConfidenceChange) -> None:
    kind = short_name(_TYPE, change.type)
    told = (
        ", now a golden rule" if change.promoted else f", no longer a golden rule but {kind}" if change.demoted else ""
    )
    output.line(f"Confidence {change.old_confidence:.2f} → {change.new_confidence:.2f}{told}")


def _event_row(event: service.ValidationEvent) -> tuple[str, str, str, str]:
    time = event.create_time.ToDatetime().strftime("%Y-%m-%d %H:%M")
    return time, short_name(_KIND, event.kind), "outright" if event.direct else "-", event.error or event.context or "-"


def _show_contradictions(output: Output, answer: service.DetectContradictionsResponse) -> None:
    for found in answer.contradictions:
        output.line(f"{found.memory_id}  {found.method}  similarity {found.similarity:.2f}", style="bold")
        if found.own_part or found.other_part:
            output.line(f"here “{found.own_part}”, there “{found.other_part}”", indent=3)
        if found.edge_id:
            output.line(f"relation {found.edge_id}; undo: sidecar unrelate {found.edge_id}", indent=3)
    if not answer.contradictions:
        output.note(f"None of {answer.compared} near memories contradicts it.")
