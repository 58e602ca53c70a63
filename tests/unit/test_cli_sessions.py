"""What `sidecar sessions` shows of sessions, against a scripted sidecar."""

import json

import pytest

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli.entry import run
from sidecar.cli.session_view import short_ids
from sidecar.errors import MemoryNotFoundError
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to

A = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
B = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W"
PURGED = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8X"
SESSION = "6f1c9a52-aaaa-4bbb-8ccc-000000000001"
OTHER = "0198c7d0-aaaa-4bbb-8ccc-000000000002"


def command(*arguments: str) -> int:
    """Run one command in this process."""
    return run(arguments, serve=lambda arguments: 0)


def coverage(session: str, agent_id: str = "") -> evidence.SessionCoverage:
    """Return a session thread with three recalls, one of which could not be read."""
    thread = evidence.SessionThread(client="claude-code", session=session, project="shop", agent_id=agent_id)
    return evidence.SessionCoverage(thread=thread, recalls=3, shown=3, used=1, unknown={"spilled": 1})


def content(request: service.GetMemoryRequest) -> service.GetMemoryResponse:
    """Return a memory unless it was purged."""
    if request.memory_id == PURGED:
        raise MemoryNotFoundError(PURGED)
    return service.GetMemoryResponse(memory=pb.Memory(id=request.memory_id, content="Redis keeps\nthe sessions."))


@pytest.fixture
def sidecar(monkeypatch: pytest.MonkeyPatch) -> ScriptedSidecar:
    """Give a sidecar that saw two sessions, one with a sub-agent."""
    unknown = evidence.ShownUnknown(reason=evidence.UNKNOWN_REASON_SPILLED)
    ids = evidence.ShownIds(memory_ids=[A, B, PURGED])
    recalls = [
        evidence.SessionRecall(tool="recall", shown=evidence.Shown(ids=ids), used_memory_ids=[B]),
        evidence.SessionRecall(tool="recall", shown=evidence.Shown(nothing=evidence.NothingShown())),
        evidence.SessionRecall(tool="recall", agent_id="sub", shown=evidence.Shown(unknown=unknown)),
    ]
    sessions = [coverage(SESSION), coverage(SESSION, "sub"), coverage(OTHER)]
    scripted = ScriptedSidecar(
        list_sessions=evidence.ListSessionsResponse(sessions=sessions),
        get_session=evidence.GetSessionResponse(recalls=recalls),
        get_memory=content,
    )
    connect_to(monkeypatch, scripted)
    return scripted


