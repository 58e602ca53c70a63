"""Starts an MCP server exactly as a client is configured to, and sees whether it offers our tools."""

import asyncio
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TextIO, cast

from client_plugins.kit.client_setup import McpServer

_LOG_CHARACTERS: Final = 2_000
# Without these, an agent has no memory; the others may be switched off.
_NEEDED_TOOLS: Final = frozenset({"recall", "remember"})


@dataclass(frozen=True)
class ProbeResult:
    """What came of starting a server.

    Attributes:
        tools: Names of the tools that it offered.
        problem: Why it does not do; empty if it does.
    """

    tools: tuple[str, ...] = ()
    problem: str = ""


def probe(server: McpServer, *, timeout_s: float = 30.0) -> ProbeResult:
    """Start a server, greet it, ask for its tools, and end it. Passes on only what the strictest client does.

    Args:
        server: As it is configured.
        timeout_s: For all of it.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        log = cast("TextIO", file)
        try:
            tools = asyncio.run(asyncio.wait_for(_list_tools(server, log), timeout_s))
        except TimeoutError:
            return ProbeResult(problem=f"it gave no answer within {timeout_s:g} s{_said(log)}")
        except Exception as error:  # noqa: BLE001 - whatever happens in another's program or the SDK is the finding
            return ProbeResult(problem=f"{_innermost(error)}{_said(log)}")
    missing = sorted(_NEEDED_TOOLS.difference(tools))
    return ProbeResult(tuple(tools), f"it does not offer {' and '.join(missing)}" if missing else "")


async def _list_tools(server: McpServer, log: TextIO) -> Collection[str]:
    # Half a second to import, which only this needs.
    from mcp import ClientSession, StdioServerParameters  # noqa: PLC0415
    from mcp.client.stdio import stdio_client  # noqa: PLC0415

    parameters = StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env))
    async with stdio_client(parameters, errlog=log) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return [tool.name for tool in (await session.list_tools()).tools]


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"there is no program {error.filename}" if error.filename else "its program is not there"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _said(log: TextIO) -> str:
    """Return the last line that the server wrote to stderr, for a message."""
    log.flush()
    log.seek(0)
    lines = [line.strip() for line in log.read()[-_LOG_CHARACTERS:].splitlines() if line.strip()]
    return f"; it said: {lines[-1]}" if lines else ""
