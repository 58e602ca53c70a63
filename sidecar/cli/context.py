"""The command `context`: shows what an agent would be given at its start.

Leaves no trace, unless it says for which session it is: then it is a briefing like any other, so that a script can give
it to an agent that has neither hooks nor tools.
"""

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from sidecar.api.plain import plain
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.cli import completing
from sidecar.cli.invocation import CLIENT, HomeOption, Invocation, JsonOption, project_here
from sidecar.cli.output import Output
from sidecar.errors import InvalidInputError


class ContextKind(StrEnum):
    """What a context is for."""

    SESSION = "session"
    TASK = "task"


_BudgetOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--budget",
        "-b",
        min=100,
        max=100_000,
        help="Most tokens of everything but golden rules.",
        show_default="setting context_tokens",
    ),
]
_RelevanceOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--min-relevance",
        min=0.0,
        max=1.0,
        help="What QUERY finds is at least so relevant.",
        show_default="setting recall_floor",
    ),
]


def context(
    context: typer.Context,
    *,
    query: Annotated[
        list[str] | None, typer.Argument(help="What the work is about.", metavar="[QUERY…]", show_default=False)
    ] = None,
    budget: _BudgetOption = None,
    kind: Annotated[ContextKind, typer.Option("--kind", help="What it is for.")] = ContextKind.SESSION,
    max_golden_rules: Annotated[
        int | None,
        typer.Option(
            "--max-golden-rules", min=1, max=100, help="Most golden rules.", show_default="setting context_golden_rules"
        ),
    ] = None,
    min_relevance: _RelevanceOption = None,
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="ID",
            help="Give it to this session: it counts as shown there.",
            autocompletion=completing.sessions,
        ),
    ] = "",
    client: Annotated[str, typer.Option("--client", metavar="NAME", help="The session's client.")] = CLIENT,
    once: Annotated[bool, typer.Option("--once", help="Nothing, if the session was given one of this kind.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the context an agent would be given: golden rules, then what matters most, or bears on QUERY."""
    call = Invocation.of(context, home, is_json=as_json)
    if once and not session:
        raise InvalidInputError("--once", "no session", "the session's id in `--session`")
    request = service.BuildContextRequest(
        query=" ".join(query or ()),
        token_budget=budget or 0,
        kind=service.ContextKind.Value(f"CONTEXT_KIND_{kind.name}"),
        max_golden_rules=max_golden_rules or 0,
        min_relevance=min_relevance,
        internal=not session,
        once_per_session=once,
        context=CallContext(client=client, session=session, project=project_here()),
    )
    with call.sidecar() as sidecar, call.output.waiting("Choosing memories …"):
        answer = sidecar.build_context(request)
    _show(call.output, answer, is_once=once)


def _show(output: Output, answer: service.BuildContextResponse, *, is_once: bool) -> None:
    if output.is_json:
        output.document(plain(answer))
        return
    if answer.markdown:
        output.raw(answer.markdown)
    elif is_once:
        output.note("There is nothing to tell, or this session was told already.")
    else:
        output.note("There is nothing to tell yet about this project.")
    if answer.dropped:
        output.note(f"{answer.dropped} memories had no room; `--budget` makes some.")
    if answer.overflow:
        output.note(f"{answer.overflow} golden rules are left out; `--max-golden-rules` shows more.")
