"""Sees to it that the tests of the dashboard have a Chromium: installs Debian's where that is possible unasked.

Elsewhere it says what to do, and only CI fails for want of one: there, skipped tests would go unnoticed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names under which the tests look for it."""

_PACKAGE: Final = "chromium"
_ADVICE: Final = (
    "no Chromium is on PATH, so the dashboard cannot be tested in a browser; install it, such as with "
    f"`apt-get install {_PACKAGE}`\n"
)


def main(arguments: Sequence[str]) -> int:
    """Install a browser unless there is one, and return the exit status."""
    if arguments:
        sys.stderr.write("usage: python -m tests.architecture.gates.install_browser\n")
        return 2
    if found() or (_may_install() and _install()):
        sys.stdout.write(f"browser for tests: {found()}\n")
        return 0
    sys.stderr.write(_ADVICE)
    return 1 if os.environ.get("CI") else 0


def found() -> str:
    """Return the path of a browser; empty if there is none."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), "")


def _may_install() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install() -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", _PACKAGE]):
        outcome = subprocess.run(["apt-get", "-q", *command], env=environment, stdout=subprocess.DEVNULL, check=False)
        if outcome.returncode != 0:
            return False
    return bool(found())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
