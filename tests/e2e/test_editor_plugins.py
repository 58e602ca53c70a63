"""The editor extension's own tests of the wire, before the real language server instead of a scripted one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.gates.vscode_extension import EXTENSION, node_program
from tests.e2e.running import ROOT


@pytest.mark.skipif(
    not (EXTENSION / "node_modules").is_dir(), reason="the extension's packages are not installed: run `make extension`"
)
def test_extension_and_server_understand_each_other(home: Path) -> None:
    """A field that one of them renames would show as an error in every editor, and in no test of either alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "SIDECAR_"))}
    server = json.dumps([sys.executable, "-m", "sidecar", "lsp"])
    run = subprocess.run(
        [node_program(), "--test", "--test-reporter=tap", "tests/wire.test.ts"],
        cwd=EXTENSION,
        env=kept | {"SIDECAR_HOME": str(home), "PYTHONPATH": str(ROOT), "SIDECAR_LSP": server},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert "# pass 6" in run.stdout
    assert "# skipped 0" in run.stdout
