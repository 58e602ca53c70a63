"""The tools that look around in the store: list, get, count; and `restore`, which undoes `forget`."""

from typing import TYPE_CHECKING, Annotated

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult
from pydantic import Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.documents import ContractDocument, as_document
from client_plugins.mcp_bridge.tools.hints import ADDS_ONCE, READS
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool
from sidecar.domain.memory import MemoryState, parse_memory_type
from sidecar.domain.store_values import OrderBy
from sidecar.errors import UnknownMemoryTypeError

if TYPE_CHECKING:
    from sidecar.api.v1.memory_service_pb2 import MemoryFilter

_ORDERS = {
    OrderBy.CREATED_AT: "CREATE_TIME",
    OrderBy.ACCESSED_AT: "ACCESS_TIME",
    OrderBy.IMPORTANCE: "IMPORTANCE",
    OrderBy.CONFIDENCE: "CONFIDENCE",
}


class _Browsing:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def list(
        self,
        scope: CallScope,
        *,
        namespace: Annotated[str, Field(description="As in `recall`.")] = "",
        memory_type: str = "",
        state: MemoryState = MemoryState.ACTIVE,
        limit: Annotated[int | None, Field(ge=1, le=1000, description="Default: setting `page_size`.")] = None,
        cursor: Annotated[str, Field(description="`next_page_token` of the page before.")] = "",
        order_by: OrderBy = OrderBy.CREATED_AT,
        descending: bool = True,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

        request = service.ListMemoriesRequest(
            filter=_filter(namespace, memory_type, state),
            page_size=limit or 0,
            page_token=cursor,
            order_by=service.OrderBy.Value(f"ORDER_BY_{_ORDERS[order_by]}"),
            ascending=not descending,
            context=self._desk.caller(scope),
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.list_memories(request))))

    async def get(self, scope: CallScope, *, memory_id: str) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

        request = service.GetMemoryRequest(memory_id=memory_id)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.get_memory(request))))

    async def count(
        self,
        scope: CallScope,
        *,
        namespace: Annotated[str, Field(description="As in `recall`.")] = "",
        memory_type: str = "",
        state: MemoryState = MemoryState.ACTIVE,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

        request = service.CountMemoriesRequest(
            filter=_filter(namespace, memory_type, state), context=self._desk.caller(scope)
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.count_memories(request))))

    async def restore(self, scope: CallScope, *, memory_id: str) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

        request = service.RestoreMemoryRequest(memory_id=memory_id)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.restore_memory(request))))


def _filter(namespace: str, memory_type: str, state: MemoryState) -> "MemoryFilter":
    from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415 - protobuf is for calls only
    from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

    try:
        types = [parse_memory_type(memory_type)] if memory_type else []
    except UnknownMemoryTypeError as error:
        raise ToolError(f"{error.message} ({error.reason})") from error
    return service.MemoryFilter(
        namespace=namespace,
        memory_types=[pb.MemoryType.Value(f"MEMORY_TYPE_{kind.name}") for kind in types],
        states=[pb.MemoryState.Value(f"MEMORY_STATE_{state.name}")],
    )


def browsing_tools(desk: Desk) -> list[Tool]:
    """Return the tools."""
    browsing = _Browsing(desk)
    return [
        strict_tool(
            browsing.list,
            name="list",
            title="List memories",
            description="List memories page by page, newest first. To find something, use `recall`.",
            annotations=READS,
        ),
        strict_tool(
            browsing.get,
            name="get",
            title="Get a memory",
            description="Show one memory with its relations and what is known of its use.",
            annotations=READS,
        ),
        strict_tool(
            browsing.count,
            name="count",
            title="Count memories",
            description="Count memories by namespace, type and state.",
            annotations=READS,
        ),
        strict_tool(
            browsing.restore,
            name="restore",
            title="Restore a memory",
            description="Bring a forgotten memory back; a purged one is gone.",
            annotations=ADDS_ONCE,
        ),
    ]
