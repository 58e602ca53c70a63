"""Opens the dashboard when somebody asks, and closes it with the sidecar. Its libraries are imported only then."""

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sidecar.errors import ShuttingDownError
from sidecar.ports import Clock

if TYPE_CHECKING:
    from sidecar.web.app import Dashboard
    from sidecar.web.listener import WebListener
    from sidecar.web.services import Services


@dataclass(frozen=True, slots=True)
class DashboardLink:
    """A way in. As good as a password until it is followed."""

    url: str
    expires_at: datetime
    idle_stop: timedelta


class DashboardDoor:
    """Keeps at most one dashboard. Belongs to the event loop."""

    def __init__(
        self,
        services: "Callable[[], Services]",
        *,
        owner: str,
        clock: Clock,
        idle_s: float,
        note_use: Callable[[], None],
    ) -> None:
        """Take what is needed; nothing is imported or bound.

        Args:
            services: Makes what pages may ask.
            owner: Whose memories.
            clock: For when links expire.
            idle_s: It stops once nobody has used it for so long.
            note_use: Called whenever a person uses it.
        """
        self._services = services
        self._owner = owner
        self._clock = clock
        self._idle_s = idle_s
        self._note_use = note_use
        self._open: tuple[Dashboard, WebListener] | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False

    async def link(self) -> DashboardLink:
        """Open the dashboard unless it is open, and return a link to it.

        Raises:
            UnavailableError: No port can be bound, or the sidecar is about to stop.
        """
        async with self._lock:
            if self._is_closed:
                raise ShuttingDownError
            if self._open is not None and not self._open[1].is_running:
                await self._open[1].stop()
                self._open = None
            dashboard, listener = self._open = self._open or await self._opened()
            listener.use()
            url, life_s = dashboard.new_link()
            return DashboardLink(
                url, self._clock.now() + timedelta(seconds=life_s), idle_stop=timedelta(seconds=self._idle_s)
            )

    async def close(self) -> None:
        """Close it for good."""
        async with self._lock:
            self._is_closed = True
            if self._open is not None:
                await self._open[1].stop()

    async def _opened(self) -> "tuple[Dashboard, WebListener]":
        # A tenth of a second and more, during which calls are answered.
        await asyncio.to_thread(importlib.import_module, "sidecar.web.listener")
        from sidecar.web.app import Dashboard  # noqa: PLC0415
        from sidecar.web.listener import WebListener, free_port  # noqa: PLC0415

        bound = free_port()
        try:
            dashboard = Dashboard(self._services(), owner=self._owner, port=bound.getsockname()[1])
            listener = WebListener(dashboard, bound, idle_s=self._idle_s, note_use=self._note_use)
            await listener.start()
        except BaseException:
            bound.close()
            raise
        return dashboard, listener
