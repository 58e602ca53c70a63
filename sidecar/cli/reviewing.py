"""The command `review`: memories that misled, and settling one of them.

A memory that only a judge speaks against has no dispute that could be resolved; one is opened then, and ended at once.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sidecar.api.plain import plain
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.cli import values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output
from sidecar.cli.session_view import first_words
from sidecar.domain.ids import is_memory_id
from sidecar.errors import InvalidInputError

if TYPE_CHECKING:
    from sidecar.client import Sidecar

_MOST_ITEMS: Final = 1000


class Decision(StrEnum):
    """What becomes of a memory that misled. ACCEPT: it did, and goes. DISMISS: it did not, and is cleared."""

    ACCEPT = "accept"
    DISMISS = "dismiss"


def review(
    context: typer.Context,
    *,
    memory_id: Annotated[
        str, typer.Argument(help="Settle this one of the list.", metavar="[ID]", show_default=False)
    ] = "",
    decision: Annotated[
        Decision | None,
        typer.Argument(
            help="`accept`: it misleads, forget it; `dismiss`: it holds, clear it of what was said against it.",
            metavar="[accept|dismiss]",
            show_default=False,
        ),
    ] = None,
    successor: Annotated[
        str, typer.Option("--by", metavar="ID", help="With `accept`: the memory that takes its place.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, help="Most memories to show.")] = 100,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List memories that misled more than one session since that was last settled, or settle one of them."""
    call = Invocation.of(context, home, is_json=as_json)
    if not memory_id:
        with call.sidecar() as sidecar:
            answer = sidecar.list_review_items(insights.ListReviewItemsRequest(limit=limit))
            listed = () if call.output.is_json else [item.memory_id for item in answer.items]
            texts = first_words(call.output, sidecar, listed)
        _show_items(call.output, answer, texts)
        return
    if decision is None:
        raise InvalidInputError("decision", "", "`accept` or `dismiss` behind the id")
    if successor and (decision is Decision.DISMISS or not is_memory_id(successor)):
        raise InvalidInputError("--by", successor, "the id of a memory, `mem_…`, and only with `accept`")
    with call.sidecar() as sidecar:
        settled = _settle(sidecar, values.memory_id(memory_id), decision, successor)
    _show_settled(call.output, settled)


@dataclass(frozen=True, slots=True)
class _Settled:
    """What was done, and the commands that undo it."""

    memory_id: str
    told: str
    undo: tuple[str, ...]
    dispute_ids: tuple[int, ...] = ()


def _settle(sidecar: "Sidecar", memory_id: str, decision: Decision, successor: str) -> _Settled:
    items = sidecar.list_review_items(insights.ListReviewItemsRequest(limit=_MOST_ITEMS)).items
    item = next((one for one in items if one.memory_id == memory_id), None)
    if item is None:
        raise InvalidInputError("memory_id", memory_id, "a memory that `sidecar review` lists")
    is_rule = sidecar.explain_memory(insights.ExplainMemoryRequest(memory_id=memory_id)).standing_rule
    settled, resolution = _outcome(memory_id, decision, successor)
    settled = replace(settled, dispute_ids=tuple(item.dispute_ids) or (_opened(sidecar, item),))
    for dispute_id in settled.dispute_ids:
        sidecar.resolve_dispute(
            validation.ResolveDisputeRequest(dispute_id=dispute_id, resolution=resolution, successor_id=successor)
        )
    if decision is Decision.DISMISS or not is_rule:
        return settled
    sidecar.demote_memory(validation.DemoteMemoryRequest(memory_id=memory_id))
    return replace(
        settled,
        told=f"{settled.told} It was a standing rule: take it out of where it is delivered, too.",
        undo=(*settled.undo, f"sidecar promote {memory_id}"),
    )


def _outcome(memory_id: str, decision: Decision, successor: str) -> tuple[_Settled, validation.Resolution.ValueType]:
    if decision is Decision.DISMISS:
        told = f"{memory_id} stands, and is cleared of what was said against it until now."
        return _Settled(memory_id, told, (f"sidecar challenge {memory_id} REASON",)), validation.RESOLUTION_KEEP
    if successor:
        undo = f"sidecar unrelate {successor} {memory_id} --relation supersedes"
        return _Settled(memory_id, f"{memory_id} is replaced by {successor}.", (undo,)), validation.RESOLUTION_SUPERSEDE
    return (
        _Settled(memory_id, f"{memory_id} is forgotten.", (f"sidecar restore {memory_id}",)),
        validation.RESOLUTION_RETIRE,
    )


def _opened(sidecar: "Sidecar", item: insights.ReviewItem) -> int:
    reason = f"misled {item.signals} sessions, says {', '.join(item.sources)}; settled in a review"
    request = validation.ChallengeMemoryRequest(memory_id=item.memory_id, reason=reason)
    return sidecar.challenge_memory(request).dispute.id


def _show_settled(output: Output, settled: _Settled) -> None:
    if output.is_json:
        output.document(asdict(settled))
        return
    output.line(settled.told)
    for command in settled.undo:
        output.line(f"undo: {command}", indent=3)


def _show_items(output: Output, answer: insights.ListReviewItemsResponse, texts: Mapping[str, str]) -> None:
    if output.is_json:
        output.document(plain(answer))
        return
    if not answer.items:
        output.note("No memory needs a review.")
        return
    rows = [
        (
            item.memory_id,
            str(item.signals),
            item.latest_time.ToDatetime().strftime("%Y-%m-%d %H:%M"),
            ", ".join(item.sources),
            ", ".join(str(number) for number in item.dispute_ids) or "-",
            texts[item.memory_id],
        )
        for item in answer.items
    ]
    output.entries(("memory", "misled", "latest", "says who", "disputes", "its text"), rows)
    output.note(
        "`sidecar why ID` shows the evidence. `sidecar review ID accept` forgets it, `accept --by ID` replaces it, and "
        "`dismiss` clears it; each tells how to undo that."
    )
