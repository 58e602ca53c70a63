"""The AdminService: convert, call, convert."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

import grpc
from google.protobuf import duration_pb2

from sidecar.api.v1 import admin_service_pb2 as pb
from sidecar.api.v1 import admin_service_pb2_grpc
from sidecar.domain.llm import LlmStatus
from sidecar.errors import InvalidInputError
from sidecar.ports import MemoryStore
from sidecar.rpc.convert import timestamp
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.embed_memories import EmbedMemories
from sidecar.use_cases.judge_queue import JudgeQueueReport
from sidecar.use_cases.report_status import ReportStatus, Status
from sidecar.use_cases.semantic_index import SemanticState

DEFAULT_WAIT_S: Final = 30.0
LONGEST_WAIT_S: Final = 600.0
_POLL_S: Final = 0.05

_SEMANTIC_STATES: Final = {
    SemanticState.LOADING: pb.PART_STATE_LOADING,
    SemanticState.READY: pb.PART_STATE_READY,
    SemanticState.OFF: pb.PART_STATE_OFF,
}
_CHILD_STATES: Final = {
    "running": pb.PART_STATE_READY,
    "starting": pb.PART_STATE_LOADING,
    "off": pb.PART_STATE_OFF,
    "failed": pb.PART_STATE_DEGRADED,
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process this is."""

    version: str
    protocol: int
    instance_id: str
    pid: int
    data_folder: str


class DashboardLink(Protocol):
    """A way into the dashboard."""

    @property
    def url(self) -> str:
        """Works once."""
        ...

    @property
    def expires_at(self) -> datetime:
        """Until when, UTC."""
        ...

    @property
    def idle_stop(self) -> timedelta:
        """After so long without use the dashboard stops."""
        ...


class AdminServicer(admin_service_pb2_grpc.AdminServiceServicer):
    """Serves status and shutdown."""

    def __init__(
        self,
        *,
        identity: Identity,
        status: ReportStatus,
        store: MemoryStore,
        request_stop: Callable[[], None],
        embedding: EmbedMemories,
        open_dashboard: Callable[[], Awaitable[DashboardLink]],
    ) -> None:
        self._identity = identity
        self._status = status
        self._store = store
        self._request_stop = request_stop
        self._embedding = embedding
        self._open_dashboard = open_dashboard

    async def GetStatus(
        self, request: pb.GetStatusRequest, context: grpc.aio.ServicerContext[pb.GetStatusRequest, pb.GetStatusResponse]
    ) -> pb.GetStatusResponse:
        """Tells how the sidecar is."""
        return _status_response(self._identity, await self._status.run(current_owner()))

    async def Shutdown(
        self, request: pb.ShutdownRequest, context: grpc.aio.ServicerContext[pb.ShutdownRequest, pb.ShutdownResponse]
    ) -> pb.ShutdownResponse:
        """Finishes what was accepted and stops."""
        if request.instance_id and request.instance_id != self._identity.instance_id:
            raise InvalidInputError("instance_id", request.instance_id, f"{self._identity.instance_id}, or none")
        self._request_stop()
        return pb.ShutdownResponse()

    async def WaitForIndex(
        self,
        request: pb.WaitForIndexRequest,
        context: grpc.aio.ServicerContext[pb.WaitForIndexRequest, pb.WaitForIndexResponse],
    ) -> pb.WaitForIndexResponse:
        """Waits until everything stored so far can be found by meaning."""
        timeout_s = request.timeout.ToTimedelta().total_seconds() if request.HasField("timeout") else DEFAULT_WAIT_S
        if not 0 <= timeout_s <= LONGEST_WAIT_S:
            raise InvalidInputError("timeout", f"{timeout_s:g} s", f"0 to {LONGEST_WAIT_S:g} s")
        deadline = time.monotonic() + timeout_s
        while True:
            is_done = await self._embedding.all_indexed()
            if is_done or self._embedding.is_off or time.monotonic() >= deadline:
                jobs = await self._store.job_counts()
                return pb.WaitForIndexResponse(done=is_done, pending=jobs.pending, parked=jobs.parked)
            await asyncio.sleep(_POLL_S)

    async def RetryParked(
        self,
        request: pb.RetryParkedRequest,
        context: grpc.aio.ServicerContext[pb.RetryParkedRequest, pb.RetryParkedResponse],
    ) -> pb.RetryParkedResponse:
        """Tries again to embed what was given up."""
        return pb.RetryParkedResponse(retried=await self._embedding.retry_parked())

    async def OpenDashboard(
        self,
        request: pb.OpenDashboardRequest,
        context: grpc.aio.ServicerContext[pb.OpenDashboardRequest, pb.OpenDashboardResponse],
    ) -> pb.OpenDashboardResponse:
        """Opens the dashboard and gives a link to it."""
        link = await self._open_dashboard()
        idle_stop = duration_pb2.Duration()
        idle_stop.FromTimedelta(link.idle_stop)
        return pb.OpenDashboardResponse(url=link.url, expire_time=timestamp(link.expires_at), idle_stop=idle_stop)


