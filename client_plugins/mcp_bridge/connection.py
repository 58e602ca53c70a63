"""The bridge's way to the sidecar: found or started at the first need, found again when it was restarted.

Blocks, so it is called in threads. A sidecar that keeps dying is not restarted for ever.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from sidecar.errors import SidecarError, SidecarNotRunningError, UnavailableError

if TYPE_CHECKING:
    from sidecar.client import Sidecar

log = logging.getLogger(__name__)

MAX_RESTARTS: Final = 5
RESTART_WINDOW_S: Final = 180.0

_Answer = TypeVar("_Answer")


class RestartBudgetError(UnavailableError):
    """The sidecar died too often in a short time to be started once more."""

    reason = "RESTART_BUDGET"

    def __init__(self, home: str) -> None:
        super().__init__(
            f"the memory sidecar for {home} ended {MAX_RESTARTS} times within {RESTART_WINDOW_S / 60:.0f} minutes and "
            "is not started again for now; work on without memory and tell the user to run `sidecar doctor`",
            home=home,
        )


class Connection:
    """Connects to the sidecar of SIDECAR_HOME, or of the user's own data folder."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sidecar: Sidecar | None = None
        self._restarts: deque[float] = deque()
        self._was_connected = False

    @property
    def is_open(self) -> bool:
        """Whether a sidecar was found and has not been missed since."""
        return self._sidecar is not None

    def warm_up(self) -> None:
        """Find or start the sidecar ahead of the first call; a failure is told by that call, so it is only logged."""
        try:
            self._open()
        except SidecarError as error:
            log.warning("sidecar not ready: %s", error.message)

    def call(self, ask: Callable[["Sidecar"], _Answer]) -> _Answer:
        """Return the sidecar's answer, starting it and asking once more if it was gone.

        Args:
            ask: Makes one call; it MUST be safe to repeat, by a request key where it writes.

        Raises:
            SidecarError: What the sidecar raised, or why it cannot be reached.
        """
        sidecar = self._open()
        try:
            return ask(sidecar)
        except SidecarNotRunningError:
            self._drop(sidecar)
            return ask(self._open())

    def _open(self) -> "Sidecar":
        # gRPC takes 0.1 s to import; the client is to have its list of tools before that.
        from sidecar.client import DataFolder, Sidecar, find_or_start  # noqa: PLC0415
        from sidecar.client.readiness import wait_for_model  # noqa: PLC0415

        with self._lock:
            if self._sidecar is None:
                folder = DataFolder.at()
                if self._was_connected:
                    self._count_restart(str(folder.home))
                self._was_connected = True
                find_or_start(folder)
                # It must not start one by itself, or the restarts would not be counted.
                sidecar = Sidecar.connect(folder.home, start=False)
                # A recall in the meantime would be answered by words alone, and an agent asks but once.
                wait_for_model(sidecar)
                self._sidecar = sidecar
            return self._sidecar

    def _drop(self, sidecar: "Sidecar") -> None:
        with self._lock:
            # Another thread may have found the new one already.
            if self._sidecar is sidecar:
                self._sidecar = None

    def _count_restart(self, home: str) -> None:
        now = self._clock()
        while self._restarts and now - self._restarts[0] > RESTART_WINDOW_S:
            self._restarts.popleft()
        if len(self._restarts) >= MAX_RESTARTS:
            raise RestartBudgetError(home)
        self._restarts.append(now)
