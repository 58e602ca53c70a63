"""Keeps one child process running: starts it, starts it again when it ends, gives up when it keeps ending.

The child's stdin is a pipe whose other end only the sidecar holds, so the child sees the end of it even if the sidecar
is killed (see `sidecar.client.parent`). It gets no other descriptor of ours, and a session of its own.
"""

import asyncio
import contextlib
import enum
import logging
import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.client.isolation import isolated_environment
from sidecar.client.trusted_files import open_private_log

log = logging.getLogger(__name__)

_MAX_LOG_BYTES: Final = 2 * 1024 * 1024


class ChildState(enum.StrEnum):
    """How a child is."""

    OFF = "off"
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"


@dataclass(frozen=True)
class ChildReport:
    """A child at one moment.

    Attributes:
        state: How it is; `starting` also while it waits to be started again.
        pid: Process id; 0 if none runs.
        restarts: How often it was started again.
        problem: Why it does not run; empty if it does.
    """

    state: ChildState
    pid: int = 0
    restarts: int = 0
    problem: str = ""


@dataclass(frozen=True)
class RestartPolicy:
    """When a child that ended is started again.

    Attributes:
        crashes: So many ends within `window_s` are the last.
        window_s: Seconds.
        backoff_s: Wait before the first new start; doubles with each end in the window.
        longest_backoff_s: Longest wait.
        stop_wait_s: How long the child has to end when asked to, seconds.
    """

    crashes: int = 5
    window_s: float = 180.0
    backoff_s: float = 0.5
    longest_backoff_s: float = 30.0
    stop_wait_s: float = 3.0


class SupervisedChild:
    """One child process. Belongs to the event loop that started it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log_path: Path,
        environment: Mapping[str, str] | None = None,
        policy: RestartPolicy | None = None,
        on_change: Callable[[ChildReport], None] | None = None,
    ) -> None:
        """Describe the child; nothing is started.

        Args:
            name: For the log and for messages.
            command: Program and arguments.
            log_path: Where its stdout and stderr go, mode 0600.
            environment: Variables on top of those that every process of ours gets.
            policy: When it is started again.
            on_change: Called in the event loop when its state changes.
        """
        self._name = name
        self._command = tuple(command)
        self._log_path = log_path
        self._environment = dict(environment or {})
        self._policy = policy or RestartPolicy()
        self._on_change = on_change
        self._report = ChildReport(ChildState.OFF)
        self._ends: deque[float] = deque(maxlen=self._policy.crashes)
        self._supervision: asyncio.Task[None] | None = None

    @property
    def report(self) -> ChildReport:
        """How the child is."""
        return self._report

    def start(self) -> None:
        """Begin to keep the child running; returns at once."""
        if self._supervision is None:
            self._set(ChildState.STARTING)
            self._supervision = asyncio.create_task(self._supervise(), name=f"supervise-{self._name}")

    async def stop(self) -> None:
        """End the child, by force if it does not end when asked to."""
        if self._supervision is None:
            return
        self._supervision.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._supervision
        self._supervision = None
        self._set(ChildState.OFF)

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                process = await self._spawn()
            except OSError as error:
                self._set(ChildState.FAILED, problem=f"{self._command[0]} cannot be run: {error.strerror}")
                log.exception("child cannot be started", extra={"child": self._name})
                return
            self._set(ChildState.RUNNING, pid=process.pid)
            try:
                exit_code = await process.wait()
            except asyncio.CancelledError:
                await self._end(process)
                raise
            _close_stdin(process)
            self._ends.append(loop.time())
            log.warning("child ended", extra={"child": self._name, "exit_code": exit_code})
            if self._keeps_ending():
                self._give_up(exit_code)
                return
            self._set(ChildState.STARTING, problem=f"it ended with {exit_code} and is started again")
            await asyncio.sleep(self._backoff_s())
            self._report = ChildReport(ChildState.STARTING, restarts=self._report.restarts + 1)

    async def _spawn(self) -> asyncio.subprocess.Process:
        is_full = self._log_path.exists() and self._log_path.stat().st_size > _MAX_LOG_BYTES
        output = open_private_log(self._log_path, truncate=is_full)
        try:
            return await asyncio.create_subprocess_exec(
                *self._command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=isolated_environment() | self._environment,
                cwd=self._log_path.parent,
                close_fds=True,
                start_new_session=True,
            )
        finally:
            os.close(output)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Ask by closing stdin, which works on every system; then less politely."""
        _close_stdin(process)
        for insist in (process.terminate, process.kill):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self._policy.stop_wait_s)
                return
            with contextlib.suppress(ProcessLookupError):
                insist()
        await process.wait()

    def _keeps_ending(self) -> bool:
        is_full = len(self._ends) == self._policy.crashes
        return is_full and self._ends[-1] - self._ends[0] <= self._policy.window_s

    def _backoff_s(self) -> float:
        newest = self._ends[-1]
        recent = sum(1 for end in self._ends if newest - end <= self._policy.window_s)
        wait_s: float = min(self._policy.backoff_s * 2.0 ** (recent - 1), self._policy.longest_backoff_s)
        return wait_s

    def _give_up(self, exit_code: int) -> None:
        minutes = self._policy.window_s / 60
        problem = (
            f"the {self._name} ended {self._policy.crashes} times within {minutes:g} minutes, last with {exit_code}; "
            f"{self._log_path} says why. `sidecar restart` tries again"
        )
        log.error("child given up", extra={"child": self._name, "exit_code": exit_code})
        self._set(ChildState.FAILED, problem=problem)

    def _set(self, state: ChildState, *, pid: int = 0, problem: str = "") -> None:
        self._report = ChildReport(state, pid, self._report.restarts, problem)
        if self._on_change is not None:
            self._on_change(self._report)


def _close_stdin(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
