"""Finishes what was begun, although whoever asked for it stops waiting.

A deadline or a lost client cancels a call wherever it stands. A write that is committed all the same must also reach
the caches that stand in front of the store, or what was stored would be found only after a restart.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class Completion:
    """Runs work that nobody can cancel. Belongs to one event loop."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return the work's result; the work goes on if the caller is cancelled, and its error is then nobody's."""
        task = asyncio.create_task(work)
        # The event loop itself keeps no strong reference.
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait for everything that still runs."""
        if self._running:
            await asyncio.wait(set(self._running))

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Looked at, so that an error whose caller has gone is not reported as never retrieved.
            task.exception()
