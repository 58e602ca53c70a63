"""The manual of all commands, made from the code: docs/commands.md, and a page for `man`.

`python -m sidecar.cli.manual` prints the first, `python -m sidecar.cli.manual --man` the second. Only the words of
`examples` are written down; a test sees to it that both files are up to date.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import typer
from typer._click.core import Command, Context
from typer.core import TyperGroup

from sidecar.cli.app import PROGRAM, build
from sidecar.cli.command_help import CommandHelp, help_of
from sidecar.cli.exit_codes import MEANINGS

_ABOUT: Final = "Durable, shared memory for coding agents that knows which memories helped."
# The type of an argument says nothing that its name does not.
_PLAIN_TYPE: Final = re.compile(r" <(list\[)?(str|path|int)\]?>")
# So that the usage is one line, whatever terminal this is made in.
_USAGE_COLUMNS: Final = 200
_EVERYWHERE: Final = ("--home", "--json", "-h, --help")
_BACKTICKS: Final = re.compile(r"`([^`]+)`")
_PREAMBLE: Final = """\
# Commands

Every command with its arguments, options, defaults, examples and exit codes, as `sidecar COMMAND --help` shows them.
Made from the code by `make man`, and a test sees to it that it is up to date. The introduction is
[the command line](cli.md).

Each command also has `--help`, and all but a few have `--home PATH` for the data folder (else `SIDECAR_HOME`, else the
user's own) and `--json` for one JSON document.
"""


@dataclass(frozen=True, slots=True)
class Described:
    """A command as the manual has it.

    Attributes:
        name: As it is typed, such as `activity add`.
        usage: The line that says in which order what stands.
        paragraphs: What it does.
        arguments: Name and meaning; `options` alike, without those of every command.
    """

    name: str
    panel: str
    usage: str
    paragraphs: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    more: CommandHelp


def described_commands() -> list[Described]:
    """Return every command in the order of `--help`."""
    group = typer.main.get_command(build(lambda _arguments: 0))
    with group.make_context(PROGRAM, [], resilient_parsing=True) as context:
        return list(_described(group, context, prefix="", panel=""))


def commands_document() -> str:
    """Return docs/commands.md."""
    commands = described_commands()
    lines = [_PREAMBLE]
    panels = dict.fromkeys(command.panel for command in commands)
    for panel in panels:
        lines.append(f"## {panel}\n")
        for command in commands:
            if command.panel == panel:
                lines += _markdown(command)
    lines.append("## Exit codes\n\n| code | meaning |\n|---|---|")
    lines += [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(lines) + "\n"


def man_page() -> str:
    """Return the page for `man`."""
    lines = [
        f'.TH {PROGRAM.upper()} 1 "" "memory-sidecar" "User Commands"',
        ".SH NAME",
        f"{PROGRAM} \\- {_roff(_ABOUT.rstrip('.').lower())}",
        ".SH SYNOPSIS",
        f'.B {PROGRAM}\n.RI [ OPTIONS "] [" COMMAND "] [" ARGUMENTS ]',
        ".SH DESCRIPTION",
        _roff(
            "One local process keeps memories for coding agents and serves them to every agent and editor of a user. "
            "Without a command it tells how things are and what to do next, and starts nothing."
        ),
        ".PP",
        _roff("Every command takes --home PATH for the data folder, and most take --json for one JSON document."),
        ".SH COMMANDS",
    ]
    for command in described_commands():
        lines += _roff_command(command)
    lines += [".SH EXIT STATUS"]
    for code, meaning in MEANINGS.items():
        lines += [".TP", f".B {code.value}", _roff(meaning)]
    lines += [".SH ENVIRONMENT", ".TP", ".B SIDECAR_HOME", "The data folder."]
    lines += [".TP", ".B SIDECAR_\\fINAME\\fR", _roff("Any setting, such as SIDECAR_LOG_LEVEL.")]
    lines += [".TP", ".B NO_COLOR", "Without colours, whatever its value."]
    return "\n".join(lines) + "\n"


def _described(group: Command, context: Context, *, prefix: str, panel: str) -> Iterator[Described]:
    assert isinstance(group, TyperGroup)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        # The one of a group's commands is none of their own.
        own = getattr(command, "rich_help_panel", None)
        shown = own if isinstance(own, str) else panel
        inner = command.context_class(command, info_name=name, parent=context, terminal_width=_USAGE_COLUMNS)
        if isinstance(command, TyperGroup):
            yield from _described(command, inner, prefix=f"{prefix}{name} ", panel=shown)
        elif not command.hidden:
            yield _one(command, inner, name=f"{prefix}{name}", panel=shown)


def _one(command: Command, context: Context, *, name: str, panel: str) -> Described:
    records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and not record[0].startswith(_EVERYWHERE):
            told = _PLAIN_TYPE.sub("", record[0]) if parameter.param_type_name == "argument" else record[0]
            records[parameter.param_type_name].append((told, " ".join(record[1].split())))
    return Described(
        name=name,
        panel=panel,
        usage=command.get_usage(context).removeprefix("Usage: "),
        paragraphs=tuple(" ".join(part.split()) for part in (command.help or "").split("\n\n")),
        arguments=tuple(records["argument"]),
        options=tuple(records["option"]),
        more=help_of(name),
    )


def _markdown(command: Described) -> list[str]:
    lines = [f"### sidecar {command.name}\n", f"    {command.usage}\n", *(f"{each}\n" for each in command.paragraphs)]
    for title, records in (("argument", command.arguments), ("option", command.options)):
        if records:
            lines += [f"| {title} | |", "|---|---|"]
            lines += [f"| `{_cell(name)}` | {_cell(told)} |" for name, told in records]
            lines.append("")
    lines += [f"- `{example.line}`: {example.does}" for example in command.more.examples]
    codes = ", ".join(str(code.value) for code in sorted(command.more.exits))
    related = ", ".join(f"[`sidecar {name}`](#sidecar-{name.replace(' ', '-')})" for name in command.more.related)
    return [*lines, "", f"Exit codes: {codes}. See also: {related}.", ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _roff_command(command: Described) -> list[str]:
    lines = [f".SS {_roff(command.usage)}"]
    for place, paragraph in enumerate(command.paragraphs):
        lines += [*([".PP"] if place else []), _roff(paragraph)]
    for name, told in (*command.arguments, *command.options):
        lines += [".TP", f".B {_roff(name)}", _roff(told)]
    lines += [".PP", "Examples:"]
    for example in command.more.examples:
        lines += [".TP", f".B {_roff(example.line)}", _roff(example.does)]
    codes = ", ".join(str(code.value) for code in sorted(command.more.exits))
    related = ", ".join(f"{PROGRAM} {name}" for name in command.more.related)
    return [*lines, ".PP", _roff(f"Ends with {codes}. See also: {related}.")]


def _roff(text: str) -> str:
    r"""Return the text as roff shows it: `\` and `-` are its own, a dot or quote begins a request only in front."""
    plain = _BACKTICKS.sub(r"\1", text).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    plain = "".join(each if each.isascii() else f"\\[u{ord(each):04X}]" for each in plain)
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _main(arguments: Sequence[str]) -> int:
    if list(arguments) not in ([], ["--man"]):
        sys.stderr.write("usage: python -m sidecar.cli.manual [--man]\n")
        return 2
    sys.stdout.write(man_page() if arguments else commands_document())
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
