"""The commands of the operations before a real sidecar: what one says is what the next one builds upon."""

import json
from pathlib import Path
from typing import Any

import pytest

from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.cli.entry import run
from sidecar.client import Sidecar, stop
from tests.e2e.test_mcp_tools import home

__all__ = ["home"]


class Shell:
    """Runs commands in this process, for one data folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def code(self, *arguments: str) -> int:
        """Return the exit code; what the command said is dropped."""
        code = run([*arguments, "--home", str(self._folder)], serve=lambda arguments: 1)
        self._capsys.readouterr()
        return code

    def answer(self, *arguments: str) -> dict[str, Any]:
        """Return the document of a command that must succeed."""
        code = run([*arguments, "--json", "--home", str(self._folder)], serve=lambda arguments: 1)
        captured = self._capsys.readouterr()
        assert code == 0, captured.err
        found = json.loads(captured.out)
        assert isinstance(found, dict)
        return found

    def remember(self, text: str) -> str:
        """Store a decision and return its id once it can be found by its meaning."""
        memory_id = self.answer("remember", text, "--type", "decision", "--namespace", "global", "--wait")["memory_id"]
        assert isinstance(memory_id, str)
        return memory_id


@pytest.fixture
def shell(home: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Give a shell before a running sidecar."""
    return Shell(home, capsys)


def test_memories_are_related_judged_and_disputed(shell: Shell) -> None:
    """What a person does who looks after memories, from a new relation to the end of a dispute."""
    old = shell.remember("The cache keeps entries for ten minutes.")
    new = shell.remember("The cache keeps entries for twenty minutes.")
    edge = shell.answer("relate", new, "derived_from", old)["edge"]
    assert edge["id"] in {one["id"] for one in shell.answer("graph", new)["edges"]}
    assert [one["memory_id"] for one in shell.answer("contradictions", new)["contradictions"]] == [old]
    assert shell.answer("health", "-n", "*")["counts"]["contradiction"] == 1
    assert shell.answer("unrelate", new, old, "--relation", "derived_from", "--yes")["deleted_edge_ids"] == [edge["id"]]
    assert shell.code("unrelate", str(edge["id"])) == 7
    assert shell.answer("outcome", new, "succeeded")["change"]["new_confidence"] == pytest.approx(0.4)
    assert shell.answer("validate", old, "failed", "--adjustment", "0.2")["change"]["new_confidence"] == 0
    assert shell.answer("history", old)["summary"]["failed"] == 1
    assert old in shell.answer("context", "cache")["memory_ids"]
    number = shell.answer("challenge", old, "it is twenty")["dispute"]["id"]
    assert shell.answer("challenge", old, "it is twenty")["already_pending"] is True
    assert shell.answer("resolve", str(number), "retire")["dispute"]["resolution"] == "retire"
    assert shell.answer("disputes")["disputes"] == []
    assert shell.answer("restore", old)["memory"]["state"] == "active"
    assert shell.answer("promote", new)["already_promoted"] is False
    assert shell.answer("demote", new)["was_promoted"] is True


def test_everything_survives_export_and_import(shell: Shell, home: Path, tmp_path: Path) -> None:
    """A purged memory comes back from an export with its id; importing once more changes nothing."""
    kept = shell.remember("Tea is served at four.")
    gone = shell.remember("The kettle stands on the left.")
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert shell.code("export", str(first)) == 0
    assert shell.code("forget", gone, "--purge", "--yes") == 0
    assert shell.code("get", gone) == 7
    assert shell.answer("import", str(first), "--dry-run")["records"]["memory"] == 2
    assert shell.answer("import", str(first))["imported"] >= 1
    assert shell.answer("get", gone)["memory"]["content"] == "The kettle stands on the left."
    assert shell.answer("import", str(first))["imported"] == 0
    assert shell.code("export", str(second)) == 0
    assert {line for line in second.read_bytes().splitlines() if kept.encode() in line} == {
        line for line in first.read_bytes().splitlines() if kept.encode() in line
    }


