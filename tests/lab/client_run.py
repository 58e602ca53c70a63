"""What both runners share: starting a client cut off from the world, and what a run left behind."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.script import Script
from tests.lab.scripted_model import ScriptedModel

McpConfig = Mapping[str, Mapping[str, Any]]
"""Server name -> `command`, `args`, `env`, or `url`: what stands under `mcpServers` in a `.mcp.json`."""

Hooks = Mapping[str, Sequence[Mapping[str, Any]]]
"""Event -> matcher groups: what stands under `hooks` in a settings file. Both clients read this shape."""

ScriptSource = Script | Path | Sequence[Any] | Mapping[str, Any]
"""A script as an object, as a YAML or JSON file, or as plain data."""

Connect = Callable[[Mapping[str, str]], None]
"""Sets a client up as its user would, given the environment that the client will have."""

CLIENTS_DIR_VARIABLE = "LAB_CLIENTS_DIR"
_DEFAULT_CLIENTS_DIR = ".clients"


class ClientNotInstalledError(RuntimeError):
    """The client's program is neither in the clients' folder nor on the path."""


@dataclass(frozen=True)
class ClientRun:
    """One session of a client, one program run per prompt.

    Attributes:
        transcripts: Every transcript file, the main agent's first, then sub-agents' by name.
        exit_codes: One per prompt; a run stops at the first that is not 0.
        problems: Where the client's requests and the script did not fit; empty in a good run.
        unplayed: Part of the script -> count of replies that nobody asked for; empty in a good run.
        refused: Hosts outside that the client tried to reach.
        requests: Bodies of the model requests, in order.
    """

    session_id: str
    transcripts: tuple[Path, ...]
    exit_codes: tuple[int, ...]
    stdout: str
    stderr: str
    duration_s: float
    problems: tuple[str, ...]
    unplayed: Mapping[str, int]
    refused: tuple[str, ...]
    requests: tuple[Mapping[str, Any], ...]

    @property
    def exit_code(self) -> int:
        """The last program's exit code."""
        return self.exit_codes[-1]


@dataclass(frozen=True)
class Finished:
    """One finished program run."""

    exit_code: int
    stdout: str
    stderr: str


def find_client(name: str) -> Path:
    """Return the client's program.

    Looks in `$LAB_CLIENTS_DIR/node_modules/.bin` (by default `.clients/...`), then on the path.

    Raises:
        ClientNotInstalledError: If it is in neither.
    """
    installed = Path(os.environ.get(CLIENTS_DIR_VARIABLE, _DEFAULT_CLIENTS_DIR)) / "node_modules" / ".bin" / name
    found = str(installed.absolute()) if installed.exists() else shutil.which(name)
    if found is None:
        raise ClientNotInstalledError(
            f"{name} is neither in {installed.parent} nor on the path; `make lab` installs it where npm is"
        )
    return Path(found)


def load_script(script: ScriptSource) -> Script:
    """Return the script that `script` stands for."""
    if isinstance(script, Script):
        return script
    return Script.load(script) if isinstance(script, Path) else Script.parse(script)


def closed_environment(home: Path, model: ScriptedModel) -> dict[str, str]:
    """Return an environment with nothing of the caller's but its search path.

    All web traffic but the loopback interface's goes to the model's refusing proxy.
    """
    proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), model.url)
    loopback = "127.0.0.1,localhost"
    return {"PATH": os.environ["PATH"], "HOME": str(home), "NO_PROXY": loopback, "no_proxy": loopback, **proxy}


def run_program(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float) -> Finished:
    """Run a program to its end, without standard input.

    Raises:
        subprocess.TimeoutExpired: If it takes longer; it and its children are killed.
    """
    process = subprocess.Popen(
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Finished(process.returncode, stdout, stderr)


def finish(
    model: ScriptedModel, session_id: str, transcripts: Sequence[Path], runs: Sequence[Finished], started_s: float
) -> ClientRun:
    """Gather what a session left behind; `started_s` is a `time.monotonic` value."""
    return ClientRun(
        session_id=session_id,
        transcripts=tuple(sorted(transcripts, key=lambda path: (session_id not in path.stem, str(path)))),
        exit_codes=tuple(run.exit_code for run in runs),
        stdout="".join(run.stdout for run in runs),
        stderr="".join(run.stderr for run in runs),
        duration_s=time.monotonic() - started_s,
        problems=tuple(model.player.problems),
        unplayed=model.player.unplayed(),
        refused=tuple(model.journal.refused),
        requests=tuple(received.body for received in model.journal.requests),
    )
