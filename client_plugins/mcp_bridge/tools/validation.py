"""The tools on whether memories hold that agents seldom need: apply, validate, history, and the two comparisons."""

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult
from pydantic import Field

from client_plugins.mcp_bridge.desk import CallScope, Desk
from client_plugins.mcp_bridge.documents import ContractDocument, as_document
from client_plugins.mcp_bridge.tools.hints import ADDS, ADDS_ONCE, READS, TAKES_AWAY
from client_plugins.mcp_bridge.tools.strict_tool import strict_tool
from sidecar.domain.confidence import ValidationKind


class _Validation:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def apply(
        self,
        scope: CallScope,
        *,
        memory_id: str,
        context: str = "",
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.ApplyMemoryRequest(memory_id=memory_id, context=context, caller=self._desk.caller(scope))
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.apply_memory(request))))

    async def validate(
        self,
        scope: CallScope,
        *,
        memory_id: str,
        success: bool,
        adjustment: Annotated[
            float | None, Field(ge=0, le=1, description="Default: setting `validation_adjustment`.")
        ] = None,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.ValidateMemoryRequest(
            memory_id=memory_id, success=success, adjustment=adjustment, caller=self._desk.caller(scope)
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.validate_memory(request))))

    async def history(
        self,
        scope: CallScope,
        *,
        memory_id: str,
        kinds: Annotated[list[ValidationKind], Field(max_length=1, description="At most one; default all.")] = [],  # noqa: B006 - copied by pydantic
        limit: Annotated[int | None, Field(ge=1, le=1000, description="Default: setting `listed_events`.")] = None,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.ListValidationEventsRequest(memory_id=memory_id, limit=limit or 0)
        for kind in kinds:
            request.kind = service.ValidationKind.Value(f"VALIDATION_KIND_{kind.name}")
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.list_validation_events(request))))

    async def detect_contradictions(
        self,
        scope: CallScope,
        *,
        memory_id: str,
        similarity_threshold: Annotated[
            float | None, Field(ge=0, le=1, description="Default: setting `contradiction_threshold`.")
        ] = None,
        create_edges: bool = True,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.DetectContradictionsRequest(
            memory_id=memory_id, similarity_threshold=similarity_threshold, create_edges=create_edges
        )
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.detect_contradictions(request))))

    async def check_supersedes(
        self,
        scope: CallScope,
        *,
        memory_id: str,
        create_edge: bool = True,
        force: Annotated[bool, Field(description="Golden rules, too.")] = False,
    ) -> Annotated[CallToolResult, ContractDocument]:
        from sidecar.api.plain import plain  # noqa: PLC0415 - protobuf is for calls only
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415

        request = service.CheckSupersedesRequest(memory_id=memory_id, create_edge=create_edge, force=force)
        return as_document(plain(await self._desk.ask(scope, lambda sidecar: sidecar.check_supersedes(request))))


def validation_tools(desk: Desk) -> list[Tool]:
    """Return the tools."""
    validation = _Validation(desk)
    return [
        strict_tool(
            validation.apply,
            name="apply",
            title="Apply a memory",
            description="Note that you act upon a memory; `record_outcome` then reports how it went.",
            annotations=ADDS,
        ),
        strict_tool(
            validation.validate,
            name="validate",
            title="Validate a memory",
            description="Say outright whether a memory holds, such as when the user confirms it. Moves its confidence.",
            annotations=ADDS,
        ),
        strict_tool(
            validation.history,
            name="history",
            title="History of a memory",
            description="List what was reported about a memory, newest first, with its success rate over everything.",
            annotations=READS,
        ),
        strict_tool(
            validation.detect_contradictions,
            name="detect_contradictions",
            title="Detect contradictions",
            description="Look for memories that contradict one; `not_checked` says what could not be compared.",
            annotations=ADDS_ONCE,
        ),
        strict_tool(
            validation.check_supersedes,
            name="check_supersedes",
            title="Check what a memory replaces",
            description="Look for an older memory that this one has proved better than, and let it take its place.",
            annotations=TAKES_AWAY,
        ),
    ]
