"""Passes the calls of tools to the sidecar: says who calls, waits in a thread, and words failures for the agent."""

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from client_plugins.mcp_bridge.connection import Connection
from sidecar.errors import InternalError, SidecarError

if TYPE_CHECKING:
    from sidecar.api.v1.memory_pb2 import CallContext
    from sidecar.client import Sidecar

log = logging.getLogger(__name__)

CallScope: TypeAlias = Context[Any, Any]
"""What the SDK hands to a tool with each call."""

_Answer = TypeVar("_Answer")
_STARTING: Final = "starting the memory sidecar"


class Desk:
    """What every tool works with."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def caller(self, scope: CallScope) -> "CallContext":
        """Return who calls, from the environment and from what the client told of itself."""
        from client_plugins.mcp_bridge.caller import describe_caller  # noqa: PLC0415 - protobuf is for calls only

        params = scope.session.client_params
        return describe_caller(params.client_info.name if params else "", os.environ)

    async def ask(self, scope: CallScope, make_call: "Callable[[Sidecar], _Answer]") -> _Answer:
        """Return the sidecar's answer.

        Args:
            scope: Of the tool's call.
            make_call: Makes one call that is safe to repeat.

        Raises:
            ToolError: With a text that tells the agent what is wrong and what to do.
        """
        if not self._connection.is_open:
            await scope.report_progress(0, message=_STARTING)
        try:
            return await anyio.to_thread.run_sync(self._connection.call, make_call, abandon_on_cancel=True)
        except InternalError as error:
            log.error("%s", error.message)  # noqa: TRY400 - the sidecar's log has the traceback
            raise ToolError(error.message) from error
        except SidecarError as error:
            raise ToolError(f"{error.message} ({error.reason})") from error
