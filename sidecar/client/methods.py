"""The methods of the contract as a client calls them: deadline, whether a repeat does harm, what is filled in."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

from sidecar.api.v1 import activity_service_pb2 as activity
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import maintenance_service_pb2 as maintenance
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as validation

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

READ_DEADLINE_S: Final = 10.0
# A first recall may wait for the model, and a write for a slow disk.
WORK_DEADLINE_S: Final = 30.0
# Reads or copies all there is; a large store on a slow disk takes minutes.
WHOLE_STORE_DEADLINE_S: Final = 600.0
WAIT_FOR_INDEX_DEADLINE_S: Final = 60.0
# On top of what the request itself asks to wait, so that the sidecar's answer arrives before the deadline does.
_MARGIN_S: Final = 5.0
_DEFAULT_WAIT_S: Final = 30.0

_INSIGHTS: Final = "InsightsService"
_MAINTENANCE: Final = "MaintenanceService"
_VALIDATION: Final = "ValidationService"
_REQUEST_KEY: Final = "request_key"
# Where a request has room for its caller: `context`, but where that says something else, `caller`.
_CALLER_FIELDS: Final = ("context", "caller")


@dataclass(frozen=True)
class Method(Generic[Request, Response]):
    """One unary method.

    Attributes:
        service: Its service, without the package.
        request: Class of what is sent; the method is named after it.
        response: Class of its answer.
        deadline_s: How long it may take unless the caller says otherwise, seconds.
        is_repeatable: Whether a second call does no harm: it reads, or carries a request key.
    """

    service: str
    request: type[Request]
    response: type[Response]
    deadline_s: float = READ_DEADLINE_S
    is_repeatable: bool = True

    @property
    def name(self) -> str:
        """As in the contract."""
        return self.request.DESCRIPTOR.name.removesuffix("Request")

    @property
    def path(self) -> str:
        """The path that gRPC calls."""
        return f"/sidecar.api.v1.{self.service}/{self.name}"

    @property
    def serialize(self) -> Callable[[Request], bytes]:
        """What makes bytes of a request."""
        return self.request.SerializeToString

    @property
    def deserialize(self) -> Callable[[bytes], Response]:
        """What makes an answer of bytes."""
        return self.response.FromString


REMEMBER: Final = Method("MemoryService", memory.RememberRequest, memory.RememberResponse, WORK_DEADLINE_S)
RECALL: Final = Method("MemoryService", memory.RecallRequest, memory.RecallResponse, WORK_DEADLINE_S)
GET_MEMORY: Final = Method("MemoryService", memory.GetMemoryRequest, memory.GetMemoryResponse)
LIST_MEMORIES: Final = Method("MemoryService", memory.ListMemoriesRequest, memory.ListMemoriesResponse)
COUNT_MEMORIES: Final = Method("MemoryService", memory.CountMemoriesRequest, memory.CountMemoriesResponse)
FORGET_MEMORIES: Final = Method(
    "MemoryService", memory.ForgetMemoriesRequest, memory.ForgetMemoriesResponse, WORK_DEADLINE_S
)
# A repeat of one that went through would be told that there is nothing to restore.
RESTORE_MEMORY: Final = Method(
    "MemoryService", memory.RestoreMemoryRequest, memory.RestoreMemoryResponse, WORK_DEADLINE_S, is_repeatable=False
)
BUILD_CONTEXT: Final = Method("MemoryService", memory.BuildContextRequest, memory.BuildContextResponse, WORK_DEADLINE_S)
ACKNOWLEDGE_CONTEXT: Final = Method(
    "MemoryService", memory.AcknowledgeContextRequest, memory.AcknowledgeContextResponse
)
LIST_CURSORS: Final = Method("EvidenceService", evidence.ListCursorsRequest, evidence.ListCursorsResponse)
LIST_SESSIONS: Final = Method("EvidenceService", evidence.ListSessionsRequest, evidence.ListSessionsResponse)
END_SESSION: Final = Method("EvidenceService", evidence.EndSessionRequest, evidence.EndSessionResponse)
REQUEST_READING: Final = Method("EvidenceService", evidence.RequestReadingRequest, evidence.RequestReadingResponse)
GET_SESSION: Final = Method("EvidenceService", evidence.GetSessionRequest, evidence.GetSessionResponse)
GET_COVERAGE: Final = Method("EvidenceService", evidence.GetCoverageRequest, evidence.GetCoverageResponse)
STREAM_EVIDENCE_PATH: Final = "/sidecar.api.v1.EvidenceService/StreamEvidence"
WATCH_READING_REQUESTS_PATH: Final = "/sidecar.api.v1.EvidenceService/WatchReadingRequests"
GET_STATUS: Final = Method("AdminService", admin.GetStatusRequest, admin.GetStatusResponse)
# A repeat could reach the next sidecar and stop that one too.
SHUTDOWN: Final = Method("AdminService", admin.ShutdownRequest, admin.ShutdownResponse, is_repeatable=False)
WAIT_FOR_INDEX: Final = Method("AdminService", admin.WaitForIndexRequest, admin.WaitForIndexResponse)
RELATE: Final = Method("GraphService", graph.RelateRequest, graph.RelateResponse, WORK_DEADLINE_S)
# A repeat of one that went through would be told that there is no such relation, or that none was deleted.
DELETE_EDGES: Final = Method(
    "GraphService", graph.DeleteEdgesRequest, graph.DeleteEdgesResponse, WORK_DEADLINE_S, is_repeatable=False
)
INSPECT_GRAPH: Final = Method("GraphService", graph.InspectGraphRequest, graph.InspectGraphResponse)
# Each report counts, so a repeat would count twice.
APPLY_MEMORY: Final = Method(
    _VALIDATION, validation.ApplyMemoryRequest, validation.ApplyMemoryResponse, WORK_DEADLINE_S, is_repeatable=False
)
RECORD_OUTCOME: Final = Method(
    _VALIDATION, validation.RecordOutcomeRequest, validation.RecordOutcomeResponse, WORK_DEADLINE_S, is_repeatable=False
)
VALIDATE_MEMORY: Final = Method(
    _VALIDATION,
    validation.ValidateMemoryRequest,
    validation.ValidateMemoryResponse,
    WORK_DEADLINE_S,
    is_repeatable=False,
)
LIST_VALIDATION_EVENTS: Final = Method(
    _VALIDATION, validation.ListValidationEventsRequest, validation.ListValidationEventsResponse
)
CHALLENGE_MEMORY: Final = Method(
    _VALIDATION, validation.ChallengeMemoryRequest, validation.ChallengeMemoryResponse, WORK_DEADLINE_S
)
LIST_DISPUTES: Final = Method(_VALIDATION, validation.ListDisputesRequest, validation.ListDisputesResponse)
RESOLVE_DISPUTE: Final = Method(
    _VALIDATION, validation.ResolveDisputeRequest, validation.ResolveDisputeResponse, WORK_DEADLINE_S
)
PROMOTE_MEMORY: Final = Method(
    _VALIDATION, validation.PromoteMemoryRequest, validation.PromoteMemoryResponse, WORK_DEADLINE_S
)
DEMOTE_MEMORY: Final = Method(
    _VALIDATION, validation.DemoteMemoryRequest, validation.DemoteMemoryResponse, WORK_DEADLINE_S
)
DETECT_CONTRADICTIONS: Final = Method(
    _VALIDATION, validation.DetectContradictionsRequest, validation.DetectContradictionsResponse, WORK_DEADLINE_S
)
# A repeat of one that went through would be told that there is nothing to replace any more.
CHECK_SUPERSEDES: Final = Method(
    _VALIDATION,
    validation.CheckSupersedesRequest,
    validation.CheckSupersedesResponse,
    WORK_DEADLINE_S,
    is_repeatable=False,
)
# Each event counts.
ADD_FILE_ACTIVITY: Final = Method(
    "ActivityService",
    activity.AddFileActivityRequest,
    activity.AddFileActivityResponse,
    WORK_DEADLINE_S,
    is_repeatable=False,
)
LIST_RECENT_FILES: Final = Method("ActivityService", activity.ListRecentFilesRequest, activity.ListRecentFilesResponse)
ANALYZE_HEALTH: Final = Method(
    _MAINTENANCE, maintenance.AnalyzeHealthRequest, maintenance.AnalyzeHealthResponse, WHOLE_STORE_DEADLINE_S
)
EXPORT_MEMORIES_PATH: Final = "/sidecar.api.v1.MaintenanceService/ExportMemories"
IMPORT_MEMORIES_PATH: Final = "/sidecar.api.v1.MaintenanceService/ImportMemories"
# A repeat of one that went through would find the file in its way.
BACK_UP: Final = Method(
    _MAINTENANCE, maintenance.BackUpRequest, maintenance.BackUpResponse, WHOLE_STORE_DEADLINE_S, is_repeatable=False
)
CHECK_INTEGRITY: Final = Method(
    _MAINTENANCE, maintenance.CheckIntegrityRequest, maintenance.CheckIntegrityResponse, WHOLE_STORE_DEADLINE_S
)
EXPORT_METRICS: Final = Method(
    _INSIGHTS, insights.ExportMetricsRequest, insights.ExportMetricsResponse, WORK_DEADLINE_S
)
EXPLAIN_MEMORY: Final = Method(
    _INSIGHTS, insights.ExplainMemoryRequest, insights.ExplainMemoryResponse, WORK_DEADLINE_S
)
LIST_REVIEW_ITEMS: Final = Method(_INSIGHTS, insights.ListReviewItemsRequest, insights.ListReviewItemsResponse)
RUN_HYGIENE: Final = Method(_INSIGHTS, insights.RunHygieneRequest, insights.RunHygieneResponse, WHOLE_STORE_DEADLINE_S)
GET_JUDGE_QUEUE: Final = Method(_INSIGHTS, insights.GetJudgeQueueRequest, insights.GetJudgeQueueResponse)
RETRY_JUDGE_JOBS: Final = Method(
    _INSIGHTS, insights.RetryJudgeJobsRequest, insights.RetryJudgeJobsResponse, WORK_DEADLINE_S
)
REPLAY_RECALLS: Final = Method(
    _INSIGHTS, insights.ReplayRecallsRequest, insights.ReplayRecallsResponse, WHOLE_STORE_DEADLINE_S
)
OPEN_DASHBOARD: Final = Method("AdminService", admin.OpenDashboardRequest, admin.OpenDashboardResponse)
RETRY_PARKED: Final = Method("AdminService", admin.RetryParkedRequest, admin.RetryParkedResponse)


def completed(request: Request, context: memory_pb2.CallContext) -> Request:
    """Return the request with the caller and a new request key where it has fields for them that are empty.

    A request that is complete is returned as it is; none is changed.
    """
    caller_field = _caller_field(request)
    lacks_caller = caller_field is not None and not request.HasField(caller_field) and context.ByteSize() > 0
    lacks_key = _REQUEST_KEY in request.DESCRIPTOR.fields_by_name and not getattr(request, _REQUEST_KEY)
    if not lacks_caller and not lacks_key:
        return request
    complete = type(request)()
    complete.CopyFrom(request)
    if lacks_caller and caller_field is not None:
        getattr(complete, caller_field).CopyFrom(context)
    if lacks_key:
        setattr(complete, _REQUEST_KEY, uuid.uuid4().hex)
    return complete


def deadline_of(method: Method[Request, Response], request: Request, deadline_s: float | None) -> float:
    """Return how long the call may take, seconds: what the caller says, else what the request asks for needs."""
    if deadline_s is not None:
        return deadline_s
    if isinstance(request, admin.WaitForIndexRequest):
        wait_s = request.timeout.ToTimedelta().total_seconds() if request.HasField("timeout") else _DEFAULT_WAIT_S
        return wait_s + _MARGIN_S
    if isinstance(request, memory.RememberRequest) and request.wait_for_index:
        return WAIT_FOR_INDEX_DEADLINE_S
    return method.deadline_s


def _caller_field(request: Message) -> str | None:
    """Return the name of the field that holds a `CallContext`, if the request has one."""
    fields = request.DESCRIPTOR.fields_by_name
    return next(
        (
            name
            for name in _CALLER_FIELDS
            if name in fields and fields[name].message_type is memory_pb2.CallContext.DESCRIPTOR
        ),
        None,
    )