def _status_response(identity: Identity, status: Status) -> pb.GetStatusResponse:
    uptime = duration_pb2.Duration()
    uptime.FromTimedelta(status.now - status.started_at)
    return pb.GetStatusResponse(
        state=pb.PART_STATE_DEGRADED if status.problems else pb.PART_STATE_READY,
        problems=status.problems,
        version=identity.version,
        protocol=identity.protocol,
        schema=status.store.schema,
        instance_id=identity.instance_id,
        pid=identity.pid,
        uptime=uptime,
        data_folder=identity.data_folder,
        memory_count=status.memory_count,
        embedder=_embedder_status(status),
        index=pb.IndexStatus(
            state=_SEMANTIC_STATES[status.semantic.state],
            size=status.semantic.index_size,
            origin=status.semantic.index_origin,
            rebuild_reason=status.semantic.rebuild_reason,
        ),
        queue=_queue_status(status),
        watcher=pb.WatcherStatus(
            state=_CHILD_STATES.get(status.watcher.state, pb.PART_STATE_DEGRADED),
            pid=status.watcher.pid,
            restarts=status.watcher.restarts,
            problem=status.watcher.problem,
        ),
        storage=pb.StorageStatus(
            engine=status.store.engine,
            database_bytes=status.store.database_bytes,
            wal_bytes=status.store.wal_bytes,
            free_bytes=status.store.free_bytes,
        ),
        counters=status.counters,
        language_model=language_model_status(status.llm),
        judge=_judge_status(status.judge),
    )


def _embedder_status(status: Status) -> pb.EmbedderStatus:
    semantic = status.semantic
    fingerprint = semantic.fingerprint
    return pb.EmbedderStatus(
        state=_SEMANTIC_STATES[semantic.state],
        model=fingerprint.model if fingerprint else "",
        fingerprint=fingerprint.id if fingerprint else "",
        problem=semantic.problem,
        cache_hits=semantic.cache_hits,
        cache_lookups=semantic.cache_lookups,
    )


def language_model_status(status: LlmStatus) -> pb.LanguageModelStatus:
    """Return whom texts are sent to, and what that costs."""
    message = pb.LanguageModelStatus(
        state=pb.PART_STATE_OFF,
        calls_today=status.spent_today.calls,
        calls_a_day=status.budget.calls_a_day,
        tokens_today=status.spent_today.tokens,
        tokens_a_day=status.budget.tokens_a_day,
        counters=status.counters,
        problem=status.problem,
    )
    if status.endpoint is not None:
        message.state = pb.PART_STATE_DEGRADED if status.problem else pb.PART_STATE_READY
        message.provider = status.endpoint.provider
        message.model = status.endpoint.model
        message.host = status.endpoint.host
        message.local = status.endpoint.is_local
    return message


def _judge_status(judge: JudgeQueueReport) -> pb.JudgeQueueStatus:
    counts = judge.counts
    state = pb.PART_STATE_DEGRADED if judge.status.problem or counts.parked else pb.PART_STATE_READY
    message = pb.JudgeQueueStatus(
        state=state if judge.status.name else pb.PART_STATE_OFF,
        name=judge.status.name,
        waiting=counts.waiting,
        done=counts.done,
        parked=counts.parked,
        problem=judge.status.problem,
        parked_verdicts=[
            pb.ParkedVerdict(
                memory_id=job.key.memory_id,
                client=job.key.client,
                session=job.key.session,
                attempts=job.attempts,
                reason=job.reason,
            )
            for job in judge.parked
        ],
    )
    if counts.oldest_at is not None:
        message.oldest_time.CopyFrom(timestamp(counts.oldest_at))
    return message


def _queue_status(status: Status) -> pb.QueueStatus:
    message = pb.QueueStatus(
        pending=status.jobs.pending,
        parked=status.jobs.parked,
        parked_jobs=[
            pb.ParkedJob(memory_id=job.memory_id, attempts=job.attempts, reason=job.reason) for job in status.parked
        ],
    )
    if status.jobs.oldest_at is not None:
        message.oldest_time.CopyFrom(timestamp(status.jobs.oldest_at))
    return message
