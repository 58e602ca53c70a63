"""The MemoryService: convert, call, convert."""

import grpc

from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1 import memory_service_pb2_grpc
from sidecar.rpc import convert, enums
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.browse import Browse
from sidecar.use_cases.forget import Forget
from sidecar.use_cases.offer_context import OfferContext
from sidecar.use_cases.recall import Recall
from sidecar.use_cases.remember import Remember


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Serves memories. Errors travel through the interceptor."""

    def __init__(
        self, *, remember: Remember, recall: Recall, browse: Browse, forget: Forget, contexts: OfferContext
    ) -> None:
        self._contexts = contexts
        self._remember = remember
        self._recall = recall
        self._browse = browse
        self._forget = forget

    async def Remember(
        self,
        request: pb.RememberRequest,
        context: grpc.aio.ServicerContext[pb.RememberRequest, pb.RememberResponse],
    ) -> pb.RememberResponse:
        """Stores a memory."""
        caller = convert.caller(current_owner(), request.context)
        answer = await self._remember.run(caller, convert.remember_query(request))
        return convert.remember_response(answer)

    async def Recall(
        self, request: pb.RecallRequest, context: grpc.aio.ServicerContext[pb.RecallRequest, pb.RecallResponse]
    ) -> pb.RecallResponse:
        """Finds the memories that bear on a query."""
        caller = convert.caller(current_owner(), request.context)
        answer = await self._recall.run(caller, convert.recall_query(request))
        return convert.recall_response(answer, is_explained=request.explain)

    async def GetMemory(
        self,
        request: pb.GetMemoryRequest,
        context: grpc.aio.ServicerContext[pb.GetMemoryRequest, pb.GetMemoryResponse],
    ) -> pb.GetMemoryResponse:
        """Returns one memory."""
        caller = convert.owner_only(current_owner())
        return convert.get_response(await self._browse.get(caller, request.memory_id))

    async def ListMemories(
        self,
        request: pb.ListMemoriesRequest,
        context: grpc.aio.ServicerContext[pb.ListMemoriesRequest, pb.ListMemoriesResponse],
    ) -> pb.ListMemoriesResponse:
        """Lists memories, page by page."""
        page = await self._browse.list_page(
            convert.caller(current_owner(), request.context),
            convert.selection(request.filter),
            limit=request.page_size,
            cursor=request.page_token,
            order_by=enums.order_by(request.order_by),
            is_descending=not request.ascending,
        )
        return pb.ListMemoriesResponse(
            memories=[convert.memory(memory) for memory in page.memories], next_page_token=page.next_cursor
        )

    async def CountMemories(
        self,
        request: pb.CountMemoriesRequest,
        context: grpc.aio.ServicerContext[pb.CountMemoriesRequest, pb.CountMemoriesResponse],
    ) -> pb.CountMemoriesResponse:
        """Counts memories."""
        caller = convert.caller(current_owner(), request.context)
        counts = await self._browse.count(caller, convert.selection(request.filter))
        return pb.CountMemoriesResponse(
            total=counts.total,
            by_namespace=counts.by_namespace,
            by_type=counts.by_type,
            by_state=counts.by_state,
        )

    async def ForgetMemories(
        self,
        request: pb.ForgetMemoriesRequest,
        context: grpc.aio.ServicerContext[pb.ForgetMemoriesRequest, pb.ForgetMemoriesResponse],
    ) -> pb.ForgetMemoriesResponse:
        """Forgets memories, or shows which ones it would forget."""
        query = convert.forget_query(request)
        outcome = await self._forget.run(convert.caller(current_owner(), request.context), query)
        return convert.forget_response(outcome, is_preview=not query.is_confirmed, is_purge=query.is_purge)

    async def RestoreMemory(
        self,
        request: pb.RestoreMemoryRequest,
        context: grpc.aio.ServicerContext[pb.RestoreMemoryRequest, pb.RestoreMemoryResponse],
    ) -> pb.RestoreMemoryResponse:
        """Brings a forgotten memory back."""
        memory = await self._forget.restore(convert.owner_only(current_owner()), request.memory_id)
        return pb.RestoreMemoryResponse(memory=convert.memory(memory))

    async def BuildContext(
        self,
        request: pb.BuildContextRequest,
        context: grpc.aio.ServicerContext[pb.BuildContextRequest, pb.BuildContextResponse],
    ) -> pb.BuildContextResponse:
        """Puts together what an agent should know."""
        caller = convert.caller(current_owner(), request.context)
        briefing = await self._contexts.run(caller, convert.context_query(request))
        return convert.context_response(briefing)

    async def AcknowledgeContext(
        self,
        request: pb.AcknowledgeContextRequest,
        context: grpc.aio.ServicerContext[pb.AcknowledgeContextRequest, pb.AcknowledgeContextResponse],
    ) -> pb.AcknowledgeContextResponse:
        """Counts a context as given."""
        is_counted = await self._contexts.acknowledge(current_owner(), request.recall_id)
        return pb.AcknowledgeContextResponse(counted=is_counted)
