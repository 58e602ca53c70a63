"""The tools on files that sessions touched: add_file_activity, list_recent_files."""

from typing import Annotated, Any

from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult
from pydantic import Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.documents import ContractDocument, as_document
from client_plugins.mcp_bridge.tools.hints import ADDS, READS
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool
from sidecar.domain.file_activity import FileAction


class _Activity:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def add(
        self,
        scope: CallScope,
        *,
        path: Annotated[str, Field(min_length=1, max_length=4096)],
        action: FileAction,
        project_root: Annotated[str, Field(description="Paths below it are kept relative.")] = "",
        metadata: dict[str, Any] = {},  # noqa: B006 - copied by pydantic
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import activity_service_pb2 as service  # noqa: PLC0415

        request = service.AddFileActivityRequest(
            path=path,
            action=service.FileAction.Value(f"FILE_ACTION_{action.name}"),
            project_root=project_root,
            context=self._desk.caller(scope),
        )
        if metadata:
            request.metadata.update(metadata)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.add_file_activity(request))))

    async def recent(
        self,
        scope: CallScope,
        *,
        project: Annotated[str, Field(description="Default: this one.")] = "",
        limit: Annotated[int | None, Field(ge=1, le=1000, description="Default: setting `recent_files`.")] = None,
        days: Annotated[int | None, Field(ge=1, le=365, description="Default: setting `recent_days`.")] = None,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import activity_service_pb2 as service  # noqa: PLC0415

        request = service.ListRecentFilesRequest(
            project=project, limit=limit or 0, days=days or 0, context=self._desk.caller(scope)
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.list_recent_files(request))))


def activity_tools(desk: Desk) -> list[Tool]:
    """Return the tools."""
    activity = _Activity(desk)
    return [
        strict_tool(
            activity.add,
            name="add_file_activity",
            title="Note a touched file",
            description="Note that a file was read, written, edited or deleted in this session. Never its content.",
            annotations=ADDS,
        ),
        strict_tool(
            activity.recent,
            name="list_recent_files",
            title="List recent files",
            description="List the files that were touched last in a project: last action, time and count.",
            annotations=READS,
        ),
    ]
