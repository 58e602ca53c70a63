"""Starts the sidecar for a session that begins while none runs, without waiting for it: the next hook will find it."""

import subprocess
import sys
from pathlib import Path


def start_in_background(home: Path) -> None:
    """Start the command that starts the sidecar of a data folder, if it is not there by then.

    With site-packages, of which a hook has none, but without the user's environment and the current folder.
    """
    subprocess.Popen(  # noqa: S603 - our own command, no shell
        (sys.executable, "-E", "-P", "-m", "sidecar", "start", "--home", str(home)),
        cwd=home.anchor,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        start_new_session=True,
    )
