"""The commands put together, and what happens when one fails."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer
from typer._click.core import Command, Context
from typer.core import TyperGroup

from sidecar import __version__
from sidecar.cli import (
    activity,
    backups,
    connecting,
    context,
    dashboard,
    disputes,
    exporting,
    graph,
    health,
    importing_command,
    ingesting,
    insights,
    lifecycle,
    overview,
    reading,
    reviewing,
    status,
    streams,
    usefulness,
    validating,
    writing,
)
from sidecar.cli.command_help import DescribedCommand
from sidecar.cli.doctor_command import doctor
from sidecar.cli.exit_codes import ExitCode, epilog, exit_code_of
from sidecar.cli.invocation import Globals, HomeOption, Invocation, JsonOption, Serve
from sidecar.cli.output import Output
from sidecar.errors import SidecarError

PROGRAM: Final = "sidecar"
# Not SIDECAR_…, which are settings of the sidecar.
DEBUG_VARIABLE: Final = "MEMORY_SIDECAR_TRACEBACK"

_DAILY: Final = "Memories"
_GRAPH: Final = "Relations"
_HOLDS: Final = "Whether they hold"
_USE: Final = "How useful they are"
_KEEPING: Final = "Copies"
_CLIENTS: Final = "Clients"
_RUNNING: Final = "The sidecar itself"
_SHOWING: Final = "Seeing it work"
_COMMANDS: Final[tuple[tuple[str, str, Callable[..., None]], ...]] = (
    (_DAILY, "remember", writing.remember),
    (_DAILY, "recall", reading.recall),
    (_DAILY, "get", reading.get),
    (_DAILY, "list", reading.list_memories),
    (_DAILY, "count", reading.count),
    (_DAILY, "forget", writing.forget),
    (_DAILY, "restore", writing.restore),
    (_DAILY, "context", context.context),
    (_GRAPH, "relate", graph.relate),
    (_GRAPH, "unrelate", graph.unrelate),
    (_GRAPH, "graph", graph.graph),
    (_HOLDS, "apply", validating.apply),
    (_HOLDS, "outcome", validating.outcome),
    (_HOLDS, "validate", validating.validate),
    (_HOLDS, "history", validating.history),
    (_HOLDS, "challenge", disputes.challenge),
    (_HOLDS, "disputes", disputes.disputes),
    (_HOLDS, "resolve", disputes.resolve),
    (_HOLDS, "promote", disputes.promote),
    (_HOLDS, "demote", disputes.demote),
    (_HOLDS, "review", reviewing.review),
    (_HOLDS, "contradictions", validating.contradictions),
    (_HOLDS, "supersedes", validating.supersedes),
    (_HOLDS, "health", health.health),
    (_USE, "insights", insights.insights),
    (_USE, "dashboard", dashboard.dashboard),
    (_USE, "why", usefulness.why),
    (_USE, "judge", usefulness.judge),
    (_USE, "hygiene", usefulness.hygiene),
    (_USE, "replay", usefulness.replay),
    (_KEEPING, "export", exporting.export),
    (_KEEPING, "import", importing_command.import_),
    (_KEEPING, "backup", backups.backup),
    (_KEEPING, "restore-backup", backups.restore_backup),
    (_CLIENTS, "connect", connecting.connect),
    (_CLIENTS, "disconnect", connecting.disconnect),
    (_CLIENTS, "connections", connecting.connections),
    (_RUNNING, "status", status.status),
    (_RUNNING, "doctor", doctor),
    (_RUNNING, "start", lifecycle.start),
    (_RUNNING, "stop", lifecycle.stop),
    (_RUNNING, "restart", lifecycle.restart),
    (_RUNNING, "mcp", lifecycle.mcp),
    (_RUNNING, "lsp", lifecycle.lsp),
    (_RUNNING, "hook", lifecycle.hook),
    (_SHOWING, "ingest", ingesting.ingest),
    (_SHOWING, "sessions", status.sessions),
    (_SHOWING, "files", activity.files),
)
_GROUPS: Final[tuple[tuple[str, str, str, tuple[tuple[str, Callable[..., None]], ...]], ...]] = (
    (_SHOWING, "activity", "Note what sessions do with files; `sidecar files` lists them.", (("add", activity.add),)),
)
"""Panel, name and help of commands that have commands of their own."""

# Their imports are heavy, and most runs want neither.
_LATE: Final = {
    "judge-eval": "sidecar.cli.judging.command",
    "demo": "sidecar.cli.demo.command",
    "bench": "sidecar.cli.bench.command",
}


class _CommandsWithLateOnes(TyperGroup):
    """Imports the commands of `_LATE` only when they are run or listed."""

    def list_commands(self, ctx: Context) -> list[str]:
        """See `TyperGroup.list_commands`."""
        return [*super().list_commands(ctx), *_LATE]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """See `TyperGroup.get_command`."""
        if cmd_name not in _LATE:
            return super().get_command(ctx, cmd_name)
        function = getattr(importlib.import_module(_LATE[cmd_name]), cmd_name.replace("-", "_"))
        alone = typer.Typer(add_completion=False)
        alone.command(cmd_name, cls=DescribedCommand, rich_help_panel=_SHOWING)(function)
        return typer.main.get_command(alone)


def build(serve: Serve) -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        cls=_CommandsWithLateOnes,
        help="Durable, shared memory for coding agents that knows which memories helped.",
        epilog=epilog(),
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def _globals(
        called: typer.Context,
        *,
        home: HomeOption = None,
        as_json: JsonOption = False,
        version: Annotated[  # noqa: ARG001 - acted on by its callback
            bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
        ] = False,
    ) -> None:
        called.obj = Globals(serve, home, as_json)
        if called.invoked_subcommand is None:
            overview.show_overview(Invocation.of(called, home, is_json=as_json))

    for panel, name, command in _COMMANDS:
        app.command(name, cls=DescribedCommand, rich_help_panel=panel)(command)
    for panel, name, about, commands in _GROUPS:
        group = typer.Typer(help=about, no_args_is_help=True, add_completion=False)
        for command_name, command in commands:
            group.command(command_name, cls=DescribedCommand)(command)
        app.add_typer(group, name=name, rich_help_panel=panel)
    # The server reads its own flags, one for each setting.
    passed_on = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command("serve", rich_help_panel=_RUNNING, context_settings=passed_on)(lifecycle.serve)
    return app


def run_command(arguments: Sequence[str], *, serve: Serve) -> int:
    """Run one command and return its exit code. No error leaves it as a traceback."""
    streams.open_stderr()
    streams.accept_every_text()
    try:
        return _run_and_tell(arguments, serve)
    finally:
        streams.settle()


def _run_and_tell(arguments: Sequence[str], serve: Serve) -> int:
    output = Output(is_json="--json" in _options(arguments))
    if sys.stdout is None:
        # Checked first: what a command did before it found out could not be told.
        output.failure("OUTPUT_FAILED", "stdout is closed; nothing was done", ExitCode.FAILED)
        return ExitCode.FAILED
    try:
        return _invoke(arguments, serve)
    except SidecarError as error:
        output.error(error)
        return exit_code_of(error)
    except typer.TyperException as error:
        # Without a word: the help was shown already, since nothing else was asked for.
        if error.format_message():
            output.failure("USAGE", error.format_message(), error.exit_code)
            output.note("`sidecar --help` lists the commands, `sidecar COMMAND --help` what one takes.")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        output.failure("INTERRUPTED", "interrupted", ExitCode.INTERRUPTED)
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort, told in one line
        _tell_fault(output, error)
        return ExitCode.FAILED


def _tell_fault(output: Output, error: Exception) -> None:
    """Tell of a stdout that takes nothing, else of a fault of ours."""
    if isinstance(error, BrokenPipeError):
        # Whoever read the answer, such as `head`, has seen enough of it.
        return
    problem = streams.problem_of_stdout(error)
    if problem:
        output.failure("OUTPUT_FAILED", f"the answer could not be written: {problem}", ExitCode.FAILED)
    else:
        output.failure("INTERNAL", f"{type(error).__name__}: {error}. {_kept_traceback()}", ExitCode.FAILED)


def _invoke(arguments: Sequence[str], serve: Serve) -> int:
    outcome = typer.main.get_command(build(serve)).main(
        args=list(arguments), prog_name=PROGRAM, standalone_mode=False, windows_expand_args=False
    )
    # While a failure can still be told: at the end of the process it would be a traceback.
    sys.stdout.flush()
    # `Exit` comes back as its code, and a command that just ends as nothing.
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _options(arguments: Sequence[str]) -> Sequence[str]:
    """Return what stands ahead of `--`; behind it everything is text."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _kept_traceback() -> str:
    """Show the traceback if that was asked for, and say how else to see it."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
        return "Please report it."
    return f"Please report it; {DEBUG_VARIABLE}=1 shows where it happened, and the sidecar's own log is in <home>/logs."


def _show_version(is_asked: bool) -> None:  # noqa: FBT001 - typer calls it by position
    if is_asked:
        typer.echo(f"memory-sidecar {__version__}")
        raise typer.Exit
