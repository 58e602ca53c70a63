"""Knows how long nobody has called, so that a sidecar that nobody needs can end."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

from sidecar.rpc.interceptors import HEALTH_PREFIX, AroundInterceptor, Context
from sidecar.server.application import OtherUse, Stopper

_LONGEST_CHECK_S: Final = 30.0
# The watcher keeps its stream open for as long as the sidecar lives, so an open stream is no use of it.
_NO_USE: Final = (HEALTH_PREFIX, "/sidecar.api.v1.EvidenceService/", "/grpc.reflection.")


class LastUse(AroundInterceptor):
    """Notes when the last call ended; calls under way count as now."""

    def __init__(self, other_use: OtherUse | None = None) -> None:
        """Begin with now; `other_use` counts as a call does."""
        super().__init__()
        self._other_use = other_use or OtherUse()
        self._last = time.monotonic()
        self._under_way = 0

    @property
    def idle_s(self) -> float:
        """Seconds since the last call ended; 0 while one is under way."""
        return 0.0 if self._under_way else min(time.monotonic() - self._last, self._other_use.idle_s)

    @contextlib.asynccontextmanager
    async def around(self, method: str, context: Context) -> AsyncIterator[None]:
        """See `AroundInterceptor.around`."""
        del context
        if method.startswith(_NO_USE):
            yield
            return
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._last = time.monotonic()


async def stop_when_idle(last_use: LastUse, stopper: Stopper, *, after_s: float) -> None:
    """Ask for a stop once nobody has called for so long; returns then. What waits in queues is on disk."""
    while True:
        remaining_s = after_s - last_use.idle_s
        if remaining_s <= 0:
            break
        await asyncio.sleep(min(remaining_s, _LONGEST_CHECK_S))
    stopper.request("nobody has called for a while")
