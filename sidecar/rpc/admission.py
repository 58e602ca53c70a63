"""Takes so many calls at once and refuses the next ones at the door, so that those under way still get their answers.

A refused call was not begun, so whoever made it may make it again. Health is not counted: it must answer under load.
"""

import contextlib
from collections.abc import AsyncIterator

from sidecar.errors import TooManyRequestsError
from sidecar.rpc.interceptors import HEALTH_PREFIX, AroundInterceptor, Context


class Admission(AroundInterceptor):
    """Counts calls under way, streams among them."""

    def __init__(self, max_calls: int) -> None:
        super().__init__()
        self._max_calls = max_calls
        self._under_way = 0

    @contextlib.asynccontextmanager
    async def around(self, method: str, context: Context) -> AsyncIterator[None]:
        """See `AroundInterceptor.around`.

        Raises:
            TooManyRequestsError: As many calls as may be are under way.
        """
        del context
        if method.startswith(HEALTH_PREFIX):
            yield
            return
        if self._under_way >= self._max_calls:
            raise TooManyRequestsError("calls")
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
