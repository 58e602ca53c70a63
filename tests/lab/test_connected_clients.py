"""Real clients that were set up with `sidecar connect` and nothing else recall through the real sidecar."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from client_plugins.hooks.registration import hook_command
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1.memory_pb2 import MEMORY_TYPE_GOLDEN_RULE, CallContext
from tests.e2e.running import ROOT, running_sidecar, wait_until_embedded
from tests.lab.client_run import ClientRun, find_client, run_program
from tests.lab.codex import CodexToolMode

pytestmark = pytest.mark.lab

FACT = "Deploys go out on Tuesday at 10:00 UTC, never on Friday."
SCRIPT = [
    {"call": "recall", "args": {"query": "when do deploys go out"}, "capture": {"ids": r"mem_[0-9A-HJKMNP-TV-Z]{26}"}},
    {"say": "On Tuesday, says ${ids[0]}."},
]
CONTEXT = CallContext(client="test", project="harbour")


def sidecar(*arguments: str, env: Mapping[str, str], cwd: Path) -> str:
    """Run a command of this checkout with a client's environment, and return its stdout."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from sidecar.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", start, *arguments]
    run = subprocess.run(command, env=dict(env), cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("hooks", ["--hooks", "--no-hooks"])
def test_connected_claude_code_recalls(claude_code: Callable[..., ClientRun], tmp_path: Path, hooks: str) -> None:
    """What is written is what the client reads: its own listing and a session that recalls both prove it."""
    home, project = tmp_path / "home", tmp_path / "work" / "harbour"
    project.mkdir(parents=True)

    def connect(env: Mapping[str, str]) -> None:
        sidecar("--home", str(home), "connect", "claude-code", hooks, env=env, cwd=project)
        listed = run_program([str(find_client("claude")), "mcp", "list"], env=env, cwd=project, timeout_s=60)
        assert "memory: " in listed.stdout
        assert "Connected" in listed.stdout

    with running_sidecar(home, context=CONTEXT) as connected:
        stored = connected.remember(pb.RememberRequest(content=FACT)).memory_id
        wait_until_embedded(connected)
        run = claude_code(SCRIPT, {}, connect=connect, prompt="When do we deploy?", project=project)
    assert (run.exit_code, run.problems, dict(run.unplayed), run.refused) == (0, (), {}, ())
    assert stored in run.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", [CodexToolMode.CODE, CodexToolMode.DIRECT])
def test_connected_codex_recalls(codex: Callable[..., ClientRun], tmp_path: Path, mode: CodexToolMode) -> None:
    """The same with Codex, whose configuration keeps what was in it and is read strictly."""
    home, project = tmp_path / "home", tmp_path / "work" / "harbour"
    project.mkdir(parents=True)

    def connect(env: Mapping[str, str]) -> None:
        before = (Path(env["CODEX_HOME"]) / "config.toml").read_text("utf-8")
        sidecar("--home", str(home), "connect", "codex", env=env, cwd=project)
        assert (Path(env["CODEX_HOME"]) / "config.toml").read_text("utf-8").startswith(before)

    with running_sidecar(home, context=CONTEXT) as connected:
        stored = connected.remember(pb.RememberRequest(content=FACT)).memory_id
        wait_until_embedded(connected)
        run = codex(
            SCRIPT,
            {},
            connect=connect,
            tool_mode=mode,
            prompt="When do we deploy?",
            project=project,
            extra_args=["-c", "mcp_servers.memory.required=true"],
        )
    assert (run.exit_code, run.problems, dict(run.unplayed)) == (0, (), {}), run.stderr
    assert stored in run.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_hooks_that_were_connected_deliver_a_briefing(
    request: pytest.FixtureRequest, tmp_path: Path, client: str
) -> None:
    """A golden rule reaches the model before its first answer, though the model asked for nothing."""
    if not Path(hook_command(client, tmp_path)[-4]).is_file():
        pytest.skip("the program of the hooks is not part of this checkout yet")
    run_client: Callable[..., ClientRun] = request.getfixturevalue(client.replace("-", "_"))
    home, project = tmp_path / "home", tmp_path / "work" / "harbour"
    project.mkdir(parents=True)

    def connect(env: Mapping[str, str]) -> None:
        sidecar("--home", str(home), "connect", client, env=env, cwd=project)

    with running_sidecar(home, context=CONTEXT) as connected:
        rule = pb.RememberRequest(content=FACT, memory_type=MEMORY_TYPE_GOLDEN_RULE)
        connected.remember(rule)
        wait_until_embedded(connected)
        run = run_client([{"say": "Hello."}], {}, connect=connect, prompt="Good morning.", project=project)
    assert (run.exit_code, run.problems) == (0, ()), run.stderr
    assert FACT in json.dumps(run.requests[0])


@pytest.mark.timeout(300)
def test_plugin_is_accepted_by_both_clients(
    claude_code: Callable[..., ClientRun], codex: Callable[..., ClientRun], tmp_path: Path
) -> None:
    """Both install it from the folder that comes with us, offline, and list its server."""
    marketplace, plugin = ROOT / "client_plugins" / "plugin_marketplace", "memory-sidecar@memory-sidecar"

    def installed(program: str, env: Mapping[str, str], *commands: tuple[str, ...]) -> str:
        shown = ""
        for command in (("plugin", "marketplace", "add", str(marketplace)), *commands, ("mcp", "list")):
            run = run_program([str(find_client(program)), *command], env=env, cwd=tmp_path, timeout_s=60)
            assert run.exit_code == 0, run.stdout + run.stderr
            shown = run.stdout
        return shown

    def install_in_claude_code(env: Mapping[str, str]) -> None:
        validate = ("plugin", "validate", "--strict", str(marketplace / "memory-sidecar"))
        listed = installed("claude", env, validate, ("plugin", "install", plugin))
        assert "plugin:memory-sidecar:memory: sidecar mcp" in listed

    def install_in_codex(env: Mapping[str, str]) -> None:
        assert "sidecar  mcp" in installed("codex", env, ("plugin", "add", plugin))

    on, off = {"features": {"plugins": True}}, ["-c", "features.plugins=false"]
    runs = (
        claude_code([{"say": "Hello."}], {}, connect=install_in_claude_code, env={"PATH": os.defpath}),
        codex([{"say": "Hello."}], {}, connect=install_in_codex, settings=on, extra_args=off),
    )
    assert [run.problems for run in runs] == [(), ()]


@pytest.mark.timeout(300)
def test_disconnected_clients_are_as_they_were(
    claude_code: Callable[..., ClientRun], codex: Callable[..., ClientRun], tmp_path: Path
) -> None:
    """After a session in between, which makes clients write their own files, nothing of ours is left in any of them."""
    home, project = tmp_path / "home", tmp_path / "work" / "harbour"
    project.mkdir(parents=True)
    seen: dict[str, Mapping[str, str]] = {}

    def connect_to(client: str) -> Callable[[Mapping[str, str]], None]:
        def connect(env: Mapping[str, str]) -> None:
            seen[client] = env
            sidecar("--home", str(home), "connect", client, env=env, cwd=project)

        return connect

    with running_sidecar(home, context=CONTEXT):
        claude_code([{"say": "Hello."}], {}, connect=connect_to("claude-code"), project=project)
        codex([{"say": "Hello."}], {}, connect=connect_to("codex"), project=project)
        for client, env in seen.items():
            sidecar("--home", str(home), "disconnect", client, env=env, cwd=project)
    texts = [
        path.read_text("utf-8", errors="replace")
        for folder in (tmp_path / "claude_code" / ".claude", tmp_path / "codex" / ".codex")
        for path in (*folder.glob("*.json"), *folder.glob(".claude.json"), *folder.glob("*.toml"))
    ]
    assert texts
    assert not [text for text in texts if "mcp_servers.memory" in text or '"memory"' in text or "hooks/run.py" in text]
    assert (tmp_path / "claude_code" / ".claude" / ".claude.json").exists()
