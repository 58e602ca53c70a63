"""The packaged extension in a real editor, code-server (VS Code served to a browser), before the real sidecar."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError

import pytest

from tests.architecture.gates.vscode_extension import EXTENSION, node_program
from tests.e2e.running import ROOT

pytestmark = pytest.mark.lab

SESSION: Final = Path(__file__).with_name("vscode_session.mjs")
CLIENTS: Final = ROOT / os.environ.get("LAB_CLIENTS_DIR", ".clients")
_CODE_SERVER: Final = "node_modules/code-server/out/node/entry.js"
_PLAYWRIGHT: Final = "node_modules/playwright-core"
_START_TIMEOUT_S: Final = 60.0
_SESSION_TIMEOUT_S: Final = 240


@pytest.fixture
def code_server() -> Path:
    """Return code-server's entry; skip without it, since it is compiled while it is installed."""
    entry = CLIENTS / "code-server" / _CODE_SERVER
    if not entry.is_file():
        pytest.skip(f"{entry} is missing: docs/editors/vscode.md says how to install code-server")
    return entry


@pytest.fixture
def browser() -> tuple[Path, str]:
    """Return the folder of playwright-core and Chromium's program; skip without one of them."""
    playwright = CLIENTS / _PLAYWRIGHT
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not playwright.is_dir() or chromium is None:
        pytest.skip("playwright-core (from `make lab`) or Chromium is not installed")
    return playwright, chromium


@pytest.fixture
def package() -> Path:
    """Return the packaged extension; skip if it was not made."""
    packages = list((EXTENSION / "dist").glob("*.vsix"))
    if len(packages) != 1:
        pytest.skip("there is no dist/*.vsix, or several: run `make vsix`")
    return packages[0]


def test_a_session_in_the_editor(
    code_server: Path, browser: tuple[Path, str], package: Path, home: Path, tmp_path: Path
) -> None:
    """Every command does its work by clicking; a hostile memory stays text, and a hostile folder starts nothing."""
    project, stolen = _hostile_project(tmp_path)
    _write_user_settings(tmp_path)
    with _running(code_server, package, home, tmp_path) as address:
        playwright, chromium = browser
        run = subprocess.run(
            [node_program(), SESSION, playwright, chromium, f"{address}/?folder={project}", tmp_path],
            capture_output=True,
            text=True,
            timeout=_SESSION_TIMEOUT_S,
            check=False,
        )
    assert run.returncode == 0, f"pictures are in {tmp_path}: {run.stderr}"
    seen: dict[str, Any] = json.loads(run.stdout)
    assert seen["dialogs"] == []
    assert seen["images"] == 0
    assert "not shown yet" in seen["row"]
    hostile = "$(trash) [x](command:workbench.action.quit) <img src=x onerror=alert(1)> **b**"
    assert hostile in " ".join(seen["hover"].split())
    assert "(trash) [x](command:workbench.action.quit)" in seen["choice"]
    assert len(seen["menu"]) == 5
    assert not stolen.exists()


def _hostile_project(tmp_path: Path) -> tuple[Path, Path]:
    """Make a project whose settings name a program of its own, and the file that this program would write."""
    project, stolen = tmp_path / "shop", tmp_path / "stolen"
    (project / ".vscode").mkdir(parents=True)
    (project / "app.py").write_text('def deploy():\n    return "Tuesday"\n', encoding="utf-8")
    program = project / "sidecar"
    program.write_text(f"#!/bin/sh\ntouch {stolen}\n", encoding="utf-8")
    program.chmod(0o755)
    settings = {"memorySidecar.command": str(program), "memorySidecar.home": str(project)}
    (project / ".vscode/settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return project, stolen


def _write_user_settings(tmp_path: Path) -> None:
    """Write the settings that belong to the user of the editor."""
    folder = tmp_path / "editor/User"
    folder.mkdir(parents=True)
    settings = {
        "memorySidecar.command": str(Path(sys.executable).with_name("sidecar")),
        "chat.disableAIFeatures": True,
        "telemetry.telemetryLevel": "off",
        "workbench.startupEditor": "none",
        "workbench.secondarySideBar.defaultVisibility": "hidden",
    }
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


@contextmanager
def _running(code_server: Path, package: Path, home: Path, tmp_path: Path) -> Iterator[str]:
    """Give the address of an editor with the extension, which is ended afterwards."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "SIDECAR_", "VSCODE"))}
    environment = kept | {"HOME": str(tmp_path), "SIDECAR_HOME": str(home)}
    folders = ("--user-data-dir", tmp_path / "editor", "--extensions-dir", tmp_path / "extensions")
    command = (node_program(), code_server, *folders)
    subprocess.run([*command, "--install-extension", package], env=environment, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    words = ("--auth", "none", "--bind-addr", address.removeprefix("http://"))
    quiet = ("--disable-telemetry", "--disable-update-check", "--disable-workspace-trust")
    with (tmp_path / "editor.log").open("wb") as log:
        editor = subprocess.Popen([*command, *words, *quiet], env=environment, stdout=log, stderr=log)
    try:
        _wait_for(address)
        yield address
    finally:
        editor.terminate()
        editor.wait(30)


def _wait_for(address: str) -> None:
    """Return when the editor answers."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(f"{address}/healthz"):
                return
        except URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
