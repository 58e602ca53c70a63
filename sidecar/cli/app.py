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
from sidecar.cli import streams
from sidecar.cli.command_help import DescribedCommand
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
_COMMANDS: Final[tuple[tuple[str, str, str], ...]] = (
    (_DAILY, "remember", "writing:remember"),
    (_DAILY, "recall", "reading:recall"),
    (_DAILY, "get", "reading:get"),
    (_DAILY, "list", "reading:list_memories"),
    (_DAILY, "count", "reading:count"),
    (_DAILY, "forget", "writing:forget"),
    (_DAILY, "restore", "writing:restore"),
    (_DAILY, "context", "context:context"),
    (_GRAPH, "relate", "graph:relate"),
    (_GRAPH, "unrelate", "graph:unrelate"),
    (_GRAPH, "graph", "graph:graph"),
    (_HOLDS, "apply", "validating:apply"),
    (_HOLDS, "outcome", "validating:outcome"),
    (_HOLDS, "validate", "validating:validate"),
    (_HOLDS, "history", "validating:history"),
    (_HOLDS, "challenge", "disputes:challenge"),
    (_HOLDS, "disputes", "disputes:disputes"),
    (_HOLDS, "resolve", "disputes:resolve"),
    (_HOLDS, "promote", "disputes:promote"),
    (_HOLDS, "demote", "disputes:demote"),
    (_HOLDS, "review", "reviewing:review"),
    (_HOLDS, "contradictions", "validating:contradictions"),
    (_HOLDS, "supersedes", "validating:supersedes"),
    (_HOLDS, "health", "health:health"),
    (_USE, "insights", "insights:insights"),
    (_USE, "dashboard", "dashboard:dashboard"),
    (_USE, "why", "usefulness:why"),
    (_USE, "judge", "usefulness:judge"),
    (_USE, "hygiene", "usefulness:hygiene"),
    (_USE, "replay", "usefulness:replay"),
    (_KEEPING, "export", "exporting:export"),
    (_KEEPING, "import", "importing_command:import_"),
    (_KEEPING, "backup", "backups:backup"),
    (_KEEPING, "restore-backup", "backups:restore_backup"),
    (_CLIENTS, "connect", "connecting:connect"),
    (_CLIENTS, "disconnect", "connecting:disconnect"),
    (_CLIENTS, "connections", "connecting:connections"),
    (_RUNNING, "status", "status:status"),
    (_RUNNING, "doctor", "doctor_command:doctor"),
    (_RUNNING, "start", "lifecycle:start"),
    (_RUNNING, "stop", "lifecycle:stop"),
    (_RUNNING, "restart", "lifecycle:restart"),
    (_RUNNING, "mcp", "lifecycle:mcp"),
    (_RUNNING, "lsp", "lifecycle:lsp"),
    (_RUNNING, "hook", "lifecycle:hook"),
    (_SHOWING, "ingest", "ingesting:ingest"),
    (_SHOWING, "sessions", "status:sessions"),
    (_SHOWING, "files", "activity:files"),
    (_RUNNING, "serve", "lifecycle:serve"),
    (_SHOWING, "judge-eval", "judging.command:judge_eval"),
    (_SHOWING, "demo", "demo.command:demo"),
    (_SHOWING, "bench", "bench.command:bench"),
    (_SHOWING, "activity add", "activity:add"),
)
"""Panel, name, and where below `sidecar.cli` the function is; imported when it is run or listed, not before."""

_GROUPS: Final = {"activity": (_SHOWING, "Note what sessions do with files; `sidecar files` lists them.")}
"""Panel and help of commands that have commands of their own."""

# The server reads its own flags, one for each setting.
_PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": list[str]()}
_SERVE: Final = "serve"


class _LateCommands(TyperGroup):
    """Knows the names of all commands, and imports one when it is asked for."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - as `TyperGroup` has it
        """See `TyperGroup.list_commands`."""
        return list(dict.fromkeys(name.partition(" ")[0] for _, name, _ in _COMMANDS))

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        """See `TyperGroup.get_command`."""
        if cmd_name in _GROUPS:
            return _group(cmd_name)
        found = next((row for row in _COMMANDS if row[1] == cmd_name), None)
        if found is None:
            return None
        panel, _, place = found
        alone = typer.Typer(add_completion=False)
        settings = _PASSED_ON if cmd_name == _SERVE else None
        alone.command(cmd_name, cls=DescribedCommand, rich_help_panel=panel, context_settings=settings)(
            _function(place)
        )
        return typer.main.get_command(alone)


def _group(name: str) -> Command:
    panel, about = _GROUPS[name]
    group = typer.Typer(name=name, help=about, no_args_is_help=True, add_completion=False)
    for _, command, place in _COMMANDS:
        first, _, second = command.partition(" ")
        if first == name and second:
            group.command(second, cls=DescribedCommand)(_function(place))
    # Without a callback typer would make a single command of it.
    group.callback()(lambda: None)
    made = typer.main.get_command(group)
    assert isinstance(made, TyperGroup)
    made.rich_help_panel = panel
    return made


def _function(place: str) -> Callable[..., None]:
    module, _, name = place.partition(":")
    found: Callable[..., None] = getattr(importlib.import_module(f"sidecar.cli.{module}"), name)
    return found


def build(serve: Serve) -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        cls=_LateCommands,
        help="Durable, shared memory for coding agents that knows which memories helped.",
        epilog=epilog(),
        invoke_without_command=True,
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
            # Not for those who name a command.
            from sidecar.cli.overview import show_overview  # noqa: PLC0415

            show_overview(Invocation.of(called, home, is_json=as_json))

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
