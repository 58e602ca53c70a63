"""Real clients run our hooks: the scripted model is told what the sidecar knows, the sidecar what the session did."""

import json
import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client_plugins.hooks.registration import HOOK_TIMEOUT_S, REGISTRATIONS, hook_command
from sidecar.api.v1 import activity_service_pb2 as activity
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import Sidecar
from tests.e2e.running import running_sidecar, wait_until_embedded
from tests.lab.client_run import ClientRun

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

RULE = "Run the whole check before every push."
FACT = "Deploys go out on Tuesday at 10:00 UTC, never on Friday."
PROMPTS = ["When do deploys go out?", "Thanks. Now write a haiku about autumn leaves."]
CONTEXT = CallContext(client="test", project="harbour")
_PATCH = "*** Begin Patch\n*** Add File: notes.txt\n+a note\n*** End Patch\n"


def _hooks(client: str, home: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what setup writes into the client's settings."""
    command = {"type": "command", "command": shlex.join(hook_command(client, home)), "timeout": HOOK_TIMEOUT_S}
    return {
        one.event: [{**({"matcher": one.matcher} if one.matcher else {}), "hooks": [command]}]
        for one in REGISTRATIONS[client]
    }


def _fences(run: ClientRun) -> list[set[str]]:
    """Return for each request to the model the marks of the briefings in it."""
    opening = re.compile(r"A line with ([0-9a-f]{16}) names the note")
    return [set(opening.findall(json.dumps(request))) for request in run.requests]


def _fill(sidecar: Sidecar) -> None:
    sidecar.remember(pb.RememberRequest(content=RULE, memory_type=memory_pb2.MEMORY_TYPE_GOLDEN_RULE))
    sidecar.remember(pb.RememberRequest(content=FACT))
    wait_until_embedded(sidecar)


def _await_file(sidecar: Sidecar, name: str) -> None:
    request = activity.ListRecentFilesRequest(project="harbour")
    for _ in range(300):
        if name in [file.path for file in sidecar.list_recent_files(request).files]:
            return
        time.sleep(0.1)
    raise AssertionError(f"{name} was not noted in 30 s")


def _await_shown(sidecar: Sidecar, session: str) -> list[evidence.SessionRecall]:
    request = evidence.GetSessionRequest(client="claude-code", session=session)
    recalls: list[evidence.SessionRecall] = []
    for _ in range(300):
        recalls = list(sidecar.get_session(request).recalls)
        if recalls and recalls[0].shown.WhichOneof("state") == "ids":
            return recalls
        time.sleep(0.1)
    raise AssertionError(f"after 30 s: {recalls}")


def _assert_briefed_once(run: ClientRun) -> None:
    """The first request holds a briefing of the session and one of the prompt; a resumed session gets no other."""
    assert f"> {RULE}" in json.dumps(run.requests[0], ensure_ascii=False)
    assert f"> {FACT}" in json.dumps(run.requests[0], ensure_ascii=False)
    fences = _fences(run)
    assert len(fences[0]) == 2
    assert set().union(*fences) == fences[0]


def test_claude_code_is_briefed_and_noted(claude_code: Callable[..., ClientRun], tmp_path: Path) -> None:
    """What the hooks put into its transcript is no recall: only the one recall of the session counts."""
    home, project = tmp_path / "home", tmp_path / "work" / "harbour"
    config = tmp_path / "claude_code" / ".claude"
    script = [
        {"call": "Write", "args": {"file_path": str(project / "notes.txt"), "content": "a note"}},
        {"call": "recall", "args": {"query": "when do deploys go out"}},
        {"say": "On Tuesday."},
        {"say": "Red leaves fall at dusk."},
    ]
    bridge = {"command": sys.executable, "args": ["-m", "sidecar", "mcp", "--home", str(home)]}
    with running_sidecar(home, context=CONTEXT, watcher=True, claude_config_dir=str(config)) as sidecar:
        _fill(sidecar)
        hooks = _hooks("claude-code", home)
        run = claude_code(script, {"memory": bridge}, hooks=hooks, prompt=PROMPTS, project=project)
        assert (run.exit_code, run.problems, dict(run.unplayed)) == (0, (), {}), run.stderr
        _await_file(sidecar, "notes.txt")
        recalls = _await_shown(sidecar, run.session_id)
        watcher_log = (home / "logs" / "watcher.log").read_text(encoding="utf-8")
    _assert_briefed_once(run)
    assert [recall.tool for recall in recalls] == ["recall"]
    assert "request to read refused" not in watcher_log
    assert not (home / "logs" / "hooks.log").exists()


def test_codex_is_briefed_and_noted(codex: Callable[..., ClientRun], tmp_path: Path) -> None:
    """Its patches name several files; they are noted relative to the project."""
    home, project = tmp_path / "home", tmp_path / "work" / "harbour"
    script = [
        {"call": "exec", "args": {"source": f"text(await tools.apply_patch({json.dumps(_PATCH)}));\n"}},
        {"say": "On Tuesday."},
        {"say": "Red leaves fall at dusk."},
    ]
    with running_sidecar(home, context=CONTEXT) as sidecar:
        _fill(sidecar)
        run = codex(script, {}, hooks=_hooks("codex", home), prompt=PROMPTS, project=project)
        assert (run.exit_code, run.problems, dict(run.unplayed)) == (0, (), {}), run.stderr
        _await_file(sidecar, "notes.txt")
    _assert_briefed_once(run)
    assert not (home / "logs" / "hooks.log").exists()
