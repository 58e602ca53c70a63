"""Keeps one task of the event loop going: starts it again when it fails, gives up when it keeps failing, and tells.

A disk or a queue that refuses is waited for without end: neither is the task's fault, and both pass by themselves.

Without it a task that failed would be gone unseen: nobody awaits it before the end. Child processes have `children`.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from sidecar.errors import SidecarError, StorageCorruptError, StorageError, TooManyRequestsError

log = logging.getLogger(__name__)

_NO_PROBLEM: Final = ""
# They pass without a restart, once there is space again or the queue is shorter.
_PASSING: Final = (StorageError, TooManyRequestsError)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a task that failed is started again.

    Attributes:
        failures: So many within `window_s` are the last.
        window_s: Seconds.
        backoff_s: Wait before the first new start; doubles with each failure in the window.
        longest_backoff_s: Longest wait while the disk or a queue refuses, which is tried again for ever.
    """

    failures: int = 5
    window_s: float = 180.0
    backoff_s: float = 0.5
    longest_backoff_s: float = 30.0


class SupervisedTask:
    """One task. Belongs to the event loop that started it; a run that returns has done its work."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Coroutine[None, None, None]],
        *,
        consequence: str,
        policy: RetryPolicy | None = None,
        on_give_up: Callable[[str], None] | None = None,
    ) -> None:
        """Describe the task; nothing is started.

        Args:
            name: For the log.
            run: Makes one run of it.
            consequence: What a person misses while it does not run, the beginning of a sentence.
            policy: When it is started again.
            on_give_up: Called with the reason once it is not started again; who takes it then tells of it.
        """
        self._name = name
        self._run = run
        self._consequence = consequence
        self._policy = policy or RetryPolicy()
        self._on_give_up = on_give_up
        self._failed_at: deque[float] = deque(maxlen=self._policy.failures)
        self._refused_in_a_row = 0
        self._task: asyncio.Task[None] | None = None
        self._problem = _NO_PROBLEM
        self.failures = 0

    @property
    def problem(self) -> str:
        """Why it does not run, and what to do; empty while it runs, when it is done, and once `on_give_up` has it."""
        return self._problem

    def start(self) -> None:
        """Begin; returns at once."""
        if self._task is None:
            self._task = asyncio.create_task(self._supervise(), name=self._name)

    async def stop(self) -> None:
        """Cancel it and wait until it has ended."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._task = None

    async def _supervise(self) -> None:
        while True:
            try:
                await self._run()
            except Exception as error:
                log.exception("background task failed", extra={"task": self._name})
                failure = error
            else:
                return
            self.failures += 1
            wait_s = self._wait_s(failure)
            reason = failure.message if isinstance(failure, SidecarError) else f"{type(failure).__name__}: {failure}"
            if wait_s is None:
                self._give_up(reason)
                return
            self._problem = f"{self._consequence}: {reason}; it is tried again"
            await asyncio.sleep(wait_s)
            self._problem = _NO_PROBLEM

    def _wait_s(self, failure: Exception) -> float | None:
        """Return how long to wait before the next start; None if there is none."""
        if isinstance(failure, _PASSING) and not isinstance(failure, StorageCorruptError):
            self._refused_in_a_row += 1
            return min(self._policy.backoff_s * 2.0 ** (self._refused_in_a_row - 1), self._policy.longest_backoff_s)
        self._refused_in_a_row = 0
        self._failed_at.append(asyncio.get_running_loop().time())
        return None if self._keeps_failing() else self._backoff_s()

    def _keeps_failing(self) -> bool:
        is_full = len(self._failed_at) == self._policy.failures
        return is_full and self._failed_at[-1] - self._failed_at[0] <= self._policy.window_s

    def _backoff_s(self) -> float:
        newest = self._failed_at[-1]
        recent = sum(1 for at in self._failed_at if newest - at <= self._policy.window_s)
        return self._policy.backoff_s * 2.0 ** (recent - 1)

    def _give_up(self, reason: str) -> None:
        log.error("background task given up", extra={"task": self._name})
        last = f"{reason}, {self._policy.failures} times in a row; `sidecar restart` tries again"
        if self._on_give_up is None:
            self._problem = f"{self._consequence}: {last}"
        else:
            self._problem = _NO_PROBLEM
            self._on_give_up(last)
