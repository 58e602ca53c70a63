"""Finds the sidecar of a data folder, and starts one if there is none: one, however many clients want it at once.

Blocks; asynchronous clients call it in a thread. The order is: look; else take the start lock, look again, start, wait.
Whether a sidecar lives is told by the lock on the folder, and whether it works by a handshake; never by files alone.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Final

import grpc

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.client.build import THIS_BUILD, Build
from sidecar.client.channel import bearer, open_channel
from sidecar.client.endpoint import DataFolder, Endpoint, Holder
from sidecar.client.folder_lock import is_locked, try_lock
from sidecar.client.handshake import Greeting, greet
from sidecar.client.isolation import isolated_environment, isolated_python
from sidecar.client.methods import SHUTDOWN
from sidecar.client.trusted_files import check_private_folder, open_private_log
from sidecar.errors import (
    ProtocolMismatchError,
    SidecarHungError,
    SidecarNotRunningError,
    SidecarStartError,
    StorageFullError,
)

ALREADY_RUNNING_EXIT_CODE: Final = 3
"""What a sidecar ends with that finds the data folder taken."""

_POLL_S: Final = 0.05
_GREETING_WAIT_S: Final = 2.0
_LAST_WORDS_CHARACTERS: Final = 300
_LEAST_FREE_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class Launch:
    """How a sidecar is started and how long it is waited for.

    Attributes:
        command: What starts it; empty means this Python with `-m sidecar serve --home <folder>`.
        start_wait_s: How long a start, or the orderly stop before it, may take, seconds.
        hung_after_s: How long a sidecar that has been ready may stay silent before it counts as hung, seconds.
        build: What this client is; a sidecar that is older is replaced.
    """

    command: tuple[str, ...] = ()
    start_wait_s: float = 30.0
    hung_after_s: float = 5.0
    build: Build = THIS_BUILD


def find_running(
    folder: DataFolder, *, launch: Launch | None = None, given_up: threading.Event | None = None
) -> Endpoint:
    """Return the sidecar that runs for this data folder; starts none.

    Args:
        folder: The data folder.
        launch: How long to wait.
        given_up: Set by another thread when nobody waits for the answer any more; ends the search early.

    Raises:
        SidecarNotRunningError: None runs.
        SidecarHungError: One runs but does not answer.
        ProtocolMismatchError: It speaks another protocol.
        UntrustedPathError: Folder or files are not ours alone.
    """
    search = _Search(folder, launch or Launch(), given_up or threading.Event())
    endpoint = search.look(may_replace=False)
    if endpoint is None and check_private_folder(folder.home):
        endpoint = search.await_answer_or_end(may_replace=False)
    if endpoint is None:
        raise SidecarNotRunningError(str(folder.home))
    return endpoint


def find_or_start(
    folder: DataFolder, *, launch: Launch | None = None, given_up: threading.Event | None = None
) -> Endpoint:
    """Return the sidecar of this data folder, started if none runs, replaced if it is older than this client.

    Args:
        folder: The data folder.
        launch: How to start one, and how long to wait.
        given_up: See `find_running`; a sidecar that was started already goes on.

    Raises:
        SidecarStartError: It was started but ended or stayed silent; if it ended, the metadata has its exit code.
        SidecarHungError: One runs but does not answer.
        ProtocolMismatchError: A newer one runs that speaks another protocol.
        UntrustedPathError: Folder or files are not ours alone.
        StorageError: The folder cannot be made, or there is no space to start in.
    """
    search = _Search(folder, launch or Launch(), given_up or threading.Event())
    endpoint = search.look(may_replace=True)
    if endpoint is not None:
        return endpoint
    folder.prepare()
    while True:
        with try_lock(folder.start_lock_path) as is_ours:
            if is_ours:
                return search.start_unless_running()
        # Another client is at it; what it starts will do for us too.
        endpoint = search.look(may_replace=True)
        if endpoint is not None:
            return endpoint
        search.check_patience()
        search.pause()


class _Search:
    """One client's search for a sidecar, bounded in time as a whole."""

    def __init__(self, folder: DataFolder, launch: Launch, given_up: threading.Event) -> None:
        self._folder = folder
        self._given_up = given_up
        self._launch = launch
        self._begun = time.monotonic()
        self._may_still_replace = True

    def look(self, *, may_replace: bool) -> Endpoint | None:
        """Return the sidecar if one answers that will do."""
        greeting = self._greet()
        if greeting is None or not greeting.is_serving:
            return None
        theirs, ours = greeting.endpoint.build, self._launch.build
        if may_replace and self._may_still_replace and ours.is_newer_than(theirs):
            return None
        if theirs.protocol != ours.protocol:
            raise ProtocolMismatchError(client=ours.protocol, server=theirs.protocol)
        return greeting.endpoint

    def start_unless_running(self) -> Endpoint:
        """Look again, then start; the start lock is held."""
        endpoint = self.look(may_replace=True)
        if endpoint is None:
            self._retire_older()
            endpoint = self.await_answer_or_end(may_replace=True)
        if endpoint is not None:
            return endpoint
        process = self._spawn()
        while endpoint is None:
            endpoint = self.look(may_replace=False)
            if endpoint is None and process.poll() is not None:
                endpoint = self._after_early_end(process.returncode)
            if endpoint is None and self._waited_s() > self._launch.start_wait_s:
                raise SidecarStartError(str(self._folder.home), f"no answer within {self._launch.start_wait_s:g} s")
            if endpoint is None:
                self.pause()
        return endpoint

    def await_answer_or_end(self, *, may_replace: bool) -> Endpoint | None:
        """Wait while a process holds the folder; return its endpoint once it serves, or nothing once it is gone."""
        while is_locked(self._folder.lock_path):
            endpoint = self.look(may_replace=may_replace)
            if endpoint is not None:
                return endpoint
            self.check_patience()
            self.pause()
        return None

    def check_patience(self) -> None:
        """Raise if the holder of the folder has been silent for too long.

        Raises:
            SidecarHungError: It was ready before and is silent now, or takes longer to start or stop than it may.
        """
        waited_s = self._waited_s()
        if waited_s > self._launch.start_wait_s or (waited_s > self._launch.hung_after_s and self._holder_was_ready()):
            raise SidecarHungError(str(self._folder.home), waited_s)

    def pause(self) -> None:
        """Wait a little before looking again.

        Raises:
            SidecarNotRunningError: Nobody waits for the answer any more.
        """
        if self._given_up.wait(_POLL_S):
            raise SidecarNotRunningError(str(self._folder.home))

    def _holder_was_ready(self) -> bool:
        """Return whether the endpoint file is from the process that holds the lock, and nobody answers there."""
        endpoint, holder = Endpoint.read(self._folder), Holder.read(self._folder)
        is_same = endpoint is not None and holder is not None and endpoint.holder == holder
        return is_same and is_locked(self._folder.lock_path) and self._greet() is None

    def _retire_older(self) -> None:
        """Ask a sidecar that is older than this client to finish its work and go."""
        greeting = self._greet()
        if greeting is None or not self._launch.build.is_newer_than(greeting.endpoint.build):
            return
        # Once only: if what starts next is old again, two installations would otherwise fight for ever.
        self._may_still_replace = False
        if ask_to_stop(greeting.endpoint):
            self._await_end_of(greeting.endpoint.holder)

    def _await_end_of(self, holder: Holder) -> None:
        while is_locked(self._folder.lock_path) and Holder.read(self._folder) == holder:
            if self._waited_s() > self._launch.start_wait_s:
                raise SidecarHungError(str(self._folder.home), self._waited_s())
            self.pause()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        home = self._folder.home
        command = self._launch.command or (*isolated_python(), "-m", "sidecar", "serve", "--home", str(home))
        # Own output and session: a child with the client's stdout would keep the client's host from seeing its end.
        log = open_private_log(self._folder.start_log_path, truncate=True)
        try:
            process = subprocess.Popen(  # noqa: S603 - our own command, no shell
                command,
                cwd=home,
                env=isolated_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                close_fds=True,
                start_new_session=True,
                creationflags=_detached_flags(),
            )
        except OSError as error:
            raise SidecarStartError(str(home), f"{command[0]} cannot be run: {error.strerror}") from error
        finally:
            os.close(log)
        # A client that outlives the sidecar would otherwise keep a zombie of it.
        threading.Thread(target=process.wait, name="sidecar-reaper", daemon=True).start()
        return process

    def _after_early_end(self, exit_code: int) -> Endpoint | None:
        """Go on with the sidecar that was quicker than ours, or say why ours ended."""
        if exit_code == ALREADY_RUNNING_EXIT_CODE:
            endpoint = self.await_answer_or_end(may_replace=False)
            if endpoint is not None:
                return endpoint
        home = self._folder.home
        if shutil.disk_usage(home).free < _LEAST_FREE_BYTES:
            # It could not even say so: its last words go to a file.
            raise StorageFullError(str(home))
        raise SidecarStartError(str(home), f"it ended with {exit_code}{self._last_words()}", exit_code=exit_code)

    def _last_words(self) -> str:
        """Return the last line that the process said, to go behind its exit code."""
        lines = self._folder.start_log_path.read_text(errors="replace").strip().splitlines()
        return f", saying: {lines[-1][:_LAST_WORDS_CHARACTERS]}" if lines else ""

    def _greet(self) -> Greeting | None:
        return greet(self._folder, wait_s=min(_GREETING_WAIT_S, self._launch.hung_after_s))

    def _waited_s(self) -> float:
        return time.monotonic() - self._begun


def ask_to_stop(endpoint: Endpoint) -> bool:
    """Ask exactly this sidecar to finish its work and end; return whether it said yes. Does not wait for the end.

    Raises:
        UntrustedPathError: Something else than a socket of ours is in its place.
    """
    request = admin.ShutdownRequest(instance_id=endpoint.holder.instance_id)
    try:
        with open_channel(endpoint) as channel:
            call = channel.unary_unary(
                SHUTDOWN.path, request_serializer=SHUTDOWN.serialize, response_deserializer=SHUTDOWN.deserialize
            )
            call(request, timeout=SHUTDOWN.deadline_s, metadata=bearer(endpoint.token))
    except (grpc.RpcError, SidecarNotRunningError):
        return False
    return True


def _detached_flags() -> int:
    if sys.platform == "win32":
        return subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    return 0
