"""The tool `relate`: says how two memories that are there relate."""

from typing import Annotated, Final

from mcp.server.mcpserver.tools import Tool
from pydantic import BaseModel, Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.tools.hints import ADDS_ONCE
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool
from sidecar.domain.memory import Relation

NAME: Final = "relate"

_DESCRIPTION: Final = (
    "Relate two memories that are there already: `supersedes` (the source replaces the target, which is no longer "
    "recalled), `derived_from`, `caused_by`, `contradicts`, `relates_to`. A new memory is linked by `remember` instead."
)


class RelateAnswer(BaseModel):
    """The structured result."""

    edge_id: int
    created: bool = Field(description="False: it was there, and its weight was set.")


class _Relate:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def run(
        self,
        scope: CallScope,
        *,
        source_id: Annotated[str, Field(description="The memory that says something of the other.")],
        target_id: Annotated[str, Field(description="The other.")],
        relation: Annotated[Relation, Field(description="What it says.")],
        weight: Annotated[
            float | None, Field(ge=0, le=1, description="How strong; default: setting `relate_weight`.")
        ] = None,
    ) -> RelateAnswer:
        from sidecar.api.v1 import graph_service_pb2 as service  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415

        request = service.RelateRequest(
            source_id=source_id,
            target_id=target_id,
            relation=pb.Relation.Value(f"RELATION_{relation.name}"),
            weight=weight,
        )
        answer = await self._desk.ask(scope, lambda sidecar: sidecar.relate(request))
        return RelateAnswer(edge_id=answer.edge.id, created=answer.created)


def relate_tool(desk: Desk) -> Tool:
    """Return the tool."""
    return strict_tool(
        _Relate(desk).run, name=NAME, title="Relate memories", description=_DESCRIPTION, annotations=ADDS_ONCE
    )
