"""The demo does the main job: what recorded sessions were shown and used, and what ranks higher afterwards."""

import json
import subprocess
import sys
from pathlib import Path

from sidecar.cli.demo.recordings import Recording, load_recordings, load_story

DEPLOY = "deploying the API"
QUEUE = "how does the ticket queue work"


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar", "demo", *arguments], check=False, capture_output=True, text=True, timeout=110
    )


def test_the_loop_closes() -> None:
    """Shown ids equal the recording's, id for id; what was built on rises, what was replaced gives way."""
    run = run_demo("--json")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    names = _contents_by_recorded_id()
    recorded = [[names.get(memory_id, "") for memory_id in shown] for shown in map(_shown_in, load_recordings())]
    contents = {line["memory_id"]: line["content"] for ranking in told["before"].values() for line in ranking}
    contents |= {line["memory_id"]: line["content"] for ranking in told["after"].values() for line in ranking}
    # What was shown then is on record, whatever today's ranking would show.
    contents |= {line["memory_id"]: line["content"] for recall in told["recalls"] for line in recall["shown"]}
    for recall, expected in zip(told["recalls"], recorded, strict=True):
        assert [line["content"] for line in recall["shown"] if names] == [
            content or line["content"] for content, line in zip(expected, recall["shown"], strict=True)
        ]
    used = [[contents[memory_id][:20] for memory_id in recall["used"]] for recall in told["recalls"]]
    assert used == [["Run `make migrate-ch"], ["The ticket queue run"], []]
    before, after = told["before"][DEPLOY], told["after"][DEPLOY]
    assert before[0]["memory_id"] != after[0]["memory_id"]
    assert after[0]["content"].startswith("Run `make migrate-check`")
    assert after[0]["reinforcement"] > 1.0
    assert {line["memory_id"] for line in before} == {line["memory_id"] for line in after}
    assert told["before"][QUEUE][0]["content"].startswith("The ticket queue runs on RabbitMQ")
    assert told["after"][QUEUE][0]["content"].startswith("The ticket queue runs on Redis")
    assert not [line for line in told["after"][QUEUE] if "RabbitMQ with" in line["content"]]


def test_it_tells_a_person_what_happened_and_what_is_next() -> None:
    """Readable at 80 columns, and it ends with the command to go on with."""
    run = run_demo()
    assert run.returncode == 0, run.stderr
    assert max(len(line) for line in run.stdout.splitlines() if "connect all" not in line) <= 80
    assert "connect all" in run.stdout
    assert "1.01 -> 1.11" in run.stdout


def test_recordings_hold_no_path_of_a_machine_and_no_prompt_of_the_client() -> None:
    """What is shipped was looked at: the made-up folder only, and the client's own texts blanked."""
    folder = Path(sys.modules[load_story.__module__].__file__ or "").parent / "data" / "sessions"
    for path in folder.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            assert record.get("cwd", "/home/dev/saltmarsh") == "/home/dev/saltmarsh"
            for key, value in record.get("attachment", {}).items():
                assert (
                    key == "type" or "client's own text" in json.dumps(value) or value in ([], {}) or not _texts(value)
                )


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [text for item in value.values() for text in _texts(item)] if isinstance(value, dict) else []


def _contents_by_recorded_id() -> dict[str, str]:
    story = load_story()
    contents = {memory.name: memory.content for memory in story.memories}
    return {recorded: contents[name] for name, recorded in story.recorded_ids.items()}


def _shown_in(recording: Recording) -> list[str]:
    """Read the ids of the recall's result straight from the recording, without our reader."""
    calls: set[str] = set()
    shown: list[str] = []
    for line in recording.lines:
        content = (json.loads(line).get("message") or {}).get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_use" and block["name"].endswith("__recall"):
                calls.add(block["id"])
            if block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                shown += [memory["id"] for memory in json.loads(block["content"])["memories"]]
    return shown
