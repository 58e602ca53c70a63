"""Real sidecars for tests: a process each, in a folder of its own, with the default model unless told otherwise."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import distribution
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import DataFolder, Sidecar, stop
from sidecar.client.launch import Launch
from sidecar.errors import SidecarNotRunningError

ROOT = Path(__file__).parents[2]
CONTEXT = CallContext(client="test", session="s-test", project="tested")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Give a data folder whose sidecar is stopped at the end."""
    folder = tmp_path / "home"
    write_settings(folder)
    yield folder
    with suppress(SidecarNotRunningError):
        stop(folder, force=True)


@contextmanager
def running_sidecar(home: Path, *, context: CallContext = CONTEXT, **settings: str | float | bool) -> Iterator[Sidecar]:
    """Give a client of a real sidecar, started with these settings and stopped afterwards; it watches nothing."""
    write_settings(home, **settings)
    try:
        with Sidecar.connect(home, context=context, launch=launch_of(home)) as sidecar:
            yield sidecar
    finally:
        with suppress(SidecarNotRunningError):
            stop(home, force=True)


def launch_of(home: Path) -> Launch:
    """Return how to start a sidecar of this checkout, also where another one is installed, as in a git worktree."""
    installed = json.loads(distribution("memory-sidecar").read_text("direct_url.json") or "{}").get("url", "")
    if installed in {"", ROOT.as_uri()}:
        return Launch()
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from sidecar.__main__ import main; main()"
    return Launch(command=(sys.executable, "-I", "-c", start, "serve", "--home", str(home)))


def write_settings(home: Path, **settings: str | float | bool) -> None:
    """Write the settings file of a data folder."""
    DataFolder.at(home).prepare()
    lines = [f"{name} = {_toml(value)}" for name, value in ({"watcher": False} | settings).items()]
    (home / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def wait_until_embedded(sidecar: Sidecar) -> None:
    """Return when everything stored can be found by meaning."""
    answer = sidecar.wait_for_index(admin.WaitForIndexRequest())
    assert answer.done, f"{answer.pending} memories still wait"


def _toml(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else str(value)