def test_backup_brings_back_what_was_there(shell: Shell, home: Path, tmp_path: Path) -> None:
    """It is taken while the sidecar runs, and put in place when it does not."""
    shell.remember("Tea is served at four.")
    copy = tmp_path / "copy.db"
    assert shell.answer("backup", str(copy))["memory_count"] == 1
    assert shell.code("backup", str(copy)) == 2
    shell.remember("The kettle stands on the left.")
    assert shell.answer("doctor", "--deep")["findings"][-1]["verdict"] == "good"
    assert shell.code("restore-backup", str(copy), "--yes") == 8
    stop(home)
    restored = shell.answer("restore-backup", str(copy), "--yes")
    assert restored["memory_count"] == 1
    undone = shell.answer("restore-backup", restored["replaced_database"], "--yes")
    assert undone["memory_count"] == 2


def test_notes_of_a_project_become_memories(shell: Shell, tmp_path: Path) -> None:
    """Importing what an agent was told is done once, however often it is asked for."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "CLAUDE.md").write_text("# Rules\n- Use tabs.\n- Never push on Friday.\n", encoding="utf-8")
    assert shell.answer("import", str(project))["stored"] == 2
    again = shell.answer("import", str(project))
    assert (again["stored"], again["known_already"]) == (0, 2)
    listed = shell.answer("list", "--namespace", "project:shop")["memories"]
    assert {memory["metadata"]["imported_from"]["format"] for memory in listed} == {"claude-memory"}


def test_file_that_a_script_notes_is_listed(shell: Shell, tmp_path: Path) -> None:
    """What is below the project's folder is kept relative to it."""
    noted = shell.answer("activity", "add", str(tmp_path / "src" / "pay.py"), "write", "--root", str(tmp_path))
    assert noted["file_type"] == "python"
    assert [file["path"] for file in shell.answer("files")["files"]] == ["src/pay.py"]
    assert shell.code("activity") == 2


def test_memories_that_misled_are_settled_and_taken_back(shell: Shell, home: Path) -> None:
    """Forgotten, replaced or cleared in one command; what it says undoes it does."""
    texts = ("The queue is drained at noon.", "The queue is drained at one.", "The queue is drained at two.")
    gone, replaced, kept = (shell.remember(text) for text in texts)
    newer = shell.remember("The queue is drained at midnight.")
    with Sidecar.connect(home, start=False) as sidecar:
        for memory_id in (gone, replaced, kept):
            for name in ("first", "second"):
                request = validation.ChallengeMemoryRequest(memory_id=memory_id, reason=f"not so in {name}")
                request.caller.CopyFrom(CallContext(client="tester", session=name))
                sidecar.challenge_memory(request)
    shell.answer("promote", gone)
    assert {item["memory_id"] for item in shell.answer("review")["items"]} == {gone, replaced, kept}
    forgotten = shell.answer("review", gone, "accept")
    assert forgotten["undo"] == [f"sidecar restore {gone}", f"sidecar promote {gone}"]
    assert shell.answer("get", gone)["memory"]["state"] == "forgotten"
    shell.answer(*forgotten["undo"][0].split()[1:])
    assert shell.answer("get", gone)["memory"]["state"] == "active"
    superseded = shell.answer("review", replaced, "accept", "--by", newer)
    assert len(superseded["dispute_ids"]) == 2
    assert shell.answer("get", replaced)["memory"]["superseded_by"] == newer
    shell.answer(*superseded["undo"][0].split()[1:], "--yes")
    assert shell.answer("get", replaced)["memory"]["state"] == "active"
    shell.answer("review", kept, "dismiss")
    assert shell.answer("why", kept)["multiplier"] == 1
    assert shell.answer("review").get("items", []) == []
    assert shell.answer("disputes").get("disputes", []) == []
    assert shell.code("review", kept, "dismiss") == 2


def test_usefulness_is_told_from_the_shell(shell: Shell) -> None:
    """Evidence, what it changed, who should be looked at, and the figures."""
    used = shell.remember("The parser drops blank lines.")
    shell.answer("outcome", used, "succeeded")
    told = shell.answer("why", used, "--query", "blank lines", "-n", "global")
    assert told["multiplier"] > 1
    assert told["rank_change"]["rank"] == 1
    assert shell.answer("review")["items"] == []
    assert shell.answer("hygiene")["looked_at"] == 1
    assert shell.answer("judge")["parked"] == 0
    assert shell.answer("replay")["outcome"] == "too_little_data"
    captured = next(one for one in shell.answer("insights", "--days", "3")["series"] if one["name"] == "captured")
    assert captured["values"] == [0, 0, 1]
    assert shell.code("insights") == 0
