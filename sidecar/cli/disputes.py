"""Commands on memories that mislead or are standing rules: challenge, disputes, resolve, promote, demote."""

from typing import Annotated

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import validation_service_pb2 as service
from sidecar.cli import completing, values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.domain.disputes import Resolution
from sidecar.domain.ids import is_memory_id
from sidecar.errors import InvalidInputError

_RESOLUTION = service.Resolution.DESCRIPTOR


def challenge(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    reason: Annotated[list[str], typer.Argument(help="What is wrong with it.", metavar="REASON…")],
    evidence: Annotated[str, typer.Option("--evidence", "-e", metavar="TEXT", help="What shows it.")] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that a memory misleads: opens a dispute, and it ranks lower at once. `sidecar resolve` ends it."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ChallengeMemoryRequest(memory_id=memory_id, reason=" ".join(reason), evidence=evidence)
    with call.sidecar() as sidecar:
        answer = sidecar.challenge_memory(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    number = answer.dispute.id
    call.output.line(
        f"Dispute {number} is open" + (" already; nothing was changed." if answer.already_pending else ".")
    )
    call.output.line(f"undo: sidecar resolve {number} keep", indent=3)


def disputes(
    context: typer.Context,
    *,
    memory_id: Annotated[
        str,
        typer.Argument(
            help="Only about this memory.", metavar="[ID]", show_default=False, autocompletion=completing.memory_ids
        ),
    ] = "",
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-l", min=1, max=1000, help="Most disputes to show.", show_default="setting listed_disputes"
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List open disputes, newest first."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ListDisputesRequest(memory_id=memory_id, include_resolved=everything, limit=limit or 0)
    with call.sidecar() as sidecar:
        answer = sidecar.list_disputes(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    if answer.disputes:
        columns = ("number", "opened", "state", "memory", "reason")
        call.output.entries(columns, [_row(dispute) for dispute in answer.disputes])
    else:
        call.output.note("No dispute is open." if not everything else "There is no dispute.")


def resolve(
    context: typer.Context,
    *,
    dispute: Annotated[
        int, typer.Argument(help="Number of the dispute.", metavar="NUMBER", min=1, autocompletion=completing.disputes)
    ],
    resolution: Annotated[Resolution, typer.Argument(help="How it ends.", metavar="keep|retire|supersede")],
    successor: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="ID",
            help="With `supersede`: the memory that takes its place.",
            autocompletion=completing.memory_ids,
        ),
    ] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a dispute: keep the memory, retire it, or have another take its place. `sidecar restore` undoes `retire`."""
    if (resolution is Resolution.SUPERSEDE) != bool(successor):
        raise InvalidInputError("--by", successor, "an id with `supersede`, and left out otherwise")
    if successor and not is_memory_id(successor):
        raise InvalidInputError("--by", successor, "the id of a memory, `mem_…`")
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ResolveDisputeRequest(
        dispute_id=dispute,
        resolution=service.Resolution.Value(f"RESOLUTION_{resolution.name}"),
        successor_id=successor,
    )
    with call.sidecar() as sidecar:
        answer = sidecar.resolve_dispute(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    memory_id = answer.dispute.memory_id
    ended = {
        Resolution.KEEP: f"{memory_id} stands.",
        Resolution.RETIRE: f"{memory_id} is forgotten.",
        Resolution.SUPERSEDE: f"{memory_id} is replaced by {successor}.",
    }
    call.output.line(f"Dispute {answer.dispute.id} has ended: {ended[resolution]}")
    undo = {
        Resolution.RETIRE: f"undo: sidecar restore {memory_id}",
        Resolution.SUPERSEDE: f"undo: sidecar unrelate {successor} {memory_id} --relation supersedes",
    }
    if resolution in undo:
        call.output.line(undo[resolution], indent=3)


def promote(
    context: typer.Context, *, memory_id: values.MemoryArgument, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Mark a memory as delivered elsewhere as a standing rule, such as in CLAUDE.md; it ranks lower in recall."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        answer = sidecar.promote_memory(service.PromoteMemoryRequest(memory_id=memory_id))
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    call.output.line(f"{memory_id} {'was promoted already' if answer.already_promoted else 'is promoted'}.")
    call.output.line(f"undo: sidecar demote {memory_id}", indent=3)


def demote(
    context: typer.Context, *, memory_id: values.MemoryArgument, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """Take a promotion back."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        answer = sidecar.demote_memory(service.DemoteMemoryRequest(memory_id=memory_id))
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        told = "is no longer promoted" if answer.was_promoted else "was not promoted; nothing was changed"
        call.output.line(f"{memory_id} {told}.")


def _row(dispute: service.Dispute) -> tuple[str, ...]:
    opened = dispute.create_time.ToDatetime().strftime("%Y-%m-%d %H:%M")
    state = short_name(_RESOLUTION, dispute.resolution) or "open"
    return str(dispute.id), opened, state, dispute.memory_id, dispute.reason
