"""The client for programs with an event loop. Belongs to the loop that it was connected in."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import grpc
import grpc.aio
from google.protobuf.message import Message

from sidecar.api.v1 import activity_service_pb2 as activity
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import maintenance_service_pb2 as maintenance
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import methods
from sidecar.client.admin_calls import AsyncAdminCalls
from sidecar.client.channel import bearer, open_async_channel
from sidecar.client.endpoint import DataFolder, Endpoint
from sidecar.client.evidence_calls import AsyncEvidenceCalls
from sidecar.client.insights_calls import AsyncInsightsCalls
from sidecar.client.launch import Launch
from sidecar.client.link import Attempts, Link
from sidecar.client.methods import Method, Request, Response, completed, deadline_of
from sidecar.errors import SidecarError

_STREAM: Final = "StreamEvidence"
_IMPORT: Final = "ImportMemories"


class AsyncSidecar(AsyncAdminCalls, AsyncEvidenceCalls, AsyncInsightsCalls):
    """The sidecar of one data folder, called from an event loop; otherwise as `sidecar.client.Sidecar`.

    Every method takes and returns messages of the contract, raises the errors of `sidecar.errors` that the sidecar
    raised, and takes `deadline_s` in place of its default deadline. A sidecar that was restarted meanwhile is found
    again; calls that did no harm are repeated.
    """

    def __init__(self, link: Link, endpoint: Endpoint) -> None:
        self._link = link
        self._endpoint = endpoint
        self._channel = open_async_channel(endpoint)
        self._lock = asyncio.Lock()
        # Calls of other tasks may still be under way on these.
        self._former_channels: list[grpc.aio.Channel] = []

    @classmethod
    async def connect(
        cls,
        home: Path | None = None,
        *,
        start: bool = True,
        context: CallContext | None = None,
        launch: Launch | None = None,
    ) -> Self:
        """Connect to the sidecar of a data folder.

        Args:
            home: The data folder; without one SIDECAR_HOME, else the user's own.
            start: Whether to start a sidecar if none runs.
            context: Who calls; filled into requests that do not say.
            launch: How to start one, and how long to wait.

        Raises:
            SidecarNotRunningError: None runs and none was to be started.
            SidecarStartError: It was started but ended or stayed silent.
            SidecarHungError: One runs but does not answer.
            ProtocolMismatchError: One runs that speaks another protocol.
            UntrustedPathError: Folder or files are not ours alone.
        """
        link = Link(DataFolder.at(home), start, context or CallContext(), launch or Launch())
        return cls(link, await link.find_in_thread())

    @property
    def endpoint(self) -> Endpoint:
        """Where the sidecar listens at present."""
        return self._endpoint

    async def close(self) -> None:
        """Close the connection; the sidecar goes on."""
        async with self._lock:
            for channel in (*self._former_channels, self._channel):
                await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def remember(
        self, request: memory.RememberRequest, *, deadline_s: float | None = None
    ) -> memory.RememberResponse:
        """Store a memory; an empty request key is filled, so that a repeat stores nothing twice."""
        return await self._call(methods.REMEMBER, request, deadline_s)

    async def recall(self, request: memory.RecallRequest, *, deadline_s: float | None = None) -> memory.RecallResponse:
        """Find memories."""
        return await self._call(methods.RECALL, request, deadline_s)

    async def get_memory(
        self, request: memory.GetMemoryRequest, *, deadline_s: float | None = None
    ) -> memory.GetMemoryResponse:
        """Return one memory."""
        return await self._call(methods.GET_MEMORY, request, deadline_s)

    async def list_memories(
        self, request: memory.ListMemoriesRequest, *, deadline_s: float | None = None
    ) -> memory.ListMemoriesResponse:
        """Return a page of memories."""
        return await self._call(methods.LIST_MEMORIES, request, deadline_s)

    async def count_memories(
        self, request: memory.CountMemoriesRequest, *, deadline_s: float | None = None
    ) -> memory.CountMemoriesResponse:
        """Count memories."""
        return await self._call(methods.COUNT_MEMORIES, request, deadline_s)

    async def forget_memories(
        self, request: memory.ForgetMemoriesRequest, *, deadline_s: float | None = None
    ) -> memory.ForgetMemoriesResponse:
        """Forget memories; an empty request key is filled."""
        return await self._call(methods.FORGET_MEMORIES, request, deadline_s)

    async def restore_memory(
        self, request: memory.RestoreMemoryRequest, *, deadline_s: float | None = None
    ) -> memory.RestoreMemoryResponse:
        """Bring a forgotten memory back."""
        return await self._call(methods.RESTORE_MEMORY, request, deadline_s)

    async def build_context(
        self, request: memory.BuildContextRequest, *, deadline_s: float | None = None
    ) -> memory.BuildContextResponse:
        """Put together what an agent should know."""
        return await self._call(methods.BUILD_CONTEXT, request, deadline_s)

    async def acknowledge_context(
        self, request: memory.AcknowledgeContextRequest, *, deadline_s: float | None = None
    ) -> memory.AcknowledgeContextResponse:
        """Say that an agent got a context that waits for this."""
        return await self._call(methods.ACKNOWLEDGE_CONTEXT, request, deadline_s)

    async def relate(self, request: graph.RelateRequest, *, deadline_s: float | None = None) -> graph.RelateResponse:
        """Make a relation, or set the weight of the one that is there."""
        return await self._call(methods.RELATE, request, deadline_s)

    async def delete_edges(
        self, request: graph.DeleteEdgesRequest, *, deadline_s: float | None = None
    ) -> graph.DeleteEdgesResponse:
        """Delete relations."""
        return await self._call(methods.DELETE_EDGES, request, deadline_s)

    async def inspect_graph(
        self, request: graph.InspectGraphRequest, *, deadline_s: float | None = None
    ) -> graph.InspectGraphResponse:
        """Show what is related to a memory."""
        return await self._call(methods.INSPECT_GRAPH, request, deadline_s)

    async def apply_memory(
        self, request: validation.ApplyMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.ApplyMemoryResponse:
        """Note that a memory is being acted upon."""
        return await self._call(methods.APPLY_MEMORY, request, deadline_s)

    async def record_outcome(
        self, request: validation.RecordOutcomeRequest, *, deadline_s: float | None = None
    ) -> validation.RecordOutcomeResponse:
        """Report how acting upon a memory ended."""
        return await self._call(methods.RECORD_OUTCOME, request, deadline_s)

    async def validate_memory(
        self, request: validation.ValidateMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.ValidateMemoryResponse:
        """Say outright whether a memory holds."""
        return await self._call(methods.VALIDATE_MEMORY, request, deadline_s)

    async def list_validation_events(
        self, request: validation.ListValidationEventsRequest, *, deadline_s: float | None = None
    ) -> validation.ListValidationEventsResponse:
        """List what was reported about a memory."""
        return await self._call(methods.LIST_VALIDATION_EVENTS, request, deadline_s)

    async def challenge_memory(
        self, request: validation.ChallengeMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.ChallengeMemoryResponse:
        """Say that a memory misleads."""
        return await self._call(methods.CHALLENGE_MEMORY, request, deadline_s)

    async def list_disputes(
        self, request: validation.ListDisputesRequest, *, deadline_s: float | None = None
    ) -> validation.ListDisputesResponse:
        """List disputes."""
        return await self._call(methods.LIST_DISPUTES, request, deadline_s)

    async def resolve_dispute(
        self, request: validation.ResolveDisputeRequest, *, deadline_s: float | None = None
    ) -> validation.ResolveDisputeResponse:
        """End a dispute."""
        return await self._call(methods.RESOLVE_DISPUTE, request, deadline_s)

    async def promote_memory(
        self, request: validation.PromoteMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.PromoteMemoryResponse:
        """Mark a memory as a standing rule."""
        return await self._call(methods.PROMOTE_MEMORY, request, deadline_s)

    async def demote_memory(
        self, request: validation.DemoteMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.DemoteMemoryResponse:
        """Take a promotion back."""
        return await self._call(methods.DEMOTE_MEMORY, request, deadline_s)

    async def detect_contradictions(
        self, request: validation.DetectContradictionsRequest, *, deadline_s: float | None = None
    ) -> validation.DetectContradictionsResponse:
        """Look for memories that contradict one."""
        return await self._call(methods.DETECT_CONTRADICTIONS, request, deadline_s)

    async def check_supersedes(
        self, request: validation.CheckSupersedesRequest, *, deadline_s: float | None = None
    ) -> validation.CheckSupersedesResponse:
        """Look for an older memory that one has proved better than."""
        return await self._call(methods.CHECK_SUPERSEDES, request, deadline_s)

    async def add_file_activity(
        self, request: activity.AddFileActivityRequest, *, deadline_s: float | None = None
    ) -> activity.AddFileActivityResponse:
        """Note that a file was touched."""
        return await self._call(methods.ADD_FILE_ACTIVITY, request, deadline_s)

    async def list_recent_files(
        self, request: activity.ListRecentFilesRequest, *, deadline_s: float | None = None
    ) -> activity.ListRecentFilesResponse:
        """List the files touched last."""
        return await self._call(methods.LIST_RECENT_FILES, request, deadline_s)

    async def analyze_health(
        self, request: maintenance.AnalyzeHealthRequest, *, deadline_s: float | None = None
    ) -> maintenance.AnalyzeHealthResponse:
        """Tell which memories need a look."""
        return await self._call(methods.ANALYZE_HEALTH, request, deadline_s)

    async def back_up(
        self, request: maintenance.BackUpRequest, *, deadline_s: float | None = None
    ) -> maintenance.BackUpResponse:
        """Write a checked copy of the database."""
        return await self._call(methods.BACK_UP, request, deadline_s)

    async def check_integrity(
        self, request: maintenance.CheckIntegrityRequest, *, deadline_s: float | None = None
    ) -> maintenance.CheckIntegrityResponse:
        """Check the database, and that index and database agree."""
        return await self._call(methods.CHECK_INTEGRITY, request, deadline_s)

    async def stream_evidence(
        self, requests: AsyncIterable[evidence.StreamEvidenceRequest]
    ) -> AsyncIterator[evidence.StreamEvidenceResponse]:
        """Send batches and yield their acknowledgements as they come; what was not acknowledged must be sent again."""
        call = self._channel.stream_stream(
            methods.STREAM_EVIDENCE_PATH,
            request_serializer=evidence.StreamEvidenceRequest.SerializeToString,
            response_deserializer=evidence.StreamEvidenceResponse.FromString,
        )(aiter(requests), metadata=bearer(self._endpoint.token))
        try:
            async for response in call:
                yield response
        except grpc.RpcError as failure:
            raise await self._explain(failure, operation=_STREAM, deadline_s=0) from failure
        finally:
            call.cancel()

    def watch_reading_requests(
        self, request: evidence.WatchReadingRequestsRequest
    ) -> AsyncIterator[evidence.WatchReadingRequestsResponse]:
        """Yield the requests to read a transcript that are made from now on."""
        response = evidence.WatchReadingRequestsResponse
        return self._stream(methods.WATCH_READING_REQUESTS_PATH, request, response)

    def export_memories(
        self, request: maintenance.ExportMemoriesRequest
    ) -> AsyncIterator[maintenance.ExportMemoriesResponse]:
        """Yield all that is stored as JSON Lines, in pieces; put together they are the file."""
        return self._stream(methods.EXPORT_MEMORIES_PATH, request, maintenance.ExportMemoriesResponse)

    async def import_memories(
        self, requests: AsyncIterable[maintenance.ImportMemoriesRequest]
    ) -> maintenance.ImportMemoriesResponse:
        """Take JSON Lines in pieces, cut anywhere; what is there already is left as it is. Has no deadline."""
        call = self._channel.stream_unary(
            methods.IMPORT_MEMORIES_PATH,
            request_serializer=maintenance.ImportMemoriesRequest.SerializeToString,
            response_deserializer=maintenance.ImportMemoriesResponse.FromString,
        )
        try:
            return await call(aiter(requests), metadata=bearer(self._endpoint.token))
        except grpc.RpcError as failure:
            raise await self._explain(failure, operation=_IMPORT, deadline_s=0) from failure

    async def _stream(self, path: str, request: Message, response: type[Response]) -> AsyncIterator[Response]:
        call = self._channel.unary_stream(
            path, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )(request, metadata=bearer(self._endpoint.token))
        try:
            async for answer in call:
                yield answer
        except grpc.RpcError as failure:
            operation = path.rpartition("/")[2]
            raise await self._explain(failure, operation=operation, deadline_s=0) from failure
        finally:
            call.cancel()

    async def _call(self, method: Method[Request, Response], request: Request, deadline_s: float | None) -> Response:
        complete = completed(request, self._link.context)
        limit_s = deadline_of(method, complete, deadline_s)
        attempts = Attempts(method, deadline_s=limit_s)
        while True:
            async with self._lock:
                channel, endpoint = self._channel, self._endpoint
            call = channel.unary_unary(
                method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
            )
            try:
                return await call(complete, timeout=attempts.remaining_s, metadata=bearer(endpoint.token))
            except grpc.RpcError as failure:
                pause_s = attempts.pause_s(failure)
                if pause_s is not None:
                    await asyncio.sleep(pause_s)
                    continue
                if not attempts.may_repeat(failure):
                    raise await self._explain(failure, operation=method.name, deadline_s=limit_s) from failure
            await self._find_again(endpoint)

    async def _find_again(self, failed: Endpoint) -> None:
        """Connect to the sidecar that took the failed one's place, unless another task has done so."""
        async with self._lock:
            if self._endpoint is not failed:
                return
            endpoint = await self._link.find_in_thread()
            channel = open_async_channel(endpoint)
            self._former_channels.append(self._channel)
            self._channel, self._endpoint = channel, endpoint

    async def _explain(self, failure: grpc.RpcError, *, operation: str, deadline_s: float) -> SidecarError:
        return await asyncio.to_thread(self._link.explain, failure, operation=operation, deadline_s=deadline_s)
