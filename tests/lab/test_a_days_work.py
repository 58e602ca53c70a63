"""A day's work of real, connected clients in one session: the ledger holds what the model got, id for id."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.api.v1.memory_pb2 import MEMORY_TYPE_GOLDEN_RULE, CallContext
from sidecar.client import Sidecar
from sidecar.domain.ids import find_memory_ids
from tests.e2e.running import running_sidecar, wait_until_embedded
from tests.lab.client_run import ClientRun
from tests.lab.codex import CodexToolMode
from tests.lab.test_connected_clients import sidecar as run_command

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

ID = r"mem_[0-9A-HJKMNP-TV-Z]{26}"
RULE = "Run the whole check before every push."
DEPLOYS = "Deploys go out on Tuesday at 10:00 UTC, never on Friday."
STAGING = "The staging database is restored from production every night."
FLAGS = "Feature flags live in flags.toml and need a restart."
PROMPTS = ["We deploy at 11:00 now.", "And the flags?"]
FIRST_PROCESS: list[dict[str, Any]] = [
    {"call": "recall", "args": {"query": "when do deploys go out", "n_results": 1}, "capture": {"ids": ID}},
    {
        "say": "On Tuesday; you moved them to 11:00, so I note that.",
        "call": "remember",
        "args": {
            "content": "Deploys go out on Tuesday at 11:00 UTC, never on Friday.",
            "links": [{"relation": "supersedes", "memory_id": "${ids[0]}"}],
        },
    },
    {"call": "recall", "args": {"query": "staging database", "n_results": 1}, "capture": {"stale": ID}},
    {"call": "challenge", "args": {"memory_id": "${stale[0]}", "reason": "It is restored every week."}},
    {"say": "Noted both."},
]
RESUMED: list[dict[str, Any]] = [
    {
        "calls": [
            {"call": "recall", "args": {"query": "feature flags"}},
            {"call": "recall", "args": {"query": "when do deploys go out"}},
            {"call": "recall", "args": {"query": " "}},
        ]
    },
    {"call": "build_context", "args": {"query": "harbour lights", "token_budget": 6_000}},
]
SCOUT = {"when": "Scout, find out", "replies": [{"call": "recall", "args": {"query": "flags"}}, {"say": "In a file."}]}
ASK_SCOUT = {
    "call": "Agent",
    "args": {"description": "Flags", "prompt": "Scout, find out about flags.", "subagent_type": "general-purpose"},
}


@contextmanager
def _prepared(tmp_path: Path, **settings: str) -> Iterator[tuple[Sidecar, list[str]]]:
    context = CallContext(client="test", project="harbour")
    with running_sidecar(tmp_path / "home", context=context, watcher=True, **settings) as running:
        running.remember(pb.RememberRequest(content=RULE, memory_type=MEMORY_TYPE_GOLDEN_RULE))
        ids = [running.remember(pb.RememberRequest(content=one)).memory_id for one in (DEPLOYS, STAGING, FLAGS)]
        for number in range(40):
            long = (
                f"Harbour light {number} blinks every {number + 3} seconds. " + "It is painted white and green. " * 60
            )
            running.remember(pb.RememberRequest(content=long))
        wait_until_embedded(running)
        yield running, ids


def _connect(client: str, tmp_path: Path, project: Path) -> Callable[[Mapping[str, str]], None]:
    project.mkdir(parents=True)

    def connect(env: Mapping[str, str]) -> None:
        run_command("--home", str(tmp_path / "home"), "connect", client, env=env, cwd=project)

    return connect


def test_claude_code_over_a_day(claude_code: Callable[..., ClientRun], tmp_path: Path) -> None:
    """Briefing, use, challenge, resume, parallel and failing calls, a large result and a sub-agent."""
    project = tmp_path / "work" / "harbour"
    script = {"main": [*FIRST_PROCESS, *RESUMED, ASK_SCOUT, {"say": "In flags.toml."}], "agents": [SCOUT]}
    config = str(tmp_path / "claude_code" / ".claude")
    with _prepared(tmp_path, watch_clients="claude-code", claude_config_dir=config) as (sidecar, ids):
        connect = _connect("claude-code", tmp_path, project)
        run = claude_code(script, {}, connect=connect, prompt=PROMPTS, project=project)
        assert (run.exit_code, run.problems, dict(run.unplayed)) == (0, (), {}), run.stderr
        told = _claude_results(run)
        recalls = _await_recalls(sidecar, "claude-code", run.session_id, count=7)
        _check_outcome(sidecar, "claude-code", ids)
    assert RULE in json.dumps(run.requests[0])
    for recall in recalls:
        assert tuple(recall.shown.ids.memory_ids) == told[recall.call_id], recall
        assert (recall.shown.WhichOneof("state") == "unknown") == (told[recall.call_id] == ())
    assert len([recall for recall in recalls if recall.agent_id]) == 1
    (large,) = [recall for recall in recalls if recall.tool == "build_context"]
    assert len(large.shown.ids.memory_ids) > 10


@pytest.mark.parametrize("mode", [CodexToolMode.CODE, CodexToolMode.DIRECT])
def test_codex_over_a_day(codex: Callable[..., ClientRun], tmp_path: Path, mode: CodexToolMode) -> None:
    """The same in scripts and by direct calls; what is cut out of a large result was not shown."""
    project = tmp_path / "work" / "harbour"
    home = str(tmp_path / "codex" / ".codex")
    with _prepared(tmp_path, watch_clients="codex", codex_home=home) as (sidecar, ids):
        run = codex(
            [*FIRST_PROCESS, *RESUMED, {"say": "In flags.toml."}],
            {},
            connect=_connect("codex", tmp_path, project),
            prompt=PROMPTS,
            project=project,
            tool_mode=mode,
            extra_args=["-c", "mcp_servers.memory.required=true"],
        )
        assert (run.exit_code, run.problems, dict(run.unplayed)) == (0, (), {}), run.stderr
        recalls = _await_recalls(sidecar, "codex", run.session_id, count=6)
        _check_outcome(sidecar, "codex", ids)
    seen = set(find_memory_ids("\n".join(_codex_results(run))))
    shown = {one for recall in recalls for one in recall.shown.ids.memory_ids}
    assert shown == seen
    assert len(shown) > 5
    assert [recall.shown.unknown.reason for recall in recalls if recall.shown.WhichOneof("state") == "unknown"] == [
        evidence.UNKNOWN_REASON_ERRORED
    ]


def _check_outcome(sidecar: Sidecar, client: str, ids: list[str]) -> None:
    """What was replaced passed its credit on, what was challenged fell, and the client was read without a warning."""
    deploys, staging, _ = ids
    (dispute,) = sidecar.list_disputes(validation.ListDisputesRequest()).disputes
    assert dispute.memory_id == staging
    assert sidecar.explain_memory(insights.ExplainMemoryRequest(memory_id=staging)).multiplier < 1
    answer = sidecar.recall(pb.RecallRequest(query="when do deploys go out", explain=True, internal=True))
    assert deploys not in [one.memory.id for one in answer.memories]
    (successor,) = [one for one in answer.memories if "11:00" in one.memory.content]
    assert successor.score_parts.reinforcement > 1
    (coverage,) = sidecar.get_coverage(evidence.GetCoverageRequest(client=client)).clients
    assert (bool(coverage.client_version), list(coverage.warnings)) == (True, [])


def _await_recalls(sidecar: Sidecar, client: str, session: str, *, count: int) -> list[evidence.SessionRecall]:
    request = evidence.GetSessionRequest(client=client, session=session)
    recalls: list[evidence.SessionRecall] = []
    for _ in range(300):
        recalls = list(sidecar.get_session(request).recalls)
        is_open = any(one.shown.unknown.reason == evidence.UNKNOWN_REASON_NO_RESULT for one in recalls)
        if len(recalls) == count and not is_open:
            return recalls
        time.sleep(0.1)
    raise AssertionError(f"after 30 s: {recalls}")


def _claude_results(run: ClientRun) -> dict[str, tuple[str, ...]]:
    """Call id -> ids in the result of a recalling tool, from the requests that the model really got."""
    calls: set[str] = set()
    results: dict[str, tuple[str, ...]] = {}
    for message in (message for request in run.requests for message in request.get("messages", ())):
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block.get("type") == "tool_use" and block["name"].endswith(("__recall", "__build_context")):
                calls.add(block["id"])
            if block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                is_error = block.get("is_error", False)
                results[block["tool_use_id"]] = () if is_error else find_memory_ids(json.dumps(block["content"]))
    return results


def _codex_results(run: ClientRun) -> list[str]:
    """Return the outputs of calls in the order in which the model got them."""
    outputs: dict[str, str] = {}
    for item in (item for request in run.requests for item in request.get("input", ())):
        if item["type"] in {"function_call_output", "custom_tool_call_output"}:
            outputs[item["call_id"]] = json.dumps(item["output"]).encode().decode("unicode_escape")
    return list(outputs.values())
