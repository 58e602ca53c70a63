"""The client for programs without an event loop. Safe to use from several threads."""

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import grpc
from google.protobuf.message import Message

from sidecar.api.v1 import activity_service_pb2 as activity
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import maintenance_service_pb2 as maintenance
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import methods
from sidecar.client.admin_calls import AdminCalls
from sidecar.client.channel import bearer, open_channel
from sidecar.client.endpoint import DataFolder, Endpoint
from sidecar.client.evidence_calls import EvidenceCalls
from sidecar.client.insights_calls import InsightsCalls
from sidecar.client.launch import Launch
from sidecar.client.link import Attempts, Link
from sidecar.client.methods import Method, Request, Response, completed, deadline_of

_STREAM: Final = "StreamEvidence"
_IMPORT: Final = "ImportMemories"


class Sidecar(AdminCalls, EvidenceCalls, InsightsCalls):
    """The sidecar of one data folder.

    Every method takes and returns messages of the contract, raises the errors of `sidecar.errors` that the sidecar
    raised, and takes `deadline_s` in place of its default deadline. A sidecar that was restarted meanwhile is found
    again; calls that did no harm are repeated.
    """

    def __init__(self, link: Link, endpoint: Endpoint) -> None:
        self._link = link
        self._endpoint = endpoint
        self._channel = open_channel(endpoint)
        self._lock = threading.Lock()
        # Calls of other threads may still be under way on these.
        self._former_channels: list[grpc.Channel] = []

    @classmethod
    def connect(
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
        return cls(link, link.find())

    @property
    def endpoint(self) -> Endpoint:
        """Where the sidecar listens at present."""
        return self._endpoint

    def close(self) -> None:
        """Close the connection; the sidecar goes on."""
        with self._lock:
            for channel in (*self._former_channels, self._channel):
                channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def remember(self, request: memory.RememberRequest, *, deadline_s: float | None = None) -> memory.RememberResponse:
        """Store a memory; an empty request key is filled, so that a repeat stores nothing twice."""
        return self._call(methods.REMEMBER, request, deadline_s)

    def recall(self, request: memory.RecallRequest, *, deadline_s: float | None = None) -> memory.RecallResponse:
        """Find memories."""
        return self._call(methods.RECALL, request, deadline_s)

    def get_memory(
        self, request: memory.GetMemoryRequest, *, deadline_s: float | None = None
    ) -> memory.GetMemoryResponse:
        """Return one memory."""
        return self._call(methods.GET_MEMORY, request, deadline_s)

    def list_memories(
        self, request: memory.ListMemoriesRequest, *, deadline_s: float | None = None
    ) -> memory.ListMemoriesResponse:
        """Return a page of memories."""
        return self._call(methods.LIST_MEMORIES, request, deadline_s)

    def count_memories(
        self, request: memory.CountMemoriesRequest, *, deadline_s: float | None = None
    ) -> memory.CountMemoriesResponse:
        """Count memories."""
        return self._call(methods.COUNT_MEMORIES, request, deadline_s)

    def forget_memories(
        self, request: memory.ForgetMemoriesRequest, *, deadline_s: float | None = None
    ) -> memory.ForgetMemoriesResponse:
        """Forget memories; an empty request key is filled."""
        return self._call(methods.FORGET_MEMORIES, request, deadline_s)

    def restore_memory(
        self, request: memory.RestoreMemoryRequest, *, deadline_s: float | None = None
    ) -> memory.RestoreMemoryResponse:
        """Bring a forgotten memory back."""
        return self._call(methods.RESTORE_MEMORY, request, deadline_s)

    def build_context(
        self, request: memory.BuildContextRequest, *, deadline_s: float | None = None
    ) -> memory.BuildContextResponse:
        """Put together what an agent should know."""
        return self._call(methods.BUILD_CONTEXT, request, deadline_s)

    def acknowledge_context(
        self, request: memory.AcknowledgeContextRequest, *, deadline_s: float | None = None
    ) -> memory.AcknowledgeContextResponse:
        """Say that an agent got a context that waits for this."""
        return self._call(methods.ACKNOWLEDGE_CONTEXT, request, deadline_s)

    def relate(self, request: graph.RelateRequest, *, deadline_s: float | None = None) -> graph.RelateResponse:
        """Make a relation, or set the weight of the one that is there."""
        return self._call(methods.RELATE, request, deadline_s)

    def delete_edges(
        self, request: graph.DeleteEdgesRequest, *, deadline_s: float | None = None
    ) -> graph.DeleteEdgesResponse:
        """Delete relations."""
        return self._call(methods.DELETE_EDGES, request, deadline_s)

    def inspect_graph(
        self, request: graph.InspectGraphRequest, *, deadline_s: float | None = None
    ) -> graph.InspectGraphResponse:
        """Show what is related to a memory."""
        return self._call(methods.INSPECT_GRAPH, request, deadline_s)

    def apply_memory(
        self, request: validation.ApplyMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.ApplyMemoryResponse:
        """Note that a memory is being acted upon."""
        return self._call(methods.APPLY_MEMORY, request, deadline_s)

    def record_outcome(
        self, request: validation.RecordOutcomeRequest, *, deadline_s: float | None = None
    ) -> validation.RecordOutcomeResponse:
        """Report how acting upon a memory ended."""
        return self._call(methods.RECORD_OUTCOME, request, deadline_s)

    def validate_memory(
        self, request: validation.ValidateMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.ValidateMemoryResponse:
        """Say outright whether a memory holds."""
        return self._call(methods.VALIDATE_MEMORY, request, deadline_s)

    def list_validation_events(
        self, request: validation.ListValidationEventsRequest, *, deadline_s: float | None = None
    ) -> validation.ListValidationEventsResponse:
        """List what was reported about a memory."""
        return self._call(methods.LIST_VALIDATION_EVENTS, request, deadline_s)

    def challenge_memory(
        self, request: validation.ChallengeMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.ChallengeMemoryResponse:
        """Say that a memory misleads."""
        return self._call(methods.CHALLENGE_MEMORY, request, deadline_s)

    def list_disputes(
        self, request: validation.ListDisputesRequest, *, deadline_s: float | None = None
    ) -> validation.ListDisputesResponse:
        """List disputes."""
        return self._call(methods.LIST_DISPUTES, request, deadline_s)

    def resolve_dispute(
        self, request: validation.ResolveDisputeRequest, *, deadline_s: float | None = None
    ) -> validation.ResolveDisputeResponse:
        """End a dispute."""
        return self._call(methods.RESOLVE_DISPUTE, request, deadline_s)

    def promote_memory(
        self, request: validation.PromoteMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.PromoteMemoryResponse:
        """Mark a memory as a standing rule."""
        return self._call(methods.PROMOTE_MEMORY, request, deadline_s)

    def demote_memory(
        self, request: validation.DemoteMemoryRequest, *, deadline_s: float | None = None
    ) -> validation.DemoteMemoryResponse:
        """Take a promotion back."""
        return self._call(methods.DEMOTE_MEMORY, request, deadline_s)

    def detect_contradictions(
        self, request: validation.DetectContradictionsRequest, *, deadline_s: float | None = None
    ) -> validation.DetectContradictionsResponse:
        """Look for memories that contradict one."""
        return self._call(methods.DETECT_CONTRADICTIONS, request, deadline_s)

    def check_supersedes(
        self, request: validation.CheckSupersedesRequest, *, deadline_s: float | None = None
    ) -> validation.CheckSupersedesResponse:
        """Look for an older memory that one has proved better than."""
        return self._call(methods.CHECK_SUPERSEDES, request, deadline_s)

    def add_file_activity(
        self, request: activity.AddFileActivityRequest, *, deadline_s: float | None = None
    ) -> activity.AddFileActivityResponse:
        """Note that a file was touched."""
        return self._call(methods.ADD_FILE_ACTIVITY, request, deadline_s)

    def list_recent_files(
        self, request: activity.ListRecentFilesRequest, *, deadline_s: float | None = None
    ) -> activity.ListRecentFilesResponse:
        """List the files touched last."""
        return self._call(methods.LIST_RECENT_FILES, request, deadline_s)

    def analyze_health(
        self, request: maintenance.AnalyzeHealthRequest, *, deadline_s: float | None = None
    ) -> maintenance.AnalyzeHealthResponse:
        """Tell which memories need a look."""
        return self._call(methods.ANALYZE_HEALTH, request, deadline_s)

    def back_up(
        self, request: maintenance.BackUpRequest, *, deadline_s: float | None = None
    ) -> maintenance.BackUpResponse:
        """Write a checked copy of the database."""
        return self._call(methods.BACK_UP, request, deadline_s)

    def check_integrity(
        self, request: maintenance.CheckIntegrityRequest, *, deadline_s: float | None = None
    ) -> maintenance.CheckIntegrityResponse:
        """Check the database, and that index and database agree."""
        return self._call(methods.CHECK_INTEGRITY, request, deadline_s)

    def stream_evidence(
        self, requests: Iterable[evidence.StreamEvidenceRequest]
    ) -> Iterator[evidence.StreamEvidenceResponse]:
        """Send batches and yield their acknowledgements as they come; what was not acknowledged must be sent again.

        `requests` is drawn from in another thread, as fast as the sidecar takes them.
        """
        call = self._channel.stream_stream(
            methods.STREAM_EVIDENCE_PATH,
            request_serializer=evidence.StreamEvidenceRequest.SerializeToString,
            response_deserializer=evidence.StreamEvidenceResponse.FromString,
        )(iter(requests), metadata=bearer(self._endpoint.token))
        try:
            yield from call
        except grpc.RpcError as failure:
            raise self._link.explain(failure, operation=_STREAM, deadline_s=0) from failure
        finally:
            call.cancel()

    def watch_reading_requests(
        self, request: evidence.WatchReadingRequestsRequest
    ) -> Iterator[evidence.WatchReadingRequestsResponse]:
        """Yield the requests to read a transcript that are made from now on."""
        response = evidence.WatchReadingRequestsResponse
        return self._stream(methods.WATCH_READING_REQUESTS_PATH, request, response)

    def export_memories(
        self, request: maintenance.ExportMemoriesRequest
    ) -> Iterator[maintenance.ExportMemoriesResponse]:
        """Yield all that is stored as JSON Lines, in pieces; put together they are the file."""
        return self._stream(methods.EXPORT_MEMORIES_PATH, request, maintenance.ExportMemoriesResponse)

    def import_memories(
        self, requests: Iterable[maintenance.ImportMemoriesRequest]
    ) -> maintenance.ImportMemoriesResponse:
        """Take JSON Lines in pieces, cut anywhere; what is there already is left as it is. Has no deadline."""
        call = self._channel.stream_unary(
            methods.IMPORT_MEMORIES_PATH,
            request_serializer=maintenance.ImportMemoriesRequest.SerializeToString,
            response_deserializer=maintenance.ImportMemoriesResponse.FromString,
        )
        try:
            return call(iter(requests), metadata=bearer(self._endpoint.token))
        except grpc.RpcError as failure:
            raise self._link.explain(failure, operation=_IMPORT, deadline_s=0) from failure

    def _stream(self, path: str, request: Message, response: type[Response]) -> Iterator[Response]:
        call = self._channel.unary_stream(
            path, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )(request, metadata=bearer(self._endpoint.token))
        try:
            yield from call
        except grpc.RpcError as failure:
            operation = path.rpartition("/")[2]
            raise self._link.explain(failure, operation=operation, deadline_s=0) from failure
        finally:
            call.cancel()

    def _call(self, method: Method[Request, Response], request: Request, deadline_s: float | None) -> Response:
        complete = completed(request, self._link.context)
        limit_s = deadline_of(method, complete, deadline_s)
        attempts = Attempts(method, deadline_s=limit_s)
        while True:
            with self._lock:
                channel, endpoint = self._channel, self._endpoint
            call = channel.unary_unary(
                method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
            )
            try:
                return call(complete, timeout=attempts.remaining_s, metadata=bearer(endpoint.token))
            except grpc.RpcError as failure:
                pause_s = attempts.pause_s(failure)
                if pause_s is not None:
                    time.sleep(pause_s)
                    continue
                if not attempts.may_repeat(failure):
                    raise self._link.explain(failure, operation=method.name, deadline_s=limit_s) from failure
            self._find_again(endpoint)

    def _find_again(self, failed: Endpoint) -> None:
        """Connect to the sidecar that took the failed one's place, unless another thread has done so."""
        with self._lock:
            if self._endpoint is not failed:
                return
            endpoint = self._link.find()
            channel = open_channel(endpoint)
            self._former_channels.append(self._channel)
            self._channel, self._endpoint = channel, endpoint
