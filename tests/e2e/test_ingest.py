"""`sidecar ingest` against a real sidecar: a corpus of three clients, again and again, with restarts between."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.cli.entry import run
from sidecar.client import Sidecar
from tests.client_cases import CASES
from tests.e2e.running import running_sidecar

Document = Mapping[str, object]


def _ingest(capsys: pytest.CaptureFixture[str], home: Path, *arguments: str) -> Document:
    capsys.readouterr()
    assert run(("ingest", "--home", str(home), "--json", *arguments), serve=lambda arguments: 0) == 0
    return cast(Document, json.loads(capsys.readouterr().out))


def _known(sidecar: Sidecar) -> tuple[object, ...]:
    """Return what the sidecar knows of sessions, calls and files."""
    sessions = sidecar.list_sessions(evidence.ListSessionsRequest(limit=1000)).sessions
    calls = [
        sidecar.get_session(evidence.GetSessionRequest(client=client, session=session)).SerializeToString()
        for client, session in sorted({(one.thread.client, one.thread.session) for one in sessions})
    ]
    coverage = sidecar.get_coverage(evidence.GetCoverageRequest())
    return sorted(one.SerializeToString(deterministic=True) for one in sessions), calls, coverage


def test_a_corpus_ten_times_with_restarts_and_copies_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Resumed, forked and moved copies come in between; nothing that was known changes, nothing counts twice."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    home = tmp_path / "data"
    copies = []
    for case in CASES:
        root = case.plugin.roots(
            {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "CODEX_HOME": str(tmp_path / "codex")}
        )[0]
        # Recorded sessions share their call ids, which a scripted model counted from one: one of them will do.
        for sample in case.samples[:3]:
            path = root.joinpath(*sample.file.parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sample.file.content)
            copies += [(root.joinpath(*copy.parts), copy.content) for copy in sample.repetitions]
    first: tuple[object, ...] = ()
    for turn in range(10):
        with running_sidecar(home, embedder="none") as sidecar:
            report = _ingest(capsys, home)
            known = _known(sidecar)
            assert report["left_out"] == {}
            if not first:
                first = known
                recalls = {(part.client, part.channel): part.recalls for part in known[2].clients}  # type: ignore[attr-defined]
                assert recalls == {
                    ("claude-code", "transcript"): 7,
                    ("codex", "transcript"): 5,
                    ("cursor", "transcript"): 5,
                }
                assert not [warning for part in known[2].clients for warning in part.warnings]  # type: ignore[attr-defined]
            assert known[1] == first[1]
            assert report["new_events"] == 0 or turn == 0
            assert [_counts(part) for part in known[2].clients] == [_counts(part) for part in first[2].clients]  # type: ignore[attr-defined]
        if copies and turn >= 2:
            path, content = copies.pop(0)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _counts(part: evidence.ClientCoverage) -> tuple[object, ...]:
    """Return what must not change when copies come: the figures of calls, not those of files."""
    return part.client, part.channel, part.recalls, part.with_memories, part.shown, dict(part.unknown)


def test_options_choose_what_is_read_and_a_person_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By client, path and time; the figures end as sentences."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    home = tmp_path / "data"
    case = next(case for case in CASES if case.plugin.name == "codex")
    root = case.plugin.roots({"CODEX_HOME": str(tmp_path / "codex")})[0]
    path = root.joinpath(*case.samples[0].file.parts)
    path.parent.mkdir(parents=True)
    path.write_bytes(case.samples[0].file.content)
    with running_sidecar(home, embedder="none"):
        assert _ingest(capsys, home, "--client", "claude-code")["files"] == 0
        assert _ingest(capsys, home, "--since", "2100-01-01")["left_out"] == {"too_old": 1}
        assert run(("ingest", "--home", str(home), str(path)), serve=lambda arguments: 0) == 0
        told = capsys.readouterr().out
        assert "1 transcript, of which 0 held nothing new" in told
        assert "3 recalls showed" in told
        for arguments in (("--client", "no-such"), ("--since", "soon"), (str(tmp_path / "nowhere"),)):
            assert run(("ingest", "--home", str(home), *arguments), serve=lambda arguments: 0) == 2
        assert run(("status", "--home", str(home)), serve=lambda arguments: 0) == 0
        assert "codex 0.171.0\t1 file, 3 recalls: 1 showed 2 memories, 1 showed nothing" in capsys.readouterr().out
