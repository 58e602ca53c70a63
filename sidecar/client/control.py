"""Stops and replaces the sidecar of a data folder, also one that no longer answers. Blocks."""

import contextlib
import time
from pathlib import Path
from typing import Final

from sidecar.client.endpoint import DataFolder, Endpoint, Holder
from sidecar.client.folder_lock import is_locked
from sidecar.client.handshake import Greeting, greet
from sidecar.client.launch import Launch, ask_to_stop, find_or_start
from sidecar.client.processes import end_process
from sidecar.client.trusted_files import check_private_folder
from sidecar.errors import SidecarHungError, SidecarNotRunningError

_POLL_S: Final = 0.05
_GREETING_WAIT_S: Final = 2.0
_KILL_WAIT_S: Final = 3.0


def stop(home: Path | None = None, *, wait_s: float = 15.0, force: bool = False) -> None:
    """Ask the sidecar to finish what it accepted and end, and wait until it has.

    Args:
        home: The data folder; without one SIDECAR_HOME, else the user's own.
        wait_s: How long it may take, seconds.
        force: Whether one that does not answer, or not end, is killed. What it acknowledged is safe even then.

    Raises:
        SidecarNotRunningError: None runs.
        SidecarHungError: It did not end in time.
        UntrustedPathError: Folder or files are not ours alone.
    """
    folder = DataFolder.at(home)
    begun = time.monotonic()
    if not check_private_folder(folder.home) or not is_locked(folder.lock_path):
        raise SidecarNotRunningError(str(folder.home))
    holder = Holder.read(folder)
    greeting = _await_greeting(folder, holder)
    if greeting is not None and ask_to_stop(greeting.endpoint) and _await_end(folder, holder, wait_s=wait_s):
        return
    # Whoever holds the folder by now is the one to end: the pid is checked against its start time before each signal.
    if force and holder is not None and end_process(holder, wait_s=_KILL_WAIT_S):
        _await_end(folder, holder, wait_s=_KILL_WAIT_S)
    if is_locked(folder.lock_path) and Holder.read(folder) == holder:
        raise SidecarHungError(str(folder.home), time.monotonic() - begun)


def restart(home: Path | None = None, *, launch: Launch | None = None, wait_s: float = 15.0) -> Endpoint:
    """Stop the sidecar, killing it if it does not end in time, and start a new one; start one if none runs.

    Raises:
        SidecarStartError: The new one ended or stayed silent.
        SidecarHungError: The old one could not be ended.
        UntrustedPathError: Folder or files are not ours alone.
    """
    with contextlib.suppress(SidecarNotRunningError):
        stop(home, wait_s=wait_s, force=True)
    return find_or_start(DataFolder.at(home), launch=launch)


def _await_greeting(folder: DataFolder, holder: Holder | None) -> Greeting | None:
    """Return the sidecar once it answers; one that begins or ends just now refuses at once, and is not hung."""
    deadline = time.monotonic() + _GREETING_WAIT_S
    while True:
        greeting = greet(folder, wait_s=_GREETING_WAIT_S)
        is_held = is_locked(folder.lock_path) and Holder.read(folder) == holder
        if greeting is not None or not is_held or time.monotonic() >= deadline:
            return greeting
        time.sleep(_POLL_S)


def _await_end(folder: DataFolder, holder: Holder | None, *, wait_s: float) -> bool:
    """Return whether the folder was let go, or taken by another process, in time."""
    deadline = time.monotonic() + wait_s
    while is_locked(folder.lock_path) and Holder.read(folder) == holder:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True
