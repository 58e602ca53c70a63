"""What commands print can be read: at every width, without colours, piped, and where few characters are known."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.client import Sidecar
from sidecar.testing.transcripts import ClaudeCodeTranscript
from tests.e2e.running import running_sidecar
from tests.unit.test_cli_commands import command

TEXTS = (
    "Integration tests of the harbour service need `docker compose up -d ledger-db` and PGPORT=6543, or they hang.",
    "Deploys go out on Tuesday 🚢🎉, never on Friday; see 👩‍👩‍👧‍👦 “the team's page”.",
    "港口服务的部署在星期二进行，绝不在星期五。測試需要六五四三端口；否則它們會掛起，而且沒有人會注意到這一點，直到太晚。"
    * 4,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# A spinner hides the cursor, and takes itself away.
_CURSOR = re.compile(r"\x1b\[(?:\?25[hl]|1A|2K)")
# What is to be copied is never broken, and stands in backticks or is one word.
_WHOLE = re.compile(r"`[^`]+`|\S+")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose sidecar runs, with memories, a session and a dispute."""
    folder = tmp_path_factory.mktemp("reading")
    transcripts = folder / "claude" / "projects" / "-home-dev-shop"
    transcripts.mkdir(parents=True)
    with running_sidecar(
        folder / "home",
        embedder="none",
        judging=False,
        watcher=True,
        watch_clients="claude-code",
        claude_config_dir=str(folder / "claude"),
    ) as sidecar:
        ids = [sidecar.remember(pb.RememberRequest(content=text, namespace="global")).memory_id for text in TEXTS]
        transcript = ClaudeCodeTranscript(cwd="/home/dev/shop")
        transcript.user("Get the tests to run.")
        transcript.recall(*ids)
        (transcripts / f"{transcript.session}.jsonl").write_bytes(transcript.to_bytes())
        sidecar.challenge_memory(validation.ChallengeMemoryRequest(memory_id=ids[1], reason="It is Wednesday now."))
        _await_session(sidecar)
        yield folder / "home"


def _await_session(sidecar: Sidecar) -> None:
    for _ in range(600):
        if any(each.shown for each in sidecar.list_sessions(evidence.ListSessionsRequest()).sessions):
            return
        time.sleep(0.05)
    pytest.fail("the session was not read")


@pytest.fixture
def commands(home: Path) -> list[tuple[str, ...]]:
    """The commands whose answers people read most."""
    with Sidecar.connect(home, start=False) as sidecar:
        memory_id = sidecar.list_memories(pb.ListMemoriesRequest(filter=pb.MemoryFilter(namespace="*"))).memories[0].id
    return [
        (),
        ("status",),
        ("list",),
        ("recall", "integration tests harbour deploys", "--explain"),
        ("sessions",),
        ("sessions", "0b0e7a54"),
        ("insights",),
        ("why", memory_id),
        ("disputes",),
        ("review",),
    ]


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, **variables: str) -> None:
    """Have what is printed go to a terminal so wide."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    terminal = {"TTY_COMPATIBLE": "1", "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"}
    for name, value in (terminal | variables).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(
    home: Path,
    commands: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
) -> None:
    """Nor is a word broken that one would copy: a line may only be longer if it is one such word."""
    on_terminal(monkeypatch, columns)
    for words in commands:
        assert command("--home", str(home), *words) == 0, words
        captured = capsys.readouterr()
        for line in _CURSOR.sub("", _COLOUR.sub("", captured.out + captured.err)).splitlines():
            longest = max(map(cell_len, _WHOLE.findall(line)), default=0)
            assert cell_len(line) <= max(columns, longest + 3), (words, line)


def test_nothing_is_lost_at_any_width(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole text of a recalled memory is there, wherever its lines end."""
    for columns in (40, 80, 200):
        on_terminal(monkeypatch, columns)
        assert command("--home", str(home), "recall", "integration tests harbour deploys") == 0
        printed = "".join(_COLOUR.sub("", capsys.readouterr().out).split())
        assert all("".join(text.split()) in printed for text in TEXTS[:2])


def test_colours_are_left_out_where_they_are_not_wanted(
    home: Path, commands: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """NO_COLOR leaves bold and dim, which are none; a dumb terminal gets nothing but text."""
    for words in commands:
        on_terminal(monkeypatch, 80, NO_COLOR="1")
        assert command("--home", str(home), *words) == 0
        assert set(_COLOUR.findall("".join(capsys.readouterr()))) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m"}, words
        on_terminal(monkeypatch, 80, TERM="dumb")
        assert command("--home", str(home), *words) == 0
        assert "\x1b" not in "".join(capsys.readouterr()), words


def test_piped_answers_are_plain_whole_and_the_same_again(
    home: Path, commands: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script gets neither colours nor frames nor cut texts."""
    for name in ("TTY_COMPATIBLE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    printed: dict[tuple[str, ...], str] = {}
    for columns in (40, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        for words in commands:
            assert command("--home", str(home), *words) == 0
            out = re.sub(r"up \w+|\bnow\b|\d+min", "ago", capsys.readouterr().out)
            assert "\x1b" not in out
            assert not set(out) & set("─│╭╮╰╯┃━")
            assert words == ("status",) or printed.setdefault(words, out) == out, words
    assert "".join(TEXTS[2].split()) in printed["list",]
    assert printed["sessions",].startswith("0b0e7a54-7f9d-4b5c-8f5e-1d6b4a3c2e10\t")


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "cp1252"}])
def test_other_encodings_are_no_failure(home: Path, variables: dict[str, str]) -> None:
    """In a bare container or an old console the texts come through as well as they can."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    ended = subprocess.run(
        [sys.executable, "-m", "sidecar", "--home", str(home), "list"],
        env=plain | variables,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert b"Deploys go out on Tuesday" in ended.stdout
    assert len(ended.stdout.splitlines()) == len(TEXTS)
