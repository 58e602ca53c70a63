"""Serves the figures of `sidecar insights` to Prometheus: HTTP on a loopback port, off unless a setting names one.

One page, read only, nothing but figures. A request that names another host is refused, so that no page in a browser
can read it by giving its own name our address.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from sidecar.domain.metrics_text import CONTENT_TYPE
from sidecar.errors import SidecarError

log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
PATH: Final = "/metrics"
_HOSTS: Final = frozenset({"127.0.0.1", "localhost"})
_MOST_LINES: Final = 100
_PATIENCE_S: Final = 10.0


class MetricsEndpoint:
    """Serves one page. Belongs to the event loop that runs it."""

    def __init__(self, *, port: int, text: Callable[[], Awaitable[str]]) -> None:
        """Take what is needed; `text` makes the page anew for each request."""
        self._port = port
        self._text = text
        self.port = 0
        self.is_listening = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            OSError: If the port is taken.
        """
        server = await asyncio.start_server(self._answer, HOST, self._port)
        self.port = server.sockets[0].getsockname()[1]
        self.is_listening.set()
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(TimeoutError, ConnectionError, ValueError):
            async with asyncio.timeout(_PATIENCE_S):
                status, body = await self._page(reader)
                writer.write(_response(status, body))
                await writer.drain()
        writer.close()

    async def _page(self, reader: asyncio.StreamReader) -> tuple[str, str]:
        request = (await reader.readline()).decode("latin-1").split()
        host = ""
        for _ in range(_MOST_LINES):
            line = (await reader.readline()).decode("latin-1").strip()
            name, _, value = line.partition(":")
            if name.lower() == "host":
                host = value.strip().rpartition(":")[0] or value.strip()
            if not line:
                break
        if len(request) != 3 or request[0] != "GET":
            return "405 Method Not Allowed", "only GET is answered\n"
        if host not in _HOSTS:
            return "403 Forbidden", "only requests for 127.0.0.1 are answered\n"
        if request[1] != PATH:
            return "404 Not Found", f"there is only {PATH}\n"
        try:
            return "200 OK", await self._text()
        except SidecarError as error:
            log.warning("metrics could not be told", extra={"reason": error.reason})
            return "503 Service Unavailable", f"{error.message}\n"


def _response(status: str, body: str) -> bytes:
    content = body.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content
