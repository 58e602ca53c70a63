"""The command `context`: shows what an agent would be given at its start. Leaves no trace in the evidence."""

from enum import StrEnum
from typing import Annotated

import typer

from sidecar.api.plain import plain
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption


class ContextKind(StrEnum):
    """What a context is for."""

    SESSION = "session"
    TASK = "task"


def context(
    context: typer.Context,
    *,
    query: Annotated[
        list[str] | None, typer.Argument(help="What the work is about.", metavar="[QUERY…]", show_default=False)
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            "-b",
            min=100,
            max=100_000,
            help="Most tokens of everything but golden rules.",
            show_default="setting context_tokens",
        ),
    ] = None,
    kind: Annotated[ContextKind, typer.Option("--kind", help="What it is for.")] = ContextKind.SESSION,
    max_golden_rules: Annotated[
        int | None,
        typer.Option(
            "--max-golden-rules", min=1, max=100, help="Most golden rules.", show_default="setting context_golden_rules"
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the context an agent would be given: golden rules, then what matters most, or bears on QUERY."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.BuildContextRequest(
        query=" ".join(query or ()),
        token_budget=budget or 0,
        kind=service.ContextKind.Value(f"CONTEXT_KIND_{kind.name}"),
        max_golden_rules=max_golden_rules or 0,
        internal=True,
    )
    with call.sidecar() as sidecar, call.output.waiting("Choosing memories …"):
        answer = sidecar.build_context(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    if answer.markdown:
        call.output.raw(answer.markdown)
    else:
        call.output.note("There is nothing to tell yet about this project.")
    if answer.dropped:
        call.output.note(f"{answer.dropped} memories had no room; `--budget` makes some.")
    if answer.overflow:
        call.output.note(f"{answer.overflow} golden rules are left out; `--max-golden-rules` shows more.")
