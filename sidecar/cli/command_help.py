"""What the help of each command tells besides its options: examples, exit codes, related commands.

The texts are in `examples`; here is how they look below `--help`. docs/commands.md and the manual page are made of the
same.
"""

from dataclasses import dataclass
from typing import Final

from typer._click.core import Context
from typer._click.formatting import HelpFormatter
from typer.core import TyperCommand

from sidecar.cli.exit_codes import MEANINGS, ExitCode
from sidecar.cli.output import Output

ANY: Final = (ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.INTERRUPTED)
"""How every command may end."""

ASKING: Final = (*ANY, ExitCode.NOT_ALLOWED, ExitCode.STORAGE, ExitCode.UNAVAILABLE)
"""How a command may end that calls the sidecar."""


@dataclass(frozen=True, slots=True)
class Example:
    """A line as it is typed, and what it does."""

    line: str
    does: str


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """What help tells of a command besides its options.

    Attributes:
        examples: At least one; each parses.
        exits: How it may end.
        related: Names of other commands.
    """

    examples: tuple[Example, ...]
    exits: tuple[ExitCode, ...]
    related: tuple[str, ...]

    def exit_lines(self) -> list[tuple[str, str]]:
        """Return each code with its meaning, in order."""
        return [(str(code.value), MEANINGS[code]) for code in sorted(self.exits)]


def help_of(name: str) -> CommandHelp:
    """Return the help of a command.

    Args:
        name: As it is typed, such as `activity add`.
    """
    # Not before it is asked for: a command that only works need not read it.
    from sidecar.cli.examples import HELP  # noqa: PLC0415

    return HELP[name]


class DescribedCommand(TyperCommand):
    """A command whose help ends with examples, exit codes and related commands."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """See `TyperCommand.format_help`."""
        super().format_help(ctx, formatter)
        _, _, name = ctx.command_path.partition(" ")
        show_help(Output(is_json=False), help_of(name))


def show_help(output: Output, told: CommandHelp) -> None:
    """Print what stands below the options."""
    output.line(" Examples:", style="bold")
    for example in told.examples:
        output.line(example.line, indent=3)
        output.line(example.does, style="dim", indent=7)
    output.line(" Exit codes:", style="bold")
    for code, meaning in told.exit_lines():
        output.line(f"{code:>3}  {meaning}", indent=1, hang=5)
    output.line(" See also:", style="bold")
    output.line(", ".join(f"`sidecar {name}`" for name in told.related), indent=3)
    output.line()
