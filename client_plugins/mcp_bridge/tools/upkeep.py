"""The tools on the store as a whole: analyze_health, export_metrics, status."""

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult
from pydantic import Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.documents import ContractDocument, as_document
from client_plugins.mcp_bridge.tools.hints import READS
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool


class _Upkeep:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def analyze_health(
        self,
        scope: CallScope,
        *,
        namespace: Annotated[str, Field(description="As in `recall`.")] = "",
        include_contradictions: bool = True,
        include_low_confidence: bool = True,
        include_stale: bool = True,
        stale_days: Annotated[int | None, Field(ge=1, le=3650, description="Default: setting `stale_days`.")] = None,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import maintenance_service_pb2 as service  # noqa: PLC0415

        request = service.AnalyzeHealthRequest(
            namespace=namespace,
            include_contradictions=include_contradictions,
            include_low_confidence=include_low_confidence,
            include_stale=include_stale,
            stale_days=stale_days or 0,
            context=self._desk.caller(scope),
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.analyze_health(request))))

    async def status(self, scope: CallScope) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only

        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.get_status())))

    async def export_metrics(
        self,
        scope: CallScope,
        *,
        days: Annotated[int | None, Field(ge=1, le=365)] = None,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import insights_service_pb2 as service  # noqa: PLC0415

        request = service.ExportMetricsRequest(days=days or 0)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.export_metrics(request))))


def upkeep_tools(desk: Desk) -> list[Tool]:
    """Return the tools."""
    upkeep = _Upkeep(desk)
    return [
        strict_tool(
            upkeep.analyze_health,
            name="analyze_health",
            title="Analyze health",
            description="Tell which memories need a look, the most urgent first, with what to do about each.",
            annotations=READS,
        ),
        strict_tool(
            upkeep.export_metrics,
            name="export_metrics",
            title="Export metrics",
            description="Tell how useful the memories were: rates, and series by UTC day.",
            annotations=READS,
        ),
        strict_tool(
            upkeep.status,
            name="status",
            title="Status of the sidecar",
            description="Tell how the memory sidecar is: model, index, queue, watcher, storage, and what is wrong.",
            annotations=READS,
        ),
    ]
