"""The whole loop with the real Claude Code: our bridge, our sidecar, our watcher; only the model is scripted."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import Sidecar
from sidecar.domain.ids import find_memory_ids
from tests.e2e.running import running_sidecar, wait_until_embedded
from tests.lab.client_run import ClientRun

pytestmark = pytest.mark.lab

ID = r"mem_[0-9A-HJKMNP-TV-Z]{26}"
FACTS = (
    "Deploys go out on Tuesday at 10:00 UTC, never on Friday.",
    "The staging database is restored from production every night.",
    "Feature flags live in flags.toml and need a restart.",
)
SCRIPT = [
    {"call": "recall", "args": {"query": "when do deploys go out"}, "capture": {"ids": ID}},
    {
        "say": "Deploys go out on Tuesday; you moved them to 11:00, so I note that.",
        "call": "remember",
        "args": {
            "content": "Deploys go out on Tuesday at 11:00 UTC, never on Friday.",
            "links": [{"relation": "supersedes", "memory_id": "${ids[0]}"}],
        },
    },
    {"say": "Done."},
    {
        "calls": [
            {"call": "recall", "args": {"query": "feature flags"}},
            {"call": "recall", "args": {"query": "staging database"}},
            {"call": "recall", "args": {"query": " "}},
        ]
    },
    {"say": "The flags are in flags.toml."},
]


@pytest.mark.timeout(300)
def test_ledger_equals_what_the_model_was_shown(claude_code: Callable[..., ClientRun], tmp_path: Path) -> None:
    """Id for id, over two processes of one session, with parallel calls and one that fails."""
    project = tmp_path / "work" / "harbour"
    client_home = tmp_path / "claude_code"
    context = CallContext(client="test", project="harbour")
    with running_sidecar(
        tmp_path / "home",
        context=context,
        watcher=True,
        watch_clients="claude-code",
        claude_config_dir=str(client_home / ".claude"),
    ) as sidecar:
        for fact in FACTS:
            sidecar.remember(pb.RememberRequest(content=fact))
        wait_until_embedded(sidecar)
        bridge = {"command": sys.executable, "args": ["-m", "sidecar", "mcp", "--home", str(tmp_path / "home")]}
        prompts = ["We deploy at 11:00 now.", "And the flags?"]
        run = claude_code(SCRIPT, {"memory": bridge}, prompt=prompts, project=project)
        assert (run.exit_code, run.problems, dict(run.unplayed), run.refused) == (0, (), {}, ())
        recalls = _await_recalls(sidecar, run.session_id, count=4)
    shown_to_model = _results_of_recalls(run)
    for recall in recalls:
        expected = shown_to_model[recall.call_id]
        state = recall.shown.WhichOneof("state")
        assert (state, tuple(recall.shown.ids.memory_ids)) == (("ids", expected) if expected else ("unknown", ()))
    assert [recall.shown.unknown.reason for recall in recalls if not shown_to_model[recall.call_id]] == [
        evidence.UNKNOWN_REASON_ERRORED
    ]
    assert [list(recall.used_memory_ids) for recall in recalls if recall.used_memory_ids] == [
        [shown_to_model[recalls[0].call_id][0]]
    ]


def test_replaced_memory_gives_its_credit_to_the_successor(
    claude_code: Callable[..., ClientRun], tmp_path: Path
) -> None:
    """What the session stored ranks with a multiplier, and what it replaced is gone from the answer."""
    client_home = tmp_path / "claude_code"
    context = CallContext(client="test", project="harbour")
    with running_sidecar(
        tmp_path / "home",
        context=context,
        watcher=True,
        watch_clients="claude-code",
        claude_config_dir=str(client_home / ".claude"),
    ) as sidecar:
        old = sidecar.remember(pb.RememberRequest(content=FACTS[0])).memory_id
        wait_until_embedded(sidecar)
        bridge = {"command": sys.executable, "args": ["-m", "sidecar", "mcp", "--home", str(tmp_path / "home")]}
        project = tmp_path / "work" / "harbour"
        run = claude_code(SCRIPT[:3], {"memory": bridge}, prompt="We deploy at 11:00 now.", project=project)
        assert (run.exit_code, run.problems) == (0, ())
        _await_recalls(sidecar, run.session_id, count=1)
        wait_until_embedded(sidecar)
        answer = sidecar.recall(pb.RecallRequest(query="when do deploys go out", explain=True, internal=True))
    assert old not in [recalled.memory.id for recalled in answer.memories]
    assert "11:00" in answer.memories[0].memory.content
    assert answer.memories[0].score_parts.reinforcement == pytest.approx(1.104, abs=0.001)


def _await_recalls(sidecar: Sidecar, session: str, *, count: int) -> list[evidence.SessionRecall]:
    request = evidence.GetSessionRequest(client="claude-code", session=session)
    recalls: list[evidence.SessionRecall] = []
    for _ in range(300):
        recalls = list(sidecar.get_session(request).recalls)
        if len(recalls) == count and not any(_is_open(recall) for recall in recalls):
            return recalls
        time.sleep(0.1)
    raise AssertionError(f"after 30 s: {recalls}; {sidecar.get_status(admin.GetStatusRequest()).watcher}")


def _is_open(recall: evidence.SessionRecall) -> bool:
    return recall.shown.unknown.reason == evidence.UNKNOWN_REASON_NO_RESULT


def _results_of_recalls(run: ClientRun) -> dict[str, tuple[str, ...]]:
    """Call id -> ids in the result, read from the requests that the model really got."""
    calls: set[str] = set()
    results: dict[str, tuple[str, ...]] = {}
    for message in (message for request in run.requests for message in request.get("messages", ())):
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_use" and block["name"].endswith("__recall"):
                calls.add(block["id"])
            if block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                is_error = block.get("is_error", False)
                results[block["tool_use_id"]] = () if is_error else find_memory_ids(json.dumps(block["content"]))
    return results
