"""What `sidecar` alone shows: how things are and what to do next. It starts nothing and makes nothing."""

import json
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.next_steps import MOST_SHOWN, ClientFound, Running, Situation, next_steps
from sidecar.client import DataFolder, Sidecar
from sidecar.errors import SidecarHungError
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to
from tests.unit.test_cli_commands import command

CODEX = ClientFound("codex", "Codex", is_connected=False)
CURSOR = ClientFound("cursor", "Cursor", is_connected=True)


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give the home of a user who has Codex and nothing else, working in a project."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "SIDECAR_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".codex").mkdir()
    project = tmp_path / "shop"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def data_folder(user: Path, *, has_database: bool) -> Path:
    """Return a data folder."""
    home = user / "home"
    if has_database:
        DataFolder(home).prepare()
        DataFolder(home).database_path.touch()
    return home


def test_fresh_folder_is_a_welcome_with_two_steps(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has just installed it learns what to type first; not even a folder is made for that."""
    home = data_folder(user, has_database=False)
    assert command("--home", str(home)) == 0
    captured = capsys.readouterr()
    assert "Nothing is stored yet" in captured.out
    assert [line.split("\t")[0] for line in captured.out.splitlines() if "\t" in line] == [
        "sidecar demo",
        "sidecar connect all",
    ]
    assert captured.err == ""
    assert not home.exists()


def test_stopped_sidecar_stays_stopped(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To look must never start a process by surprise."""
    home = data_folder(user, has_database=True)
    before = sorted(path.name for path in home.iterdir())
    assert command("--home", str(home)) == 0
    printed = capsys.readouterr().out
    assert "not running" in printed
    assert "agents\tCodex not connected" in printed
    assert "sidecar connect codex\t" in printed
    assert "sidecar start\t" in printed
    assert sorted(path.name for path in home.iterdir()) == before


def scripted(**answers: object) -> ScriptedSidecar:
    """Return a sidecar in which nothing waits."""
    quiet = {
        "get_status": admin.GetStatusResponse(state=admin.PART_STATE_READY, memory_count=7, data_folder="/data"),
        "count_memories": service.CountMemoriesResponse(by_namespace={"project:shop": 5}),
        "list_sessions": evidence.ListSessionsResponse(),
        "list_disputes": validation.ListDisputesResponse(),
        "list_review_items": insights.ListReviewItemsResponse(),
        "get_judge_queue": insights.GetJudgeQueueResponse(),
        "export_metrics": insights.ExportMetricsResponse(),
    }
    return ScriptedSidecar(**{**quiet, **answers})  # type: ignore[arg-type]


def test_running_sidecar_tells_how_things_are(
    user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Memories here and in all, the last session, what was used, and what waits for a person."""
    thread = evidence.SessionThread(client="codex", session="s-1", project="shop")
    seen = evidence.SessionCoverage(thread=thread)
    seen.last_seen_time.GetCurrentTime()
    metric = insights.Metric(name="hit_rate", value=0.25, numerator=1, denominator=4)
    sidecar = scripted(
        list_sessions=evidence.ListSessionsResponse(sessions=[seen]),
        list_disputes=validation.ListDisputesResponse(disputes=[validation.Dispute(id=1)]),
        export_metrics=insights.ExportMetricsResponse(days=30, metrics=[metric]),
    )
    connect_to(monkeypatch, sidecar)
    home = data_folder(user, has_database=True)
    assert command("--home", str(home)) == 0
    printed = capsys.readouterr().out
    for shown in (
        "memories\t7, of them 5 in project:shop",
        "sessions\t1 seen, the last now ago (codex in shop)",
        "use\t1 of 4 recalled memories were used (30 days)",
        "sidecar disputes\t1 dispute waits for",
    ):
        assert shown in printed
    assert command("--home", str(home), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["state"], document["memories"], document["open_disputes"]) == ("running", 7, 1)
    assert document["next"][0]["command"] == "sidecar connect codex"
    assert document["clients"] == [{"name": "codex", "connected": False}]


def test_silent_sidecar_is_an_error(
    user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No picture is painted of what could not be asked."""

    def connect(*_: object, **__: object) -> object:
        raise SidecarHungError("/data", 3)

    monkeypatch.setattr(Sidecar, "connect", connect)
    assert command("--home", str(data_folder(user, has_database=True))) == ExitCode.UNAVAILABLE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "sidecar restart" in captured.err


@pytest.mark.parametrize(
    ("now", "commands"),
    [
        (Situation(Running.FRESH, (CURSOR,)), ["sidecar demo", "sidecar import . --dry-run"]),
        (Situation(Running.FRESH, (CODEX, CURSOR)), ["sidecar demo", "sidecar connect all"]),
        (Situation(Running.STOPPED, (CURSOR,)), ["sidecar start"]),
        (Situation(Running.RUNNING), ["sidecar import . --dry-run", 'sidecar remember "…"']),
        (Situation(Running.RUNNING, memories=3), ['sidecar recall "…"']),
        (Situation(Running.RUNNING, (CURSOR,), memories=3), ["sidecar ingest"]),
        (Situation(Running.RUNNING, (CURSOR,), memories=3, sessions=1), ["sidecar sessions", "sidecar insights"]),
        (
            Situation(Running.RUNNING, (CODEX,), problems=1, disputes=2, misleading=1, unembedded=1, unjudged=4),
            ["sidecar doctor --retry-parked", "sidecar judge --retry", "sidecar doctor", "sidecar connect codex"],
        ),
        (
            Situation(Running.RUNNING, memories=1, disputes=2, misleading=1, sessions=1),
            ["sidecar disputes", "sidecar review", "sidecar sessions", "sidecar insights"],
        ),
    ],
)
def test_next_steps_follow_from_the_situation(now: Situation, commands: list[str]) -> None:
    """What is broken goes first, then what is missing, then what waits for a decision; there is always one."""
    steps = next_steps(now)
    assert [step.command for step in steps] == commands
    assert 0 < len(steps) <= MOST_SHOWN
    assert all(step.why for step in steps)
