"""Sees to it that clients find this sidecar as long as it lives: the lock, the socket and the endpoint file stay ours.

Other programs clean up folders, and a restored backup brings old files back. What can be put back is; a sidecar that
cannot be found any more ends in order, so that the next client starts a new one.
"""

import asyncio
import logging
from typing import Final

from sidecar.client.endpoint import DataFolder, Endpoint
from sidecar.errors import StorageError, UntrustedPathError
from sidecar.server.application import Stopper
from sidecar.server.listener import Listener
from sidecar.server.lock import HeldLock

log = logging.getLogger(__name__)

WATCH_PERIOD_S: Final = 1.0


class Presence:
    """What leads clients to this sidecar."""

    def __init__(self, folder: DataFolder, endpoint: Endpoint, *, lock: HeldLock, listener: Listener) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self._lock = lock
        self._listener = listener

    def announce(self) -> None:
        """Write the endpoint file.

        Raises:
            StorageError: The disk refuses.
        """
        self._endpoint.write(self._folder)

    async def watch(self, stopper: Stopper) -> None:
        """Check again and again until cancelled; ask for a stop if clients cannot be led here any more."""
        while not stopper.reason:
            await asyncio.sleep(WATCH_PERIOD_S)
            problem = self.repair()
            if problem:
                log.error("clients cannot reach this sidecar any more", extra={"problem": problem})
                stopper.request(problem)

    def repair(self) -> str:
        """Put back what is missing; return what cannot be put back, or an empty text."""
        if not self._lock.is_ours():
            return "the lock file was removed"
        if not self._listener.is_reachable():
            if not self._listener.restore():
                return "the socket was removed"
            log.warning("the socket was put back")
        try:
            if not self._is_announced():
                self.announce()
                log.warning("the endpoint file was put back")
        except StorageError as error:
            # Clients that are connected are still served, and the disk may recover.
            log.warning("the endpoint file cannot be put back", extra={"problem": error.reason})
        return ""

    def withdraw_endpoint(self) -> None:
        """Remove the endpoint file, if it is ours; who is connected stays so."""
        if self._is_announced():
            self._folder.endpoint_path.unlink(missing_ok=True)

    def withdraw_address(self) -> None:
        """Remove the socket, if it is ours."""
        self._listener.close()

    def _is_announced(self) -> bool:
        try:
            return Endpoint.read(self._folder) == self._endpoint
        except UntrustedPathError:
            # Something foreign lies there; writing ours replaces it without following it.
            return False
