"""The commands against a real sidecar, each in a process of its own as a user runs them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.api.v1.memory_service_pb2 import RememberRequest
from sidecar.client import Sidecar
from tests.e2e.running import write_settings

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a working directory that names the project `shop`."""
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def sidecar(home: Path, project: Path) -> Run:
    """Give what runs one command."""

    def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sidecar", *arguments],
            cwd=project,
            env={**os.environ, "SIDECAR_HOME": str(home), "COLUMNS": "80"},
            input=text,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    return run


def shell(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a line as a user types it."""
    environment = {**os.environ, "SIDECAR_HOME": str(home)}
    return subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=False)


def document(outcome: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """Return the one JSON document of a command that succeeded."""
    assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert isinstance(found, dict)
    return found


def test_first_steps_of_a_new_user(sidecar: Run) -> None:
    """An empty store says what to do; what is stored is found, by words at once and by its meaning when waited for."""
    empty = sidecar("recall", "which", "cache")
    assert empty.returncode == 0
    assert "sidecar remember" in empty.stderr
    assert "did not take part" not in empty.stderr
    stored = sidecar("remember", "-", "--type", "decision", "--wait", text="Redis keeps the sessions.\nIt persists.")
    memory_id = stored.stdout.strip()
    assert stored.returncode == 0, stored.stderr
    found = sidecar("recall", "what keeps the session data", "--explain")
    assert memory_id in found.stdout
    assert "project:shop" in found.stdout
    assert "similarity" in found.stdout
    assert found.stderr == ""
    again = sidecar("remember", "Redis keeps the sessions.\nIt persists.")
    assert again.stdout.strip() == memory_id
    assert "known already" in again.stderr


def test_superseding_forgetting_and_restoring(sidecar: Run) -> None:
    """The life of a memory, each step undone by the command that the step before told."""
    old = sidecar("remember", "Deploys go out on Friday.").stdout.strip()
    new = sidecar("remember", "Deploys go out on Tuesday.", "--supersedes", old).stdout.strip()
    assert document(sidecar("get", old, "--json"))["memory"]["superseded_by"] == new  # type: ignore[index]
    forgotten = sidecar("forget", new)
    assert f"sidecar restore {new}" in forgotten.stdout
    assert new not in sidecar("recall", "deploys").stdout
    assert sidecar("restore", new).returncode == 0
    assert new in sidecar("recall", "deploys").stdout
    twice = sidecar("restore", new, "--json")
    assert (twice.returncode, json.loads(twice.stderr)["error"]["reason"]) == (8, "MEMORY_NOT_FORGOTTEN")
    assert sidecar("forget", new, "--purge", "--yes").returncode == 0
    assert sidecar("get", new).returncode == 7


def test_starting_stopping_and_telling(sidecar: Run) -> None:
    """Start says whether it started; status and stop do not start a sidecar only to talk to it."""
    assert sidecar("status").returncode == 6
    assert document(sidecar("start", "--json"))["started"] is True
    assert document(sidecar("start", "--json"))["started"] is False
    status = document(sidecar("status", "--json"))
    assert document(sidecar("restart", "--json"))["pid"] != status["pid"]
    assert sidecar("stop").returncode == 0
    stopped = sidecar("stop")
    assert stopped.returncode == 6
    assert "sidecar start" in stopped.stderr


def test_doctor_leaves_nothing_behind(sidecar: Run) -> None:
    """A healthy sidecar passes every check, and the trial memory is gone to the last byte."""
    assert sidecar("doctor").returncode == 1
    sidecar("start")
    findings = document(sidecar("doctor", "--json"))["findings"]
    assert isinstance(findings, list)
    assert {finding["check"] for finding in findings} >= {"folder", "sidecar", "version", "queue", "disk", "round trip"}
    assert not [finding for finding in findings if finding["verdict"] == "bad"]
    states = ("--state", "active", "--state", "forgotten", "--state", "superseded")
    assert document(sidecar("count", *states, "--json"))["total"] == 0


def test_hostile_text_comes_back_whole_but_harmless(sidecar: Run) -> None:
    """Stored escape sequences reach no terminal, and a script gets back what was stored."""
    text = "\x1b]0;owned\x07 \u202egnp.exe [red]markup[/red] %s {0} \x9b2J ä日👩‍💻"
    memory_id = sidecar("remember", "--", text).stdout.strip()
    for arguments in (("recall", "owned"), ("list",), ("get", memory_id)):
        printed = sidecar(*arguments).stdout
        assert "owned" in printed
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(printed)
    assert document(sidecar("get", memory_id, "--json"))["memory"]["content"] == text  # type: ignore[index]


def test_secret_is_told_and_not_stored(sidecar: Run) -> None:
    """Whoever pastes a key learns that it was taken out."""
    key = "AKIA" + "QYLPMN5HFZ3B7XWE"
    stored = sidecar("remember", f"The key is {key} for now")
    assert "Secrets were taken out" in stored.stderr
    assert key not in sidecar("list", "--json").stdout


def test_listing_goes_page_by_page(sidecar: Run, home: Path) -> None:
    """Pages neither repeat nor lose a memory."""
    with Sidecar.connect(home, context=CallContext(project="shop")) as client:
        ids = {client.remember(RememberRequest(content=f"Fact {number}")).memory_id for number in range(5)}
    seen: list[str] = []
    token = ""
    while True:
        page = document(sidecar("list", "--limit", "2", "--json", *(["--page", token] if token else [])))
        seen += [memory["id"] for memory in page["memories"]]  # type: ignore[attr-defined]
        token = str(page["next_page_token"])
        if not token:
            break
    assert sorted(seen) == sorted(ids)


def test_reader_that_stops_early_is_no_error(home: Path) -> None:
    """`sidecar … | head -1` must not end in a traceback."""
    command = f"{sys.executable} -m sidecar --help | head -1"
    outcome = shell(command, home)
    assert outcome.returncode == 0
    assert "Traceback" not in outcome.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("redirection", "told"),
    [("> /dev/full", "could not be written"), (">&-", "stdout is closed"), ("> /dev/full 2>&1", ""), ("2>&-", "")],
)
def test_streams_that_take_nothing_are_told_by_the_code(home: Path, sidecar: Run, redirection: str, told: str) -> None:
    """An answer that nobody got is no success, and never a traceback; without a stderr there is nobody to tell."""
    for name in ("--help", "count", "count --json"):
        outcome = shell(f"{sys.executable} -m sidecar {name} {redirection}", home)
        assert outcome.returncode == (0 if redirection == "2>&-" else 1), name
        assert told in outcome.stderr
        assert "Traceback" not in outcome.stderr
        assert "Exception ignored" not in outcome.stderr


def test_removed_working_directory_is_no_error(home: Path, tmp_path: Path) -> None:
    """A command works without a project where there is none any more."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && {sys.executable} -P -m sidecar count --json"
    outcome = shell(script, home)
    assert document(outcome)["total"] == 0


def test_two_data_folders_do_not_mix(sidecar: Run, tmp_path: Path) -> None:
    """`--home` wins over SIDECAR_HOME, before and behind the command's name."""
    other = tmp_path / "other"
    write_settings(other)
    try:
        sidecar("remember", "Only here.")
        assert document(sidecar("--home", str(other), "count", "--json"))["total"] == 0
        assert document(sidecar("count", "--json", "--home", str(other)))["total"] == 0
        assert document(sidecar("count", "--json"))["total"] == 1
    finally:
        sidecar("stop", "--home", str(other))
