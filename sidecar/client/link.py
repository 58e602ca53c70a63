"""What the synchronous and the asynchronous client share: for whom they call, where, and what to do on a failure."""

import asyncio
import random
import threading
import time
from dataclasses import dataclass
from typing import Any, Final

import grpc

from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client.endpoint import DataFolder, Endpoint
from sidecar.client.folder_lock import is_locked
from sidecar.client.handshake import greet
from sidecar.client.launch import Launch, find_or_start, find_running
from sidecar.client.methods import Method
from sidecar.client.wire import error_of, is_missing_sidecar, overload_pause_s, was_refused
from sidecar.errors import DeadlineError, SidecarError, SidecarHungError

MAX_ATTEMPTS: Final = 3
_GREETING_WAIT_S: Final = 1.0


@dataclass(frozen=True)
class Link:
    """One client's way to the sidecar of one data folder.

    Attributes:
        folder: The data folder.
        may_start: Whether a sidecar is started where none runs, and an older one replaced.
        context: Filled into requests that do not say who calls.
        launch: How to start one, and how long to wait.
    """

    folder: DataFolder
    may_start: bool
    context: CallContext
    launch: Launch

    def find(self, given_up: threading.Event | None = None) -> Endpoint:
        """Return where the sidecar listens; blocks. See `find_or_start` and `find_running`."""
        find = find_or_start if self.may_start else find_running
        return find(self.folder, launch=self.launch, given_up=given_up)

    async def find_in_thread(self) -> Endpoint:
        """As `find`, without blocking the event loop. If it is cancelled, the thread ends soon too.

        An event loop waits for its threads before it ends: a search that went on would hold its process up.
        """
        given_up = threading.Event()
        try:
            return await asyncio.to_thread(self.find, given_up)
        finally:
            given_up.set()

    def explain(self, failure: grpc.RpcError, *, operation: str, deadline_s: float) -> SidecarError:
        """Return the error that a failed call stands for; asks a silent sidecar once more, so this may block 1 s."""
        error = error_of(failure, operation=operation, home=str(self.folder.home), deadline_s=deadline_s)
        is_silent = isinstance(error, DeadlineError) and greet(self.folder, wait_s=_GREETING_WAIT_S) is None
        if is_silent and is_locked(self.folder.lock_path):
            return SidecarHungError(str(self.folder.home), deadline_s + _GREETING_WAIT_S)
        return error


class Attempts:
    """Counts the attempts of one call and the time left for them."""

    def __init__(self, method: Method[Any, Any], *, deadline_s: float) -> None:
        self._method = method
        self._end = time.monotonic() + deadline_s
        self._count = 0

    @property
    def remaining_s(self) -> float:
        """How long the next attempt may take, seconds; never so short that gRPC would not send it at all."""
        return max(self._end - time.monotonic(), 0.001)

    def pause_s(self, failure: grpc.RpcError) -> float | None:
        """Return how long to wait before the call is made again as it is: it came at a bad moment, and was not begun.

        None if that is not why it failed, or too little time is left.
        """
        asked_s = overload_pause_s(failure)
        if asked_s is None or self._count + 1 >= MAX_ATTEMPTS:
            return None
        # Not all at once again.
        pause_s = asked_s * random.uniform(0.5, 1.5)  # noqa: S311 - nobody gains by guessing it
        if pause_s >= self.remaining_s:
            return None
        self._count += 1
        return pause_s

    def may_repeat(self, failure: grpc.RpcError) -> bool:
        """Return whether to find the sidecar again and repeat the call: it did no harm, and time is left."""
        self._count += 1
        if self._count >= MAX_ATTEMPTS or time.monotonic() >= self._end:
            return False
        return was_refused(failure) or (self._method.is_repeatable and is_missing_sidecar(failure))
