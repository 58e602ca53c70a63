"""Runs the language server on the wire, and sees to it that it ends with its editor."""

import asyncio
import logging
import os
import sys
from typing import Final

from client_plugins.kit.parent_watch import end_with_parent
from client_plugins.kit.stdio_wire import Wire
from client_plugins.lsp_bridge.server import MemoryServer
from client_plugins.lsp_bridge.transport import serve_on

_LEVEL_VARIABLE: Final = "SIDECAR_LOG_LEVEL"
# What was asked for is still done when the editor is closed at once, such as storing a memory.
_LAST_WORK_S: Final = 1.0


def serve(wire: Wire) -> int:
    """Serve until the editor closes its end, or dies; return the exit code."""
    _log_to_stderr()
    server = MemoryServer()

    def end() -> None:
        server.clear()
        os._exit(0)

    end_with_parent(end)
    asyncio.run(_serve(wire, server))
    return server.exit_code


async def _serve(wire: Wire, server: MemoryServer) -> None:
    try:
        await serve_on(wire, server, ended=server.ended)
        unfinished = server.protocol.unfinished()
        if unfinished:
            await asyncio.wait(unfinished, timeout=_LAST_WORK_S)
    finally:
        server.clear()
        sys.stderr.flush()
        # Closing the loop would wait for threads that look for a sidecar.
        os._exit(server.exit_code)


def _log_to_stderr() -> None:
    level = os.environ.get(_LEVEL_VARIABLE, "").upper()
    known = level if level in logging.getLevelNamesMapping() else "WARNING"
    logging.basicConfig(level=known, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # It logs whole messages, with the text of memories and documents in them.
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
