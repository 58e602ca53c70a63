"""The MaintenanceService: convert, call, convert."""

from collections.abc import AsyncIterator
from typing import Final

import grpc

from sidecar.api.v1 import maintenance_service_pb2 as pb
from sidecar.api.v1 import maintenance_service_pb2_grpc
from sidecar.domain.health_report import HealthReport, Severity
from sidecar.rpc import convert
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.exchange import Export, Import
from sidecar.use_cases.health import AnalyzeHealth, HealthRequest
from sidecar.use_cases.look_after import LookAfter

_SEVERITY_NUMBERS: Final[dict[Severity, pb.Severity.ValueType]] = {
    value: pb.Severity.Value(f"SEVERITY_{value.name}") for value in Severity
}


class MaintenanceServicer(maintenance_service_pb2_grpc.MaintenanceServiceServicer):
    """Serves what looks after the store. Errors travel through the interceptor."""

    def __init__(self, *, health: AnalyzeHealth, export: Export, import_: Import, look_after: LookAfter) -> None:
        self._health = health
        self._export = export
        self._import = import_
        self._look_after = look_after

    async def AnalyzeHealth(
        self,
        request: pb.AnalyzeHealthRequest,
        context: grpc.aio.ServicerContext[pb.AnalyzeHealthRequest, pb.AnalyzeHealthResponse],
    ) -> pb.AnalyzeHealthResponse:
        """Tells which memories need a look."""
        caller = convert.caller(current_owner(), request.context)
        return _health_response(await self._health.run(caller, _health_request(request)))

    async def ExportMemories(
        self,
        request: pb.ExportMemoriesRequest,
        context: grpc.aio.ServicerContext[pb.ExportMemoriesRequest, pb.ExportMemoriesResponse],
    ) -> AsyncIterator[pb.ExportMemoriesResponse]:
        """Streams everything that is stored of the caller."""
        pieces = self._export.run(current_owner(), is_including_forgotten=request.include_forgotten)
        async for piece in pieces:
            yield pb.ExportMemoriesResponse(lines=piece.data, done=piece.done, total=piece.total)

    async def ImportMemories(
        self,
        request_iterator: AsyncIterator[pb.ImportMemoriesRequest],
        context: grpc.aio.ServicerContext[pb.ImportMemoriesRequest, pb.ImportMemoriesResponse],
    ) -> pb.ImportMemoriesResponse:
        """Takes what `ExportMemories` gave."""
        pieces = (request.lines async for request in request_iterator)
        report = await self._import.run(current_owner(), pieces)
        return pb.ImportMemoriesResponse(
            imported=report.imported,
            unchanged=report.unchanged,
            refused=report.refused,
            refused_count=report.refused_count,
        )

    async def BackUp(
        self, request: pb.BackUpRequest, context: grpc.aio.ServicerContext[pb.BackUpRequest, pb.BackUpResponse]
    ) -> pb.BackUpResponse:
        """Writes a checked copy of the database."""
        copy = await self._look_after.back_up(request.path)
        return pb.BackUpResponse(size_bytes=copy.size_bytes, memory_count=copy.memory_count)

    async def CheckIntegrity(
        self,
        request: pb.CheckIntegrityRequest,
        context: grpc.aio.ServicerContext[pb.CheckIntegrityRequest, pb.CheckIntegrityResponse],
    ) -> pb.CheckIntegrityResponse:
        """Checks the database and the index."""
        found = await self._look_after.check()
        return pb.CheckIntegrityResponse(
            faults=found.faults, stored_vectors=found.stored_vectors, indexed_vectors=found.indexed_vectors
        )


def _health_request(request: pb.AnalyzeHealthRequest) -> HealthRequest:
    return HealthRequest(
        namespace=request.namespace,
        has_contradictions=request.include_contradictions if request.HasField("include_contradictions") else True,
        has_low_confidence=request.include_low_confidence if request.HasField("include_low_confidence") else True,
        has_stale=request.include_stale if request.HasField("include_stale") else True,
        stale_days=request.stale_days,
    )


def _health_response(report: HealthReport) -> pb.AnalyzeHealthResponse:
    return pb.AnalyzeHealthResponse(
        findings=[
            pb.HealthFinding(
                kind=finding.kind,
                severity=_SEVERITY_NUMBERS[finding.severity],
                memory_ids=finding.memory_ids,
                recommendation=finding.recommendation,
            )
            for finding in report.findings
        ],
        counts={kind.value: count for kind, count in report.counts.items()},
        analyzed=report.analyzed,
        summary=report.summary,
    )