def test_sessions_tell_what_could_not_be_read(sidecar: ScriptedSidecar, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown is shown as such, never as zero; a program gets whole ids, a person what tells them apart."""
    assert command("sessions") == 0
    printed = capsys.readouterr().out
    assert "1 spilled" in printed
    assert printed.startswith(f"{SESSION}\t")
    assert f"{SESSION} (sub)\t" in printed


def test_session_shows_each_recall(sidecar: ScriptedSidecar, capsys: pytest.CaptureFixture[str]) -> None:
    """The beginning of an id is enough to see what was shown, what of it was used, and what is not known."""
    assert command("sessions", SESSION[:8]) == 0
    printed = capsys.readouterr().out
    assert "recall: showed 3, used 1" in printed
    assert f"used\t{B}\tRedis keeps the sessions." in printed
    assert f"-\t{A}\tRedis keeps the sessions." in printed
    assert f"{PURGED}\t(purged)" in printed
    assert "recall: showed nothing" in printed
    assert "agent sub: what it showed could not be read: spilled" in printed
    asked = next(one for one in sidecar.requests if isinstance(one, evidence.GetSessionRequest))
    assert (asked.client, asked.session) == ("claude-code", SESSION)
    assert command("sessions", SESSION, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["recalls"]) == 3


@pytest.mark.parametrize(("beginning", "code"), [("zzz", 7), ("", 0)])
def test_session_that_is_not_there_is_told(
    sidecar: ScriptedSidecar, capsys: pytest.CaptureFixture[str], beginning: str, code: int
) -> None:
    """Nothing is guessed."""
    assert command("sessions", beginning) == code


def test_beginning_of_two_sessions_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are named, so that one can be chosen; a whole id is never doubtful."""
    answer = evidence.ListSessionsResponse(sessions=[coverage("s-1"), coverage("s-10")])
    connect_to(monkeypatch, ScriptedSidecar(list_sessions=answer, get_session=evidence.GetSessionResponse()))
    assert command("sessions", "s-") == 2
    assert "s-1, s-10" in capsys.readouterr().err
    assert command("sessions", "s-1") == 0


def test_no_sessions_say_where_they_come_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever waits for sessions must learn what is read, and where."""
    connect_to(monkeypatch, ScriptedSidecar(list_sessions=evidence.ListSessionsResponse()))
    assert command("sessions") == 0
    told = capsys.readouterr().err
    assert "No session" in told
    assert "transcripts" in told
    assert ".claude" in told


def test_short_ids_tell_sessions_apart() -> None:
    """Ids that begin with the time are alike for long."""
    assert short_ids(["0198c7d0-1", "0198c7d0-2"]) == {"0198c7d0-1": "0198c7d0-1", "0198c7d0-2": "0198c7d0-2"}
    assert short_ids([SESSION, SESSION, OTHER]) == {SESSION: SESSION[:8], OTHER: OTHER[:8]}


def test_list_of_sessions_fits_into_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No figure is cut away, with long names, sub-agents and several reasons."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    found = coverage(SESSION, "a6a2ff2751c0ddfbf")
    found.thread.project = "a-project-with-a-rather-long-name"
    found.recalls, found.shown, found.used = 120, 345, 67
    found.unknown["no_result"] = 12
    connect_to(monkeypatch, ScriptedSidecar(list_sessions=evidence.ListSessionsResponse(sessions=[found])))
    assert command("sessions") == 0
    printed = capsys.readouterr().out
    assert max(len(line) for line in printed.splitlines()) <= 80
    names = ("6f1c9a52 (a6a2)", "claude-code", "recalls", "unknown")
    for shown in (*names, "120", "345", "67", "12 no", "result", "spilled"):
        assert shown in printed


def test_status_tells_what_could_not_be_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By client, version and channel; a new format is a warning, not silence."""
    parts = [
        evidence.ClientCoverage(
            client="claude-code",
            channel="transcript",
            client_version="2.1.197",
            files=12,
            recalls=9,
            with_memories=5,
            shown=14,
            nothing_shown=1,
            unknown={"spilled": 2, "no_result": 1},
        ),
        evidence.ClientCoverage(client="cursor", channel="transcript", files=1, recalls=2, cannot_record=2),
        evidence.ClientCoverage(client="cursor", channel="hook", recalls=2, with_memories=2, shown=3),
        evidence.ClientCoverage(
            client="codex", channel="transcript", client_version="9.0", files=1, warnings=["7 records of new kinds"]
        ),
    ]
    answer = evidence.GetCoverageResponse(clients=parts)
    connect_to(monkeypatch, ScriptedSidecar(get_coverage=answer))
    assert command("status") == 0
    printed = capsys.readouterr().out
    for shown in (
        "claude-code 2.1.197\t12 files, 9 recalls: 5 showed 14 memories, 1 showed nothing, ",
        ", unknown: 2 spilled, 1 no result\n",
        "cursor\t1 file, 2 recalls: 0 showed 0 memories, 2 cannot record\n",
        "cursor (hook)\t2 recalls: 2 showed 3 memories\n",
        "codex 9.0\t1 file, no recalls\n",
        "Not all could be read: codex 9.0: 7 records of new kinds.",
    ):
        assert shown in printed
    assert command("status", "--json") == 0
    assert [part["channel"] for part in json.loads(capsys.readouterr().out)["coverage"]] == [
        *("transcript", "transcript", "hook", "transcript"),
    ]
