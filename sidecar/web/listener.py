"""Serves the dashboard from the event loop that is running, until it is stopped or nobody has used it for a while."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable
from typing import Final

import uvicorn
from uvicorn.lifespan.off import LifespanOff
from uvicorn.protocols.http.h11_impl import H11Protocol

from sidecar.errors import UnavailableError
from sidecar.web.app import Dashboard

HOST: Final = "127.0.0.1"
_MAX_CONNECTIONS: Final = 64
_HEAD_WITHIN_S: Final = 10.0
_MAX_HEAD_BYTES: Final = 32 * 1024
_KEEP_ALIVE_S: Final = 15
_STOP_WITHIN_S: Final = 2
_LONGEST_CHECK_S: Final = 30.0

log = logging.getLogger(__name__)
# It tells of each malformed request, and of every start; a stranger could fill the disk.
logging.getLogger("uvicorn").setLevel(logging.ERROR)


def free_port() -> socket.socket:
    """Return a socket that is bound to a free port of this machine alone.

    Raises:
        UnavailableError: There is none.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.bind((HOST, 0))
    except OSError as error:
        bound.close()
        raise UnavailableError(f"no port of {HOST} can be bound for the dashboard: {error.strerror}") from error
    return bound


class WebListener:
    """One dashboard being served. Belongs to the event loop that started it."""

    def __init__(self, dashboard: Dashboard, bound: socket.socket, *, idle_s: float, note_use: Callable[[], None]):
        """Describe it; nothing is served yet.

        Args:
            dashboard: What is served.
            bound: Where.
            idle_s: It stops once nobody has used it for so long.
            note_use: Called whenever a person uses it.
        """
        self._bound = bound
        self._idle_s = idle_s
        self._note_use = note_use
        self._last_use = time.monotonic()
        self._stop = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        dashboard.on_use(self.use)
        config = uvicorn.Config(
            dashboard.app,
            loop="none",
            http=_PatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_STOP_WITHIN_S,
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        )
        self._server = uvicorn.Server(config)

    @property
    def is_running(self) -> bool:
        """Tell whether it serves, and goes on to."""
        return self._task is not None and not self._is_closing

    def use(self) -> None:
        """Note that somebody uses it now."""
        self._last_use = time.monotonic()
        self._note_use()

    async def start(self) -> None:
        """Begin to serve; returns once it does."""
        # Not `serve`, which would take our signals, and wakes ten times a second.
        config = self._server.config
        config.load()
        self._server.lifespan = LifespanOff(config)
        await self._server.startup(sockets=[self._bound])
        self._task = asyncio.create_task(self._serve(), name="dashboard")
        self._task.add_done_callback(_log_failure)

    async def stop(self) -> None:
        """Stop serving; what is being answered may end within two seconds."""
        self._stop.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _serve(self) -> None:
        try:
            while not self._stop.is_set():
                remaining_s = self._last_use + self._idle_s - time.monotonic()
                if remaining_s <= 0:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), min(remaining_s, _LONGEST_CHECK_S))
        finally:
            self._is_closing = True
            await self._server.shutdown(sockets=[self._bound])
            log.info("dashboard closed", extra={"asked": self._stop.is_set()})


class _PatientProtocol(H11Protocol):
    """Closes a connection over which no request has come for a while; the library waits for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        """See `asyncio.Protocol.connection_made`."""
        super().connection_made(transport)
        self.loop.call_later(_HEAD_WITHIN_S, self._give_up)

    def _give_up(self) -> None:
        # The library sets this with the first complete head, whatever its type says.
        cycle: object = self.cycle
        if cycle is None and not self.transport.is_closing():
            self.transport.close()


def _log_failure(task: "asyncio.Task[None]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("the dashboard failed", exc_info=error)
