"""The EvidenceService: convert, call, convert."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import grpc

from sidecar.api.v1 import evidence_service_pb2 as pb
from sidecar.api.v1 import evidence_service_pb2_grpc
from sidecar.domain.reading_request import ReadingRequest
from sidecar.rpc import convert_evidence
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.collect_evidence import CollectEvidence
from sidecar.use_cases.request_reading import RequestReading


class EvidenceServicer(evidence_service_pb2_grpc.EvidenceServiceServicer):
    """Takes evidence. Errors travel through the interceptor, and end the stream."""

    def __init__(self, *, collect: CollectEvidence, reading: RequestReading) -> None:
        self._collect = collect
        self._reading = reading

    async def StreamEvidence(
        self,
        request_iterator: AsyncIterator[pb.StreamEvidenceRequest],
        context: grpc.aio.ServicerContext[pb.StreamEvidenceRequest, pb.StreamEvidenceResponse],
    ) -> AsyncIterator[pb.StreamEvidenceResponse]:
        """Takes batches and acknowledges each when it is safe on disk."""
        owner = current_owner()
        async for request in request_iterator:
            outcome = await self._collect.run(owner, convert_evidence.batch(request))
            yield convert_evidence.batch_response(request.batch_id, outcome)

    async def ListCursors(
        self,
        request: pb.ListCursorsRequest,
        context: grpc.aio.ServicerContext[pb.ListCursorsRequest, pb.ListCursorsResponse],
    ) -> pb.ListCursorsResponse:
        """Lists how far each transcript has been read."""
        cursors = await self._collect.cursors(current_owner(), request.client)
        return pb.ListCursorsResponse(cursors=[convert_evidence.cursor_message(cursor) for cursor in cursors])

    async def ListSessions(
        self,
        request: pb.ListSessionsRequest,
        context: grpc.aio.ServicerContext[pb.ListSessionsRequest, pb.ListSessionsResponse],
    ) -> pb.ListSessionsResponse:
        """Lists sessions with what is known of them."""
        sessions = await self._collect.sessions(current_owner(), request.limit)
        return pb.ListSessionsResponse(sessions=[convert_evidence.coverage(session) for session in sessions])

    async def GetSession(
        self,
        request: pb.GetSessionRequest,
        context: grpc.aio.ServicerContext[pb.GetSessionRequest, pb.GetSessionResponse],
    ) -> pb.GetSessionResponse:
        """Tells what each recall of one session showed."""
        recalls = await self._collect.session_recalls(current_owner(), request.client, request.session)
        return pb.GetSessionResponse(recalls=[convert_evidence.session_recall(recall) for recall in recalls])

    async def RequestReading(
        self,
        request: pb.RequestReadingRequest,
        context: grpc.aio.ServicerContext[pb.RequestReadingRequest, pb.RequestReadingResponse],
    ) -> pb.RequestReadingResponse:
        """Asks for a transcript to be read now."""
        wanted = ReadingRequest(request.client, request.transcript_path, request.session)
        return pb.RequestReadingResponse(readers_told=self._reading.run(current_owner(), wanted))

    async def EndSession(
        self,
        request: pb.EndSessionRequest,
        context: grpc.aio.ServicerContext[pb.EndSessionRequest, pb.EndSessionResponse],
    ) -> pb.EndSessionResponse:
        """Notes that a session ended."""
        is_known = await self._collect.end_session(current_owner(), request.client, request.session)
        return pb.EndSessionResponse(known=is_known)

    # Not a generator: as a watch, it is cut short when the sidecar stops.
    async def WatchReadingRequests(  # type: ignore[override]  # gRPC takes either form
        self,
        request: pb.WatchReadingRequestsRequest,
        context: grpc.aio.ServicerContext[pb.WatchReadingRequestsRequest, pb.WatchReadingRequestsResponse],
    ) -> None:
        """Gives the requests that are made from now on."""
        async with aclosing(self._reading.watch(current_owner(), request.clients)) as wanted:
            async for one in wanted:
                await context.write(
                    pb.WatchReadingRequestsResponse(
                        client=one.client, transcript_path=one.transcript_path, session=one.session
                    )
                )

    async def GetCoverage(
        self,
        request: pb.GetCoverageRequest,
        context: grpc.aio.ServicerContext[pb.GetCoverageRequest, pb.GetCoverageResponse],
    ) -> pb.GetCoverageResponse:
        """Tells how much of each client's sessions could be read."""
        coverage = await self._collect.coverage(current_owner(), request.client)
        return pb.GetCoverageResponse(clients=[convert_evidence.client_coverage(part) for part in coverage])
