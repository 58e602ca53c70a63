"""Takes so many calls at once and refuses the next ones at the door, so that those under way still get their answers.

A refused call was not begun, so whoever made it may make it again. Health is not counted: it must answer under load.
Streams that stand open for as long as their client lives are counted apart: they wait most of the time, and a few
watchers and editors would otherwise leave no place for calls.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from sidecar.errors import TooManyRequestsError
from sidecar.rpc.interceptors import HEALTH_PREFIX, AroundInterceptor, Context

STANDING_STREAMS: Final = frozenset(
    f"/sidecar.api.v1.EvidenceService/{method}" for method in ("StreamEvidence", "WatchReadingRequests")
)
"""Methods whose calls last. What comes over the first is taken one batch after the other."""


class Admission(AroundInterceptor):
    """Counts calls under way, and standing streams as many again."""

    def __init__(self, max_calls: int) -> None:
        super().__init__()
        self._max_calls = max_calls
        self._calls = 0
        self._streams = 0

    @contextlib.asynccontextmanager
    async def around(self, method: str, context: Context) -> AsyncIterator[None]:
        """See `AroundInterceptor.around`.

        Raises:
            TooManyRequestsError: As many of the kind as may be are under way.
        """
        del context
        if method.startswith(HEALTH_PREFIX):
            yield
        elif method in STANDING_STREAMS:
            self._admit("streams", self._streams)
            self._streams += 1
            try:
                yield
            finally:
                self._streams -= 1
        else:
            self._admit("calls", self._calls)
            self._calls += 1
            try:
                yield
            finally:
                self._calls -= 1

    def _admit(self, kind: str, under_way: int) -> None:
        if under_way >= self._max_calls:
            raise TooManyRequestsError(kind)
