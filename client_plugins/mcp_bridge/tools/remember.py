"""The tool `remember`: stores a memory, with links to those it replaces or rests on."""

import uuid
from typing import TYPE_CHECKING, Annotated, Any, Final

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.tools.strict_tool import StrictModel, strict_tool
from sidecar.domain.memory import MemoryType, Relation

if TYPE_CHECKING:
    from sidecar.api.v1.memory_service_pb2 import RememberResponse

NAME: Final = "remember"

_DESCRIPTION: Final = (
    "Store one thing worth knowing in later sessions: a decision with its reason, a preference of the user, a trap, a "
    "convention, a fact. Self-contained, with the names one would search for. Link it to the memories it replaces "
    "(supersedes) or rests on (derived_from). Secrets are taken out; an exact duplicate is recognised."
)


class MemoryLink(StrictModel):
    """How the new memory relates to one that is there."""

    relation: Annotated[
        Relation, Field(description="supersedes: replaces it; derived_from: was concluded from it; or another.")
    ]
    memory_id: Annotated[str, Field(description="As `recall` gave it.")]


class RememberAnswer(BaseModel):
    """The structured result."""

    memory_id: str
    deduplicated: bool = Field(description="True: it was known, nothing was changed.")
    redacted: list[str] = Field(description="Kinds of secrets taken out.")


class _Remember:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def run(
        self,
        scope: CallScope,
        *,
        content: Annotated[str, Field(description="The memory, 1 byte to 64 KiB.", min_length=1)],
        memory_type: Annotated[
            MemoryType | None, Field(description="What kind of thing it is; default: setting `remember_type`.")
        ] = None,
        links: Annotated[list[MemoryLink], Field(description="To memories that are there already.")] = [],  # noqa: B006 - copied by pydantic
        importance: Annotated[
            float | None, Field(ge=0, le=1, description="How much it matters; default: setting `remember_importance`.")
        ] = None,
        namespace: Annotated[
            str, Field(description="Default: this project. `global` for what holds everywhere; `project:<name>`.")
        ] = "",
        metadata: Annotated[dict[str, Any], Field(description="Whatever belongs to it, at most 16 KiB.")] = {},  # noqa: B006 - copied by pydantic
        wait_for_index: Annotated[bool, Field(description="Until it can be found by its meaning.")] = False,
    ) -> RememberAnswer:
        from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

        request = service.RememberRequest(
            content=content,
            memory_type=pb.MemoryType.Value(f"MEMORY_TYPE_{memory_type.name if memory_type else 'UNSPECIFIED'}"),
            namespace=namespace,
            importance=importance,
            links=[
                pb.Link(relation=pb.Relation.Value(f"RELATION_{link.relation.name}"), memory_id=link.memory_id)
                for link in links
            ],
            provenance=pb.PROVENANCE_AGENT,
            wait_for_index=wait_for_index,
            request_key=uuid.uuid4().hex,
            context=self._desk.caller(scope),
        )
        if metadata:
            request.metadata.update(metadata)
        answer = await self._desk.ask(scope, lambda sidecar: sidecar.remember(request))
        return _present(answer)


def _present(answer: "RememberResponse") -> RememberAnswer:
    return RememberAnswer(
        memory_id=answer.memory_id,
        deduplicated=answer.deduplicated,
        redacted=[redaction.rule for redaction in answer.redactions],
    )


def remember_tool(desk: Desk) -> Tool:
    """Return the tool."""
    return strict_tool(
        _Remember(desk).run,
        name=NAME,
        title="Remember something",
        description=_DESCRIPTION,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
