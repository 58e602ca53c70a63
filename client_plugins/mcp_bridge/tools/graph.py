"""The tools on relations that agents seldom need: inspect_graph, delete_edges."""

from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult
from pydantic import Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.documents import ContractDocument, as_document
from client_plugins.mcp_bridge.tools.hints import READS, TAKES_AWAY
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool
from sidecar.domain.edge_paths import Direction
from sidecar.domain.memory import Relation


class _Graph:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def inspect(
        self,
        scope: CallScope,
        *,
        memory_id: str,
        max_depth: Annotated[int | None, Field(ge=1, le=5, description="Default: setting `graph_depth`.")] = None,
        direction: Direction = Direction.BOTH,
        edge_types: list[Relation] = [],  # noqa: B006 - copied by pydantic
        include_scores: bool = True,
        decay_factor: Annotated[
            float | None, Field(ge=0, le=1, description="Default: setting `relation_decay`.")
        ] = None,
        mermaid: bool = False,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import graph_service_pb2 as service  # noqa: PLC0415
        from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415

        request = service.InspectGraphRequest(
            memory_id=memory_id,
            max_depth=max_depth or 0,
            direction=service.Direction.Value(f"DIRECTION_{direction.name}"),
            relations=[pb.Relation.Value(f"RELATION_{relation.name}") for relation in edge_types],
            include_scores=include_scores,
            decay_factor=decay_factor,
            include_mermaid=mermaid,
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.inspect_graph(request))))

    async def delete(
        self,
        scope: CallScope,
        *,
        edge_id: Annotated[int, Field(ge=0, description="This one; or give a memory, or a pair.")] = 0,
        memory_id: str = "",
        direction: Annotated[Direction, Field(description="For a memory.")] = Direction.BOTH,
        source_id: str = "",
        target_id: str = "",
        relations: Annotated[list[Relation], Field(description="Only these.")] = [],  # noqa: B006 - copied by pydantic
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import graph_service_pb2 as service  # noqa: PLC0415
        from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415

        if [bool(edge_id), bool(memory_id), bool(source_id or target_id)].count(True) != 1 or (
            bool(source_id) != bool(target_id)
        ):
            raise ToolError("give edge_id, or memory_id, or source_id and target_id; nothing was done")
        request = service.DeleteEdgesRequest(
            relations=[pb.Relation.Value(f"RELATION_{relation.name}") for relation in relations]
        )
        if edge_id:
            request.edge_id = edge_id
        elif memory_id:
            request.memory.memory_id = memory_id
            request.memory.direction = service.Direction.Value(f"DIRECTION_{direction.name}")
        else:
            request.pair.source_id, request.pair.target_id = source_id, target_id
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.delete_edges(request))))


def graph_tools(desk: Desk) -> list[Tool]:
    """Return the tools."""
    graph = _Graph(desk)
    return [
        strict_tool(
            graph.inspect,
            name="inspect_graph",
            title="Inspect relations",
            description="Show which memories are related to one, over several steps, with paths and their relevance.",
            annotations=READS,
        ),
        strict_tool(
            graph.delete,
            name="delete_edges",
            title="Delete relations",
            description="Delete one relation, those of a memory, or from one to another. `relate` makes one anew.",
            annotations=TAKES_AWAY,
        ),
    ]
