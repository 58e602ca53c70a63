"""Puts the server together and runs it on the wire."""

import logging
import os
import sys
from importlib.metadata import version
from typing import IO, Any, Final, cast

import anyio
import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server

from client_plugins.kit.parent_watch import end_with_parent
from client_plugins.kit.stdio_wire import Wire
from client_plugins.mcp_bridge.connection import Connection
from client_plugins.mcp_bridge.desk import Desk
from client_plugins.mcp_bridge.instructions import INSTRUCTIONS
from client_plugins.mcp_bridge.lifetime import EndingReader
from client_plugins.mcp_bridge.tools import all_tools, core_tools

SERVER_NAME: Final = "memory"
_DISTRIBUTION: Final = "memory-sidecar"

_LEVEL_VARIABLE: Final = "SIDECAR_LOG_LEVEL"
# The list of tools is normally asked for right after the handshake, and must not wait for gRPC's imports.
_PAUSE_S: Final = 0.3


def serve(wire: Wire, *, is_offering_all: bool) -> None:
    """Serve until the client closes its end, or dies.

    Args:
        is_offering_all: Whether every operation is a tool, rather than those that every agent needs.
    """
    _log_to_stderr()
    end_with_parent()
    anyio.run(_serve, wire, is_offering_all)


async def _serve(wire: Wire, is_offering_all: bool) -> None:  # noqa: FBT001 - anyio passes by position
    connection = Connection()
    greeted = anyio.Event()
    offered = all_tools if is_offering_all else core_tools
    server = MemoryServer(greeted, offered(Desk(connection)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_warm_up, connection, greeted)
        await server.run_on(wire)
        tasks.cancel_scope.cancel()


async def _warm_up(connection: Connection, greeted: anyio.Event) -> None:
    """Start the sidecar once a client has said hello, so that the first recall finds it ready."""
    await greeted.wait()
    await anyio.sleep(_PAUSE_S)
    await anyio.to_thread.run_sync(connection.warm_up, abandon_on_cancel=True)


class MemoryServer(MCPServer[Any]):
    """The MCP server with the memory tools; speaks the handshake protocol and the one of 2026."""

    def __init__(self, greeted: anyio.Event, tools: list[Tool]) -> None:
        super().__init__(
            SERVER_NAME,
            title="Memory",
            version=version(_DISTRIBUTION),
            instructions=INSTRUCTIONS,
            tools=tools,
            subscriptions=False,
            middleware=[self._note_greeting],
            log_level="WARNING",
        )
        self._greeted = greeted

    async def run_on(self, wire: Wire) -> None:
        """Serve one client."""
        lines = os.fdopen(wire.incoming, encoding="utf-8", errors="replace", newline="\n")
        # All that is asked of it is `readline`.
        reader = anyio.wrap_file(cast("IO[str]", EndingReader(lines)))
        writer = anyio.wrap_file(os.fdopen(wire.outgoing, "w", encoding="utf-8", newline="\n"))
        async with stdio_server(reader, writer) as (incoming, outgoing):
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(incoming, outgoing, options)

    async def _note_greeting(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            return await call_next(ctx)
        finally:
            self._greeted.set()


def _log_to_stderr() -> None:
    level = os.environ.get(_LEVEL_VARIABLE, "").upper()
    known = level if level in logging.getLevelNamesMapping() else "WARNING"
    logging.basicConfig(level=known, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
