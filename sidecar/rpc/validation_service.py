"""The ValidationService: convert, call, convert."""

import grpc

from sidecar.api.v1 import validation_service_pb2 as pb
from sidecar.api.v1 import validation_service_pb2_grpc
from sidecar.rpc import convert
from sidecar.rpc import convert_validation as messages
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.challenge import ChallengeMemory
from sidecar.use_cases.contradictions import DetectContradictions
from sidecar.use_cases.supersession import CheckSupersedes
from sidecar.use_cases.validate import Validate


class ValidationServicer(validation_service_pb2_grpc.ValidationServiceServicer):
    """Serves reports, disputes and promotions. Errors travel through the interceptor."""

    def __init__(
        self,
        *,
        validate: Validate,
        challenge: ChallengeMemory,
        contradictions: DetectContradictions,
        supersession: CheckSupersedes,
    ) -> None:
        self._validate = validate
        self._challenge = challenge
        self._contradictions = contradictions
        self._supersession = supersession

    async def ApplyMemory(
        self,
        request: pb.ApplyMemoryRequest,
        context: grpc.aio.ServicerContext[pb.ApplyMemoryRequest, pb.ApplyMemoryResponse],
    ) -> pb.ApplyMemoryResponse:
        """Notes that a memory is being acted upon."""
        caller = convert.caller(current_owner(), request.caller)
        outcome = await self._validate.apply(caller, request.memory_id, context=request.context)
        return pb.ApplyMemoryResponse(event=messages.event_message(outcome.event))

    async def RecordOutcome(
        self,
        request: pb.RecordOutcomeRequest,
        context: grpc.aio.ServicerContext[pb.RecordOutcomeRequest, pb.RecordOutcomeResponse],
    ) -> pb.RecordOutcomeResponse:
        """Reports how acting upon a memory ended."""
        caller = convert.caller(current_owner(), request.caller)
        outcome = await self._validate.record_outcome(
            caller, request.memory_id, is_success=request.success, error=request.error
        )
        return pb.RecordOutcomeResponse(
            event=messages.event_message(outcome.event), change=messages.change_message(outcome.change)
        )

    async def ValidateMemory(
        self,
        request: pb.ValidateMemoryRequest,
        context: grpc.aio.ServicerContext[pb.ValidateMemoryRequest, pb.ValidateMemoryResponse],
    ) -> pb.ValidateMemoryResponse:
        """Says outright whether a memory holds."""
        caller = convert.caller(current_owner(), request.caller)
        outcome = await self._validate.validate(
            caller,
            request.memory_id,
            is_success=request.success,
            adjustment=request.adjustment if request.HasField("adjustment") else None,
        )
        return pb.ValidateMemoryResponse(
            event=messages.event_message(outcome.event), change=messages.change_message(outcome.change)
        )

    async def ListValidationEvents(
        self,
        request: pb.ListValidationEventsRequest,
        context: grpc.aio.ServicerContext[pb.ListValidationEventsRequest, pb.ListValidationEventsResponse],
    ) -> pb.ListValidationEventsResponse:
        """Lists what was reported about a memory."""
        caller = convert.owner_only(current_owner())
        history = await self._validate.history(
            caller, request.memory_id, kind=messages.kind(request.kind), limit=request.limit
        )
        return pb.ListValidationEventsResponse(
            events=[messages.event_message(event) for event in history.events],
            summary=messages.summary_message(history.summary),
        )

    async def ChallengeMemory(
        self,
        request: pb.ChallengeMemoryRequest,
        context: grpc.aio.ServicerContext[pb.ChallengeMemoryRequest, pb.ChallengeMemoryResponse],
    ) -> pb.ChallengeMemoryResponse:
        """Says that a memory misleads."""
        caller = convert.caller(current_owner(), request.caller)
        dispute, is_known = await self._challenge.run(
            caller, request.memory_id, reason=request.reason, evidence=request.evidence
        )
        return pb.ChallengeMemoryResponse(dispute=messages.dispute_message(dispute), already_pending=is_known)

    async def ListDisputes(
        self,
        request: pb.ListDisputesRequest,
        context: grpc.aio.ServicerContext[pb.ListDisputesRequest, pb.ListDisputesResponse],
    ) -> pb.ListDisputesResponse:
        """Lists disputes."""
        caller = convert.owner_only(current_owner())
        disputes = await self._challenge.disputes(
            caller,
            memory_id=request.memory_id,
            is_including_resolved=request.include_resolved,
            limit=request.limit,
        )
        return pb.ListDisputesResponse(disputes=[messages.dispute_message(dispute) for dispute in disputes])

    async def ResolveDispute(
        self,
        request: pb.ResolveDisputeRequest,
        context: grpc.aio.ServicerContext[pb.ResolveDisputeRequest, pb.ResolveDisputeResponse],
    ) -> pb.ResolveDisputeResponse:
        """Ends a dispute."""
        caller = convert.owner_only(current_owner())
        dispute = await self._challenge.resolve(
            caller,
            request.dispute_id,
            resolution=messages.resolution(request.resolution),
            successor_id=request.successor_id,
        )
        return pb.ResolveDisputeResponse(dispute=messages.dispute_message(dispute))

    async def PromoteMemory(
        self,
        request: pb.PromoteMemoryRequest,
        context: grpc.aio.ServicerContext[pb.PromoteMemoryRequest, pb.PromoteMemoryResponse],
    ) -> pb.PromoteMemoryResponse:
        """Marks a memory as a standing rule."""
        caller = convert.owner_only(current_owner())
        was_promoted = await self._challenge.promote(caller, request.memory_id)
        return pb.PromoteMemoryResponse(already_promoted=was_promoted)

    async def DemoteMemory(
        self,
        request: pb.DemoteMemoryRequest,
        context: grpc.aio.ServicerContext[pb.DemoteMemoryRequest, pb.DemoteMemoryResponse],
    ) -> pb.DemoteMemoryResponse:
        """Takes a promotion back."""
        caller = convert.owner_only(current_owner())
        return pb.DemoteMemoryResponse(was_promoted=await self._challenge.demote(caller, request.memory_id))

    async def DetectContradictions(
        self,
        request: pb.DetectContradictionsRequest,
        context: grpc.aio.ServicerContext[pb.DetectContradictionsRequest, pb.DetectContradictionsResponse],
    ) -> pb.DetectContradictionsResponse:
        """Looks for memories that contradict one."""
        answer = await self._contradictions.run(
            convert.owner_only(current_owner()),
            request.memory_id,
            threshold=request.similarity_threshold if request.HasField("similarity_threshold") else None,
            is_relating=request.create_edges if request.HasField("create_edges") else True,
        )
        return messages.contradictions_response(answer)

    async def CheckSupersedes(
        self,
        request: pb.CheckSupersedesRequest,
        context: grpc.aio.ServicerContext[pb.CheckSupersedesRequest, pb.CheckSupersedesResponse],
    ) -> pb.CheckSupersedesResponse:
        """Looks for an older memory that one has proved better than."""
        found = await self._supersession.run(
            convert.owner_only(current_owner()),
            request.memory_id,
            is_relating=request.create_edge if request.HasField("create_edge") else True,
            is_forced=request.force,
        )
        return messages.supersession_response(found)
