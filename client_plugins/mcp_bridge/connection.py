"""The bridge's way to the sidecar: found or started at the first need, found again when it was restarted.

Blocks, so it is called in threads. A sidecar that keeps dying is not restarted for ever.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from client_plugins.kit.restart_budget import RestartBudget
from sidecar.errors import SidecarError, SidecarNotRunningError

if TYPE_CHECKING:
    from sidecar.client import Sidecar

log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


class Connection:
    """Connects to the sidecar of SIDECAR_HOME, or of the user's own data folder."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._sidecar: Sidecar | None = None
        self._restarts = RestartBudget(clock)

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
                self._restarts.spend(str(folder.home))
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
