"""Runs the real Codex CLI against a scripted model."""

import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

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

_MARKETPLACE = "lab"
_INSTALL_TIMEOUT_S = 60.0
_ID_LENGTH = 36


class PluginNotInstalledError(RuntimeError):
    """Codex would not install the plugin; the message is Codex's own."""


class CodexToolMode(Enum):
    """How Codex offers MCP tools. It goes by the model's name, which is the value here."""

    CODE = "gpt-6.2-sol"
    """From JavaScript in the `exec` tool: all current models."""
    SEARCH = "gpt-5.5"
    """As functions, once the model has found them with `tool_search`: the last generation."""
    DIRECT = "scripted-model"
    """As functions from the start: any name that is not in Codex's catalogue."""


def run_codex(
    script: ScriptSource,
    mcp_config: McpConfig,
    hooks: Hooks | None = None,
    plugin_dir: Path | None = None,
    prompt: str | Sequence[str] = "Please go ahead.",
    *,
    tool_mode: CodexToolMode = CodexToolMode.CODE,
    notify: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    connect: Connect | None = None,
    home: Path | None = None,
    project: Path | None = None,
    env: Mapping[str, str] | None = None,
    forks: bool = False,
    in_terminal: bool = False,
    extra_args: Sequence[str] = (),
    timeout_s: float = 120.0,
) -> ClientRun:
    """Run one session of Codex, `codex exec` unless told otherwise, without sandbox and approvals.

    Args:
        script: What the model answers.
        hooks: Goes into `hooks.json` as it is.
        plugin_dir: A plugin to install, with its own MCP servers and hooks. It should mark its servers
            `required` in its `.mcp.json`. With plugins on, Codex tries to reach hosts outside.
        prompt: What the user says; each further prompt resumes the session.
        notify: Program that Codex starts at the end of each turn, with a JSON text as last argument.
        settings: Further `config.toml` keys, such as `{"model_auto_compact_token_limit": 5000}`.
        connect: Sets the client up before its first start, besides `mcp_config` and instead of `hooks`.
        home: Takes everything the client writes; a new temporary folder by default.
        project: The working directory; `home/project` by default.
        forks: Further prompts fork the session instead of resuming it.
        in_terminal: Type all prompts into one session of the terminal UI.
        timeout_s: For each program run.

    Raises:
        ClientNotInstalledError: If there is no `codex`.
        PluginNotInstalledError: If Codex refuses the plugin.
        subprocess.TimeoutExpired: If a program run takes longer than `timeout_s`.
        TimeoutError: The same, in the terminal.
    """
    home = home or Path(tempfile.mkdtemp(prefix="codex-home-"))
    project = project or home / "project"
    codex_home = home / ".codex"
    for folder in (project, codex_home):
        folder.mkdir(parents=True, exist_ok=True)
    if not connect:
        (codex_home / "hooks.json").write_text(json.dumps({"hooks": hooks or {}}), encoding="utf-8")
    program = str(find_client("codex"))
    options = ["--dangerously-bypass-approvals-and-sandbox"]
    options += ["--dangerously-bypass-hook-trust"] if hooks or plugin_dir or connect else []
    options += extra_args
    prompts = [prompt] if isinstance(prompt, str) else prompt
    started_s = time.monotonic()
    with ScriptedModel(load_script(script)) as model:
        config = _config(model, tool_mode, mcp_config, project, has_plugin=plugin_dir is not None)
        config |= {"notify": list(notify)} if notify else {}
        _write_config(codex_home / "config.toml", config | dict(settings or {}))
        variables = closed_environment(home, model) | {"CODEX_HOME": str(codex_home), "SCRIPTED_API_KEY": "scripted"}
        variables |= dict(env or {})
        if connect:
            connect(variables)
        if plugin_dir:
            _install_plugin(plugin_dir, home, program, variables)
        if in_terminal:
            # Without --no-daemon a server stays behind and keeps running.
            argv = [program, "--no-daemon", "--no-alt-screen", *options]
            runs = [run_in_terminal(argv, [*prompts, "/quit"], env=variables, cwd=project, timeout_s=timeout_s)]
        else:
            options += ["--json", "--skip-git-repo-check", "--strict-config"]
            runs = _exec_each(program, options, prompts, forks, env=variables, cwd=project, timeout_s=timeout_s)
        transcripts = sorted(codex_home.glob("sessions/**/*.jsonl"))
        session_id = transcripts[0].stem[-_ID_LENGTH:] if transcripts else ""
        return finish(model, session_id, transcripts, runs, started_s)


def _exec_each(
    program: str,
    options: Sequence[str],
    prompts: Sequence[str],
    forks: bool,
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float,
) -> list[Finished]:
    runs: list[Finished] = []
    session: list[str] = []
    for prompt in prompts:
        argv = [program, "exec", *session, *options, "--", prompt]
        runs.append(run_program(argv, env=env, cwd=cwd, timeout_s=timeout_s))
        if runs[-1].exit_code != 0:
            break
        session = ["fork" if forks else "resume", _session_id(runs[0].stdout)]
    return runs


def _config(
    model: ScriptedModel, tool_mode: CodexToolMode, mcp_config: McpConfig, project: Path, *, has_plugin: bool
) -> dict[str, Any]:
    servers = {name: {"required": True, **server} for name, server in mcp_config.items()}
    return {
        "model": tool_mode.value,
        "model_provider": "scripted",
        "check_for_update_on_startup": False,
        # Both look for updates and catalogues on the network at each start.
        "features": {"plugins": has_plugin, "apps": False},
        "projects": {str(project): {"trust_level": "trusted"}},
        "analytics": {"enabled": False},
        "feedback": {"enabled": False},
        "model_providers": {
            "scripted": {
                "name": "Scripted model",
                "base_url": f"{model.url}/v1",
                "env_key": "SCRIPTED_API_KEY",
                "wire_api": "responses",
            }
        },
        # Codex starts MCP servers in the background; it waits for those that are required.
    } | ({"mcp_servers": servers} if servers else {})


def _install_plugin(plugin_dir: Path, home: Path, program: str, env: Mapping[str, str]) -> None:
    """Install a plugin as a user would, from a marketplace that holds nothing else."""
    name = json.loads((plugin_dir / ".codex-plugin" / "plugin.json").read_text(encoding="utf-8"))["name"]
    market = home / "marketplace"
    shutil.copytree(plugin_dir, market / "plugins" / name)
    entry = {
        "name": name,
        "source": {"source": "local", "path": f"./plugins/{name}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    catalogue = market / ".agents" / "plugins" / "marketplace.json"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text(json.dumps({"name": _MARKETPLACE, "plugins": [entry]}), encoding="utf-8")
    for arguments in (["marketplace", "add", str(market)], ["add", f"{name}@{_MARKETPLACE}"]):
        run = run_program([program, "plugin", *arguments], env=env, cwd=home, timeout_s=_INSTALL_TIMEOUT_S)
        if run.exit_code != 0:
            raise PluginNotInstalledError(run.stderr)


def _write_config(path: Path, config: Mapping[str, Any]) -> None:
    lines = [f"{_toml(key)} = {_toml(value)}\n" for key, value in config.items()]
    path.write_text("".join(lines), encoding="utf-8")


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    # TOML's basic strings, booleans and numbers are written as in JSON.
    return json.dumps(value)


def _session_id(stdout: str) -> str:
    events = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
    return next((event["thread_id"] for event in events if event["type"] == "thread.started"), "")
