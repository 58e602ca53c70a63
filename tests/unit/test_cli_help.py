"""The help of the commands: complete for each, its examples parse, and what is made of it is up to date."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer._click.core import Command, Context
from typer.core import TyperGroup

from sidecar.cli.app import build
from sidecar.cli.command_help import Example
from sidecar.cli.examples import HELP
from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.manual import commands_document, described_commands, man_page
from tests.unit.test_cli_commands import command

DOCUMENTATION = Path(__file__).parents[2] / "docs"
DESCRIBED = {each.name: each for each in described_commands()}
NAMES = list(DESCRIBED)
EXAMPLES = [example for told in HELP.values() for example in told.examples]


@pytest.fixture(scope="module")
def root() -> Iterator[tuple[Command, Context]]:
    """Give the application with every command."""
    group = typer.main.get_command(build(lambda _arguments: 0))
    with group.make_context("sidecar", [], resilient_parsing=True) as context:
        yield group, context


def test_every_command_has_its_words() -> None:
    """A new command needs an entry in `examples`; one that is gone must not linger there."""
    assert set(HELP) == set(NAMES)


@pytest.mark.parametrize("name", HELP)
def test_words_of_a_command_are_complete(name: str) -> None:
    """Something to copy, how it may end, and where to go on; each option says what it is for."""
    told = HELP[name]
    assert told.examples
    assert all(example.does and example.line.startswith(f"sidecar {name}") for example in told.examples)
    assert ExitCode.OK in told.exits
    assert told.related
    assert set(told.related) < set(NAMES) - {name}
    described = DESCRIBED[name]
    assert described.paragraphs[0]
    assert [each for each in (*described.arguments, *described.options) if not each[1].partition("[")[0].strip()] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.line)
def test_example_parses(example: Example, root: tuple[Command, Context]) -> None:
    """What help shows can be typed as it is."""
    parsed, context = root
    words = shlex.split(example.line)[1:]
    while isinstance(parsed, TyperGroup):
        found = parsed.get_command(context, words[0])
        assert found is not None
        parsed, name, *words = found, *words
        if not isinstance(parsed, TyperGroup):
            parsed.make_context(name, words, parent=context)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "serve"])
def test_help_shows_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the options, as a page of a manual has them."""
    assert command(*name.split(), "--help") == 0
    printed = capsys.readouterr().out
    for shown in ("Usage:", "Examples:", "Exit codes:", "See also:", HELP[name].examples[0].line):
        assert shown in printed


@pytest.mark.parametrize(
    ("path", "made"), [("commands.md", commands_document), ("man/sidecar.1", man_page)], ids=["commands", "man"]
)
def test_documents_are_up_to_date(path: str, made: object) -> None:
    """`make man` writes them anew."""
    assert callable(made)
    assert (DOCUMENTATION / path).read_text("utf-8") == made()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_man_page_is_sound() -> None:
    """`man` has nothing to complain of, and shows options and backslashes as they are typed."""
    formatted = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", "-rLL=200n", "-P-cbou"],
        input=man_page().encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert formatted.stderr.decode() == ""
    text = formatted.stdout.decode()
    for shown in ("--max-calls", "sidecar judge-eval labelled.jsonl --judge llm", "SIDECAR_HOME", "EXIT STATUS"):
        assert shown in text
