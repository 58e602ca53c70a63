"""The operations that plugins and commands ask for by name: parameters in, a call of the sidecar or two, answer out."""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from client_plugins.lsp_bridge import contract
from client_plugins.lsp_bridge.desk import Desk
from client_plugins.lsp_bridge.failures import NotForgottenError
from client_plugins.lsp_bridge.file_mentions import FILES_KEY
from client_plugins.lsp_bridge.places import full_namespace
from client_plugins.lsp_bridge.presenting import figure
from sidecar.api.plain import short_name
from sidecar.domain.ids import MEMORY_PREFIX, is_memory_id
from sidecar.domain.namespace import EVERYTHING

if TYPE_CHECKING:
    from sidecar.api.v1 import memory_pb2 as pb
    from sidecar.api.v1.memory_service_pb2 import DegradedLeg

_WHY_NOT_FORGOTTEN: Final = {
    "golden_rule": "it is a golden rule; `sidecar forget --force` forgets it from a shell",
    "already_forgotten": "it is forgotten already; `sidecar restore` brings it back",
    "not_found": "there is no such memory; `sidecar list` shows what there is",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        parameters: Class of its parameters.
        run: Does it.
        is_change: Whether what is stored is another afterwards.
    """

    parameters: type[contract.Parameters]
    run: Callable[[Any], Awaitable[Any]]
    is_change: bool = False


OPERATION_NAMES: Final = (
    *("recall", "list", "memoriesForFile", "get", "remember", "forget", "restore", "challenge", "validate", "context"),
    *("insights", "status"),
)


class Operations:
    """Every operation by name, without the prefix `sidecar/` or `sidecar.`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.by_name: Mapping[str, Operation] = {
            "recall": Operation(contract.RecallParameters, self._recall),
            "list": Operation(contract.ListParameters, self._list),
            "memoriesForFile": Operation(contract.FileParameters, self._memories_for_file),
            "get": Operation(contract.MemoryParameters, self._get),
            "remember": Operation(contract.RememberParameters, self._remember, is_change=True),
            "forget": Operation(contract.MemoryParameters, self._forget, is_change=True),
            "restore": Operation(contract.MemoryParameters, self._restore, is_change=True),
            "challenge": Operation(contract.ChallengeParameters, self._challenge, is_change=True),
            "validate": Operation(contract.ValidateParameters, self._validate, is_change=True),
            "context": Operation(contract.ContextParameters, self._context),
            "insights": Operation(contract.InsightsParameters, self._insights),
            "status": Operation(contract.Parameters, self._status),
        }

    async def _recall(self, asked: contract.RecallParameters) -> contract.Recalled:
        from sidecar.api.v1.memory_service_pb2 import RecallRequest  # noqa: PLC0415 - protobuf is for calls only

        # Internal: a person looks at it, so that it is no evidence of what an agent was shown.
        request = RecallRequest(
            query=asked.query[: contract.MAX_QUERY_CHARACTERS],
            n_results=asked.limit,
            namespace=_read_namespace(asked.namespace),
            explain=True,
            internal=True,
            context=self._caller(asked.uri),
        )
        answer = await self._desk.connection.call(lambda sidecar: sidecar.recall(request))
        relevance = {found.memory.id: found.score_parts.relevance for found in answer.memories}
        memories = [found.memory for found in answer.memories]
        return contract.Recalled(
            memories=await self._described(memories, relevance),
            degraded="; ".join(map(_leg, answer.degraded)) or None,
        )

    async def _list(self, asked: contract.ListParameters) -> contract.Listed:
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415 - as above

        wanted = service.MemoryFilter(
            namespace=_read_namespace(asked.namespace), memory_types=[_type(asked.type)] if asked.type else []
        )
        caller = self._caller(asked.uri)
        listing = service.ListMemoriesRequest(filter=wanted, page_size=asked.limit, context=caller)
        counting = service.CountMemoriesRequest(filter=wanted, context=caller)
        connection = self._desk.connection
        answer = await connection.call(lambda sidecar: sidecar.list_memories(listing))
        count = await connection.call(lambda sidecar: sidecar.count_memories(counting))
        return contract.Listed(memories=await self._described(list(answer.memories), {}), total=count.total)

    async def _memories_for_file(self, asked: contract.FileParameters) -> contract.Memories:
        place, about = self._desk.places.place(asked.uri), self._desk.about
        if place is None:
            return contract.Memories(memories=[])
        call = self._desk.connection.call
        aspect = await call(lambda sidecar: about.file(sidecar, place, with_related=True))
        ids = [*aspect.named, *aspect.related][: asked.limit]
        return contract.Memories(
            memories=await call(lambda sidecar: about.describe(sidecar, ids, relevance=aspect.related))
        )

    async def _get(self, asked: contract.MemoryParameters) -> contract.Got:
        from sidecar.api.v1.memory_service_pb2 import GetMemoryRequest  # noqa: PLC0415 - as above

        request = GetMemoryRequest(memory_id=_id(asked.id))
        answer = await self._desk.connection.call(lambda sidecar: sidecar.get_memory(request))
        return contract.Got(memory=(await self._described([answer.memory], {}))[0])

    async def _remember(self, asked: contract.RememberParameters) -> contract.Remembered:
        from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415 - as above
        from sidecar.api.v1.memory_service_pb2 import RememberRequest  # noqa: PLC0415

        namespace = self._desk.places.namespace(asked.namespace, asked.uri)
        request = RememberRequest(
            content=asked.content,
            memory_type=_type(asked.type) if asked.type else pb.MEMORY_TYPE_UNSPECIFIED,
            namespace=namespace,
            importance=asked.importance,
            links=[pb.Link(relation=pb.RELATION_RELATES_TO, memory_id=_id(each)) for each in asked.related_to],
            provenance=pb.PROVENANCE_USER,
            # Drawn here, so that asking another sidecar once more stores nothing twice.
            request_key=uuid.uuid4().hex,
            context=self._caller(asked.uri),
        )
        place = self._desk.places.place(asked.uri) if asked.uri else None
        if place is not None:
            request.metadata.update({FILES_KEY: [place.relative or place.absolute]})
        answer = await self._desk.connection.call(lambda sidecar: sidecar.remember(request))
        return contract.Remembered(
            id=answer.memory_id,
            created=not answer.deduplicated,
            namespace=namespace,
            redacted=[redaction.rule for redaction in answer.redactions] or None,
        )

    async def _forget(self, asked: contract.MemoryParameters) -> contract.Forgotten:
        from sidecar.api.v1.memory_service_pb2 import ForgetMemoriesRequest  # noqa: PLC0415 - as above

        request = ForgetMemoriesRequest(
            memory_id=_id(asked.id), confirm=True, request_key=uuid.uuid4().hex, context=self._caller(None)
        )
        answer = await self._desk.connection.call(lambda sidecar: sidecar.forget_memories(request))
        if answer.skipped:
            why = _WHY_NOT_FORGOTTEN.get(answer.skipped[0].reason, answer.skipped[0].reason)
            raise NotForgottenError(request.memory_id, why)
        return contract.Forgotten(forgotten=list(answer.deleted_ids))

    async def _restore(self, asked: contract.MemoryParameters) -> contract.Restored:
        from sidecar.api.v1.memory_service_pb2 import RestoreMemoryRequest  # noqa: PLC0415 - as above

        request = RestoreMemoryRequest(memory_id=_id(asked.id))
        answer = await self._desk.connection.call(lambda sidecar: sidecar.restore_memory(request), may_repeat=False)
        return contract.Restored(restored=[answer.memory.id])

    async def _challenge(self, asked: contract.ChallengeParameters) -> contract.Challenged:
        from sidecar.api.v1.validation_service_pb2 import ChallengeMemoryRequest  # noqa: PLC0415 - as above

        request = ChallengeMemoryRequest(memory_id=_id(asked.id), reason=asked.reason, caller=self._caller(None))
        # The same reason again changes nothing.
        await self._desk.connection.call(lambda sidecar: sidecar.challenge_memory(request))
        return contract.Challenged(id=request.memory_id, disputed=True)

    async def _validate(self, asked: contract.ValidateParameters) -> contract.Validated:
        from sidecar.api.v1 import validation_service_pb2 as service  # noqa: PLC0415 - as above

        memory_id, caller, call = _id(asked.id), self._caller(None), self._desk.connection.call
        if asked.note:
            outcome = service.RecordOutcomeRequest(memory_id=memory_id, success=False, error=asked.note, caller=caller)
            change = (await call(lambda sidecar: sidecar.record_outcome(outcome), may_repeat=False)).change
        else:
            said = service.ValidateMemoryRequest(memory_id=memory_id, success=asked.holds, caller=caller)
            change = (await call(lambda sidecar: sidecar.validate_memory(said), may_repeat=False)).change
        return contract.Validated(id=memory_id, confidence=round(change.new_confidence, 4))

    async def _context(self, asked: contract.ContextParameters) -> contract.Context:
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415 - as above

        request = service.BuildContextRequest(
            query=asked.task[: contract.MAX_QUERY_CHARACTERS],
            kind=service.CONTEXT_KIND_TASK,
            token_budget=asked.max_tokens,
            internal=True,
            context=self._caller(asked.uri),
        )
        answer = await self._desk.connection.call(lambda sidecar: sidecar.build_context(request))
        return contract.Context(text=answer.markdown, memory_ids=list(answer.memory_ids))

    async def _insights(self, asked: contract.InsightsParameters) -> contract.Insights:
        from sidecar.api.v1.insights_service_pb2 import ExportMetricsRequest  # noqa: PLC0415 - as above

        request = ExportMetricsRequest(days=asked.days)
        answer = await self._desk.connection.call(lambda sidecar: sidecar.export_metrics(request))
        return contract.Insights(figures=[figure(metric) for metric in answer.metrics])

    async def _status(self, _: contract.Parameters) -> contract.Status:
        # Told at once, whatever the state; asking is what starts the sidecar.
        self._desk.connection.need(at_once=True)
        await self._desk.connection.refresh()
        return self._desk.status()

    async def _described(self, memories: "list[pb.Memory]", relevance: Mapping[str, float]) -> list[contract.Memory]:
        describe = self._desk.about.describe_these
        return await self._desk.connection.call(lambda sidecar: describe(sidecar, memories, relevance=relevance))

    def _caller(self, uri: str | None) -> "pb.CallContext":
        return self._desk.context(self._desk.places.project(uri))


def _read_namespace(asked: str | None) -> str:
    if not asked or asked == EVERYTHING:
        return asked or ""
    return full_namespace(asked)


def _type(name: str) -> "pb.MemoryType.ValueType":
    from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415 - as above

    return pb.MemoryType.Value(f"MEMORY_TYPE_{name.upper()}")


def _id(text: str) -> str:
    """Return an id as it is stored, whatever its case; any other text as it is, for the sidecar to refuse."""
    typed = text.strip()
    canonical = MEMORY_PREFIX + typed[len(MEMORY_PREFIX) :].upper()
    return canonical if typed[: len(MEMORY_PREFIX)].lower() == MEMORY_PREFIX and is_memory_id(canonical) else typed


def _leg(leg: "DegradedLeg") -> str:
    from sidecar.api.v1.memory_service_pb2 import RecallLeg  # noqa: PLC0415 - as above

    return f"recall by {short_name(RecallLeg.DESCRIPTOR, leg.leg)} did not take part: {leg.reason}"
