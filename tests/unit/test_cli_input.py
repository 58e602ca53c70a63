"""What commands read besides their options: stdin, and variables that are meant as settings."""

import io
import json
import sys
from pathlib import Path

import pytest

from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli.entry import run
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to


def command(*arguments: str) -> int:
    """Run one command in this process."""
    return run(arguments, serve=lambda arguments: 0)


def stdin_of(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Make this what stands in stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("name", ["remember", "recall"])
def test_bytes_that_are_no_text_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Replaced characters would be stored as if they had been meant."""
    sidecar = ScriptedSidecar()
    connect_to(monkeypatch, sidecar)
    stdin_of(monkeypatch, b"caf\xe9")
    assert command(name, "-") == 2
    assert "byte 0xe9 at position 3" in capsys.readouterr().err
    assert sidecar.requests == []


def test_recall_reads_the_question_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `remember` does; what agents pipe need not be quoted."""
    sidecar = ScriptedSidecar(recall=service.RecallResponse(), count_memories=service.CountMemoriesResponse(total=1))
    connect_to(monkeypatch, sidecar)
    stdin_of(monkeypatch, "which café?".encode())
    assert command("recall", "-") == 0
    assert sidecar.requests[0].query == "which café?"


def test_misspelt_setting_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A variable without any effect is never noticed otherwise."""
    connect_to(monkeypatch, ScriptedSidecar())
    monkeypatch.setenv("SIDECAR_EMBEDER", "none")
    assert command("status") == 0
    assert "SIDECAR_EMBEDER: no setting" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("SIDECAR_EMBEDER", "none")
    assert command("--home", str(tmp_path / "home"), "doctor", "--json") == 1
    findings = {finding["check"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["settings"]["verdict"] == "doubtful"
