"""Reads and writes LSP's frames on a wire, until the editor closes its end or says `exit`."""

import asyncio
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Final

from pygls.io_ import StdoutWriter, run_async

from client_plugins.kit.stdio_wire import Wire

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_IGNORABLE: Final = b'{"jsonrpc":"2.0","method":"$/tooLarge","params":null}'
_MAX_HEADER_BYTES: Final = 8 * 1024


class FrameReader:
    """Gives pygls lines and bodies. A body that is too large is read and thrown away, so that the next one is found."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        # Of its own: a thread that waits for the editor would keep others waiting for a turn.
        self._thread = ThreadPoolExecutor(1, "editor-reader")

    def readline(self) -> "asyncio.Future[bytes]":
        """Return the next line of a header, empty at the end."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._stream.readline, _MAX_HEADER_BYTES)

    def readexactly(self, n: int) -> "asyncio.Future[bytes]":
        """Return the next body, empty at the end."""
        return asyncio.get_running_loop().run_in_executor(self._thread, self._body, n)

    def _body(self, size: int) -> bytes:
        if size <= MAX_MESSAGE_BYTES:
            return self._stream.read(size)
        log.warning("a message of %d bytes was passed over", size)
        while size > 0:
            read = self._stream.read(min(size, _CHUNK_BYTES))
            if not read:
                return b""
            size -= len(read)
        return _IGNORABLE


async def serve_on(wire: Wire, server: "LanguageServer", *, ended: threading.Event) -> None:
    """Serve one editor.

    Args:
        ended: Set when no further message is to be read.
    """
    server.protocol.set_writer(StdoutWriter(os.fdopen(wire.outgoing, "wb")))
    await run_async(
        stop_event=ended,
        reader=FrameReader(os.fdopen(wire.incoming, "rb")),
        protocol=server.protocol,
        # Of its own frames it logs the text; `report_server_error` says that something was wrong.
        logger=logging.getLogger("pygls.io"),
        error_handler=server.report_server_error,
    )
