"""Records the sessions that `sidecar demo` plays: the real Claude Code, a scripted model, our own bridge and sidecar.

`python -m tests.lab.record_demo --home /tmp/record-demo`, then look at the difference. The home is written anew.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.cli.demo.recordings import StoryMemory
from sidecar.client import DataFolder, Sidecar, stop
from tests.lab.claude_code import run_claude_code

DATA = Path(__file__).resolve().parents[2] / "sidecar" / "cli" / "demo" / "data"
PROJECT = "/home/dev/saltmarsh"
ID = r"mem_[0-9A-HJKMNP-TV-Z]{26}"
BLANK = "(the client's own text)"


def about(words: str) -> str:
    """Return what finds, in a recall's result, the id of the memory with these words."""
    return rf"{ID}(?=(?:(?!{ID}).)*{words})"


SESSIONS: Mapping[str, Mapping[str, Any]] = {
    "1-deploy": {
        "prompts": ["Please get v2.41 of the API, with the new fares, out to production."],
        "script": [
            {
                "say": "Let me see what is known about deploying the API.",
                "call": "recall",
                "args": {"query": "deploying the API"},
                "capture": {"migrate": about("migrate-check")},
            },
            {
                "say": "A migration once stopped ticket sales, so I check the migrations before I deploy anything.",
                "call": "Bash",
                "args": {"command": "make migrate-check", "description": "Check migrations for locks"},
            },
            {
                "say": "Good that I looked: 0087 would have locked `crossings`. I split it in two and note that.",
                "call": "remember",
                "args": {
                    "content": "Migration 0087 (fares) is split in two: the index on `crossings` is built "
                    "concurrently, because `make migrate-check` found that it would lock the table.",
                    "memory_type": "decision",
                    "links": [{"relation": "derived_from", "memory_id": "${migrate}"}],
                },
            },
            {"say": "v2.41 is ready: the migration no longer takes a lock, and the window is open until 15:00."},
        ],
    },
    "2-queue": {
        "prompts": ["Ticket jobs got stuck again. Before you look: how does the queue work here?"],
        "script": [
            {
                "call": "recall",
                "args": {"query": "how does the ticket queue work"},
                "capture": {"old": about("RabbitMQ")},
            },
            {
                "say": "One memory says RabbitMQ, others say Redis. The settings decide.",
                "call": "Bash",
                "args": {"command": "cat config/queue.toml", "description": "See which queue is configured"},
            },
            {
                "say": "It is Redis. I replace the outdated memory.",
                "call": "remember",
                "args": {
                    "content": "The ticket queue runs on Redis lists, one for each pier; RabbitMQ was removed in 2025.",
                    "memory_type": "decision",
                    "links": [{"relation": "supersedes", "memory_id": "${old}"}],
                },
            },
            {"say": "The queue is a Redis list per pier; failed jobs go to `tickets:dead`."},
        ],
    },
    "3-only-shown": {
        "prompts": ["The label on this scanner says mk2. Can I put the new firmware on it?"],
        "script": [
            {"call": "recall", "args": {"query": "scanner firmware"}},
            {"say": "I will ask the vendor first; the label is no proof of the board inside."},
        ],
    },
}


def main() -> None:
    """Record every session into the demo's data."""
    parser = argparse.ArgumentParser(description="Record the demo's sessions with the real Claude Code.")
    parser.add_argument("--home", type=Path, required=True, help="a folder for everything; emptied first")
    home: Path = parser.parse_args().home.resolve()
    shutil.rmtree(home, ignore_errors=True)
    ids = _store_story(home / "sidecar")
    out = DATA / "sessions"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    try:
        for name, session in SESSIONS.items():
            _record(name, session, home, out)
    finally:
        stop(home / "sidecar", force=True)
    (DATA / "recorded_ids.json").write_text(json.dumps(ids, indent=2) + "\n", encoding="utf-8")


def _store_story(home: Path) -> dict[str, str]:
    """Store the story's memories in a sidecar of its own and return name -> id."""
    story = json.loads((DATA / "memories.json").read_text(encoding="utf-8"))
    memories = [StoryMemory(**memory) for memory in story["memories"]]
    DataFolder.at(home).prepare()
    (home / "config.toml").write_text("watcher = false\n", encoding="utf-8")
    with Sidecar.connect(home, context=memory_pb2.CallContext(client="demo", project=story["project"])) as sidecar:
        ids = {
            memory.name: sidecar.remember(
                pb.RememberRequest(
                    content=memory.content,
                    memory_type=memory_pb2.MemoryType.Value(f"MEMORY_TYPE_{memory.type.upper()}"),
                    importance=memory.importance,
                )
            ).memory_id
            for memory in memories
        }
        sidecar.wait_for_index(admin.WaitForIndexRequest())
    return ids


def _record(name: str, session: Mapping[str, Any], home: Path, out: Path) -> None:
    project = home / "work" / "saltmarsh"
    (project / "config").mkdir(parents=True, exist_ok=True)
    (project / "Makefile").write_text("migrate-check:\n\t@echo '0087_fares: CREATE INDEX locks crossings'\n")
    (project / "config" / "queue.toml").write_text('backend = "redis"\nlist = "tickets:{pier}"\n')
    server = {
        "command": sys.executable,
        "args": ["-m", "sidecar", "mcp", "--home", str(home / "sidecar")],
        "env": {"SIDECAR_HOME": str(home / "sidecar")},
    }
    run = run_claude_code(
        session["script"], {"memory": server}, prompt=session["prompts"], home=_new(home / name), project=project
    )
    faults = [*run.problems, *run.unplayed, *run.refused, *(str(code) for code in run.exit_codes if code)]
    if faults:
        raise SystemExit(f"{name}: {'; '.join(faults)}\n{run.stderr[-2000:]}")
    text = run.transcripts[0].read_text(encoding="utf-8").replace(str(project), PROJECT)
    # The scripted model numbers its calls anew in each session; a real one never gives the same id twice.
    text = text.replace("toolu_scripted_", f"toolu_scripted_{name[0]}")
    lines = [_blanked(line) for line in text.splitlines(keepends=True)]
    if str(home) in "".join(lines):
        raise SystemExit(f"{name}: a path of this machine is left in the transcript")
    (out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    sys.stdout.write(f"{name}: {len(lines)} lines, {run.duration_s:.1f} s\n")


def _blanked(line: str) -> str:
    """Return the line without the client's own prompt texts; kinds and ids stay."""
    record = json.loads(line)
    if record.get("type") != "attachment":
        return line
    record["attachment"] = {key: _blank(key, value) for key, value in record["attachment"].items()}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def _blank(key: str, value: Any) -> Any:
    if isinstance(value, str) and key != "type":
        return BLANK
    if isinstance(value, list):
        return [_blank("", item) for item in value]
    if isinstance(value, dict):
        return {inner: _blank(inner, item) for inner, item in value.items()}
    return value


def _new(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


if __name__ == "__main__":
    main()
