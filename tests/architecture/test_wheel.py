"""What the wheel holds: the product, and nothing that was installed or made beside it."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.architecture.sources import ROOT


def test_wheel_holds_the_plugins_and_no_packages_of_npm(tmp_path: Path) -> None:
    """The extension is packaged by itself; its npm packages are 230 MB that nobody should install by the way."""
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path))
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "vscode_extension" in name or "node_modules" in name]
    assert "client_plugins/neovim/lua/memory_sidecar/init.lua" in names
    assert "client_plugins/neovim/doc/memory-sidecar.txt" in names
