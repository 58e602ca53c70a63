"""The tool `challenge`: says that a memory misleads."""

from typing import Annotated, Final

from mcp.server.mcpserver.tools import Tool
from pydantic import BaseModel, Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.tools.hints import ADDS_ONCE
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool

NAME: Final = "challenge"

_DESCRIPTION: Final = (
    "Say that a memory you were shown is wrong or misled you. It ranks lower at once and shows as disputed until a "
    "person decides. If you know what is right, `remember` that with a `supersedes` link instead."
)


class ChallengeAnswer(BaseModel):
    """The structured result."""

    dispute_id: int
    already_pending: bool = Field(description="True: the same was said before; nothing was changed.")


class _Challenge:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def run(
        self,
        scope: CallScope,
        *,
        memory_id: Annotated[str, Field(description="As `recall` gave it.")],
        reason: Annotated[str, Field(min_length=1, max_length=1000, description="What is wrong with it.")],
        evidence: Annotated[str, Field(description="What shows it.")] = "",
    ) -> ChallengeAnswer:
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415 - protobuf is for calls only

        request = service.ChallengeMemoryRequest(
            memory_id=memory_id, reason=reason, evidence=evidence, caller=self._desk.caller(scope)
        )
        answer = await self._desk.ask(scope, lambda sidecar: sidecar.challenge_memory(request))
        return ChallengeAnswer(dispute_id=answer.dispute.id, already_pending=answer.already_pending)


def challenge_tool(desk: Desk) -> Tool:
    """Return the tool."""
    return strict_tool(
        _Challenge(desk).run, name=NAME, title="Challenge a memory", description=_DESCRIPTION, annotations=ADDS_ONCE
    )
