"""Runs the real Claude Code against a scripted model."""

import json
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.client_run import (
    ClientRun,
    Connect,
    Finished,
    Hooks,
    McpConfig,
    ScriptSource,
    closed_environment,
    find_client,
    finish,
    load_script,
    run_program,
)
from tests.lab.scripted_model import ScriptedModel
from tests.lab.terminal import run_in_terminal

_API_KEY = "scripted"


def run_claude_code(
    script: ScriptSource,
    mcp_config: McpConfig,
    hooks: Hooks | None = None,
    plugin_dir: Path | None = None,
    prompt: str | Sequence[str] = "Please go ahead.",
    *,
    connect: Connect | None = None,
    home: Path | None = None,
    project: Path | None = None,
    env: Mapping[str, str] | None = None,
    forks: bool = False,
    in_terminal: bool = False,
    extra_args: Sequence[str] = (),
    timeout_s: float = 120.0,
) -> ClientRun:
    """Run one session of Claude Code, in print mode unless told otherwise, all tools allowed.

    Args:
        script: What the model answers.
        hooks: Goes into the settings as it is.
        plugin_dir: A plugin to load, with its own MCP servers and hooks.
        prompt: What the user says; each further prompt resumes the session.
        connect: Sets the client up before its first start, instead of `mcp_config` and `hooks`, which are ignored.
        home: Takes everything the client writes; a new temporary folder by default.
        project: The working directory; `home/project` by default.
        env: Additional variables, such as `ENABLE_TOOL_SEARCH`.
        forks: Further prompts fork the session instead of resuming it.
        in_terminal: Type all prompts into one session of the terminal UI.
        timeout_s: For each program run.

    Raises:
        ClientNotInstalledError: If there is no `claude`.
        subprocess.TimeoutExpired: If a program run takes longer than `timeout_s`.
        TimeoutError: The same, in the terminal.
    """
    home = home or Path(tempfile.mkdtemp(prefix="claude-home-"))
    project = project or home / "project"
    project.mkdir(parents=True, exist_ok=True)
    given = [] if connect else _given_files(home, mcp_config, hooks)
    argv = [str(find_client("claude")), "--dangerously-skip-permissions", *given]
    argv += [*(["--plugin-dir", str(plugin_dir)] if plugin_dir else []), *extra_args]
    prompts = [prompt] if isinstance(prompt, str) else prompt
    session_id = str(uuid.uuid4())
    started_s = time.monotonic()
    with ScriptedModel(load_script(script)) as model:
        variables = _environment(home, model) | dict(env or {})
        if connect:
            connect(variables)
        if in_terminal:
            _skip_onboarding(home, project)
            argv += ["--session-id", session_id]
            lines = [*prompts, "/exit"]
            runs = [run_in_terminal(argv, lines, env=variables, cwd=project, timeout_s=timeout_s)]
        else:
            argv += ["--print", "--verbose", "--output-format", "stream-json"]
            runs = _print_each(argv, prompts, session_id, forks, env=variables, cwd=project, timeout_s=timeout_s)
        return finish(model, session_id, list(home.glob(".claude/projects/**/*.jsonl")), runs, started_s)


def _print_each(
    argv: Sequence[str],
    prompts: Sequence[str],
    session_id: str,
    forks: bool,
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float,
) -> list[Finished]:
    runs: list[Finished] = []
    session = ["--session-id", session_id]
    for prompt in prompts:
        runs.append(run_program([*argv, *session, "--", prompt], env=env, cwd=cwd, timeout_s=timeout_s))
        if runs[-1].exit_code != 0:
            break
        session = ["--resume", session_id, *(["--fork-session"] if forks else [])]
    return runs


def _skip_onboarding(home: Path, project: Path) -> None:
    """Leave what a user leaves who has answered the first questions: theme, key, trust, permissions."""
    folder = home / ".claude"
    folder.mkdir(exist_ok=True)
    answers = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [_API_KEY], "rejected": []},
        "projects": {str(project): {"hasTrustDialogAccepted": True}},
    }
    (folder / ".claude.json").write_text(json.dumps(answers), encoding="utf-8")
    settings = {"skipDangerousModePermissionPrompt": True}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def _given_files(home: Path, mcp_config: McpConfig, hooks: Hooks | None) -> list[str]:
    mcp_file = home / "mcp.json"
    mcp_file.write_text(json.dumps({"mcpServers": mcp_config}), encoding="utf-8")
    settings_file = home / "settings.json"
    settings_file.write_text(json.dumps({"hooks": hooks or {}}), encoding="utf-8")
    return ["--mcp-config", str(mcp_file), "--settings", str(settings_file)]


def _environment(home: Path, model: ScriptedModel) -> dict[str, str]:
    return closed_environment(home, model) | {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": _API_KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # Asks the vendor's marketplace over ssh, past any proxy.
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
        # Without it the first request goes out before the MCP servers are up.
        "MCP_CONNECTION_NONBLOCKING": "0",
        # Permits --dangerously-skip-permissions for root, the usual user in a container.
        "IS_SANDBOX": "1",
    }
