"""The tool `record_outcome`: reports how acting upon a memory ended."""

from typing import Annotated, Final

from mcp.server.mcpserver.tools import Tool
from pydantic import BaseModel, Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.tools.hints import ADDS
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool

NAME: Final = "record_outcome"

_DESCRIPTION: Final = (
    "Report how it went when you acted upon a memory: once for each time, when the result is known (tests passed, the "
    "fix held, the command failed). It moves the memory's confidence; what proves itself again and again becomes a "
    "golden rule."
)


class OutcomeAnswer(BaseModel):
    """The structured result."""

    old_confidence: float
    new_confidence: float
    promoted: bool = Field(description="It became a golden rule.")
    demoted: bool = Field(description="It is none any more.")


class _RecordOutcome:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def run(
        self,
        scope: CallScope,
        *,
        memory_id: Annotated[str, Field(description="As `recall` gave it.")],
        success: Annotated[bool, Field(description="Whether it went well.")],
        error: Annotated[str, Field(description="What went wrong.")] = "",
    ) -> OutcomeAnswer:
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415 - protobuf is for calls only

        request = service.RecordOutcomeRequest(
            memory_id=memory_id, success=success, error=error, caller=self._desk.caller(scope)
        )
        answer = await self._desk.ask(scope, lambda sidecar: sidecar.record_outcome(request))
        change = answer.change
        return OutcomeAnswer(
            old_confidence=round(change.old_confidence, 9),
            new_confidence=round(change.new_confidence, 9),
            promoted=change.promoted,
            demoted=change.demoted,
        )


def record_outcome_tool(desk: Desk) -> Tool:
    """Return the tool."""
    return strict_tool(
        _RecordOutcome(desk).run, name=NAME, title="Record an outcome", description=_DESCRIPTION, annotations=ADDS
    )
