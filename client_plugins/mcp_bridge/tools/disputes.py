"""The tools on disputes and standing rules: list_disputes, resolve_dispute, promote, demote."""

from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult
from pydantic import Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.documents import ContractDocument, as_document
from client_plugins.mcp_bridge.tools.hints import ADDS_ONCE, READS, TAKES_AWAY
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool
from sidecar.domain.disputes import Resolution


class _Disputes:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def list(
        self,
        scope: CallScope,
        *,
        memory_id: Annotated[str, Field(description="Only about this one.")] = "",
        include_resolved: bool = False,
        limit: Annotated[int | None, Field(ge=1, le=1000, description="Default: setting `listed_disputes`.")] = None,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.ListDisputesRequest(memory_id=memory_id, include_resolved=include_resolved, limit=limit or 0)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.list_disputes(request))))

    async def resolve(
        self,
        scope: CallScope,
        *,
        dispute_id: Annotated[int, Field(ge=1)],
        resolution: Resolution,
        successor_id: Annotated[str, Field(description="With `supersede` only.")] = "",
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        if (resolution is Resolution.SUPERSEDE) != bool(successor_id):
            raise ToolError("give successor_id with the resolution supersede, and only then; nothing was done")
        request = service.ResolveDisputeRequest(
            dispute_id=dispute_id,
            resolution=service.Resolution.Value(f"RESOLUTION_{resolution.name}"),
            successor_id=successor_id,
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.resolve_dispute(request))))

    async def promote(self, scope: CallScope, *, memory_id: str) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.PromoteMemoryRequest(memory_id=memory_id)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.promote_memory(request))))

    async def demote(self, scope: CallScope, *, memory_id: str) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.DemoteMemoryRequest(memory_id=memory_id)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.demote_memory(request))))


def dispute_tools(desk: Desk) -> list[Tool]:
    """Return the tools."""
    disputes = _Disputes(desk)
    return [
        strict_tool(
            disputes.list,
            name="list_disputes",
            title="List disputes",
            description="List the memories that somebody says are wrong, and why; newest first.",
            annotations=READS,
        ),
        strict_tool(
            disputes.resolve,
            name="resolve_dispute",
            title="Resolve a dispute",
            description="End a dispute as the user decides: keep the memory, retire it, or have another replace it.",
            annotations=TAKES_AWAY,
        ),
        strict_tool(
            disputes.promote,
            name="promote",
            title="Promote a memory",
            description="Mark a memory as a standing rule that is delivered elsewhere, such as in CLAUDE.md.",
            annotations=ADDS_ONCE,
        ),
        strict_tool(
            disputes.demote,
            name="demote",
            title="Demote a memory",
            description="Take a promotion back.",
            annotations=ADDS_ONCE,
        ),
    ]
