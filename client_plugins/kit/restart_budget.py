"""How often a bridge may start a sidecar that keeps ending. Starts nothing itself."""

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from sidecar.errors import UnavailableError

MAX_RESTARTS: Final = 5
RESTART_WINDOW_S: Final = 180.0


class RestartBudgetError(UnavailableError):
    """The sidecar died too often in a short time to be started once more."""

    reason = "RESTART_BUDGET"

    def __init__(self, home: str) -> None:
        super().__init__(
            f"the memory sidecar for {home} ended {MAX_RESTARTS} times within {RESTART_WINDOW_S / 60:.0f} minutes and "
            "is not started again for now; work on without memory and tell the user to run `sidecar doctor`",
            home=home,
        )


class RestartBudget:
    """Counts the starts after the first one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_first = True
        self._restarts: deque[float] = deque()

    def spend(self, home: str) -> None:
        """Count one start of the sidecar for this data folder.

        Raises:
            RestartBudgetError: There were too many lately.
        """
        if self._is_first:
            self._is_first = False
            return
        now = self._clock()
        while self._restarts and now - self._restarts[0] > RESTART_WINDOW_S:
            self._restarts.popleft()
        if len(self._restarts) >= MAX_RESTARTS:
            raise RestartBudgetError(home)
        self._restarts.append(now)
