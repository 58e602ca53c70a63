"""A gRPC server that collects evidence as the sidecar does, for tests of what sends it. Real transport, no store."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import grpc.aio
import psutil
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.api.v1 import evidence_service_pb2 as pb
from sidecar.api.v1 import evidence_service_pb2_grpc as pb_grpc
from sidecar.client.build import THIS_BUILD
from sidecar.client.endpoint import DataFolder, Endpoint, Holder
from sidecar.client.folder_lock import try_lock
from sidecar.client.handshake import CHALLENGE, prove

_TOKEN = "a-token-of-the-tests"


class CollectedEvidence(pb_grpc.EvidenceServiceServicer):
    """Keeps events by id and cursors by path, as the store would; survives its server."""

    def __init__(self) -> None:
        self.events: dict[str, pb.EvidenceEvent] = {}
        self.cursors: dict[tuple[str, str], pb.TranscriptCursor] = {}
        self.repeated = 0
        self.batches: list[tuple[str, int]] = []
        self.refused_names: set[str] = set()
        self._changed = asyncio.Condition()

    async def StreamEvidence(  # noqa: N802 - the contract's name
        self,
        requests: AsyncIterator[pb.StreamEvidenceRequest],
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> AsyncIterator[pb.StreamEvidenceResponse]:
        """Take batches and acknowledge each."""
        async for request in requests:
            if Path(request.cursor.path).name in self.refused_names:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not this one")
            repeated = len([event for event in request.events if event.event_id in self.events])
            self.events.update((event.event_id, event) for event in request.events)
            self.cursors[request.cursor.client, request.cursor.path] = request.cursor
            self.repeated += repeated
            self.batches.append((request.cursor.path, len(request.events)))
            async with self._changed:
                self._changed.notify_all()
            yield pb.StreamEvidenceResponse(
                batch_id=request.batch_id, new_events=len(request.events) - repeated, repeated_events=repeated
            )

    async def ListCursors(  # noqa: N802 - the contract's name
        self,
        request: pb.ListCursorsRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> pb.ListCursorsResponse:
        """Return the cursors of a client."""
        return pb.ListCursorsResponse(
            cursors=[c for (client, _), c in self.cursors.items() if client == request.client]
        )

    async def ListSessions(  # noqa: N802 - the contract's name
        self,
        request: pb.ListSessionsRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> pb.ListSessionsResponse:
        """Collects nothing of the kind."""
        return pb.ListSessionsResponse()

    async def GetSession(  # noqa: N802 - the contract's name
        self,
        request: pb.GetSessionRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> pb.GetSessionResponse:
        """Collects nothing of the kind."""
        return pb.GetSessionResponse()

    async def RequestReading(  # noqa: N802 - the contract's name
        self,
        request: pb.RequestReadingRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> pb.RequestReadingResponse:
        """Collects nothing of the kind."""
        return pb.RequestReadingResponse()

    async def EndSession(  # noqa: N802 - the contract's name
        self,
        request: pb.EndSessionRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> pb.EndSessionResponse:
        """Collects nothing of the kind."""
        return pb.EndSessionResponse()

    async def WatchReadingRequests(  # type: ignore[override]  # noqa: N802 - the contract's name; gRPC takes either form
        self,
        request: pb.WatchReadingRequestsRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> None:
        """Asks for nothing, for as long as anybody listens."""
        await asyncio.Event().wait()

    async def GetCoverage(  # noqa: N802 - the contract's name
        self,
        request: pb.GetCoverageRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> pb.GetCoverageResponse:
        """Collects nothing of the kind."""
        return pb.GetCoverageResponse()

    def texts(self) -> set[str]:
        """What the agent said in all sessions."""
        return {event.agent_text.text for event in self.events.values() if event.WhichOneof("payload") == "agent_text"}

    async def wait_for_text(self, *texts: str, within_s: float = 30.0) -> None:
        """Return when all of these have been said."""
        async with asyncio.timeout(within_s), self._changed:
            await self._changed.wait_for(lambda: set(texts) <= self.texts())

    async def wait_for_batches(self, count: int, *, within_s: float = 30.0) -> None:
        """Return when there have been so many batches in all."""
        async with asyncio.timeout(within_s), self._changed:
            await self._changed.wait_for(lambda: len(self.batches) >= count)


class _Greeter(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """Answers the handshake."""

    def __init__(self, instance_id: str) -> None:
        self._instance_id = instance_id

    async def Check(  # noqa: N802 - the contract's name
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.aio.ServicerContext,  # type: ignore[type-arg]
    ) -> health_pb2.HealthCheckResponse:
        """Prove that we know the token."""
        challenge = str(dict(context.invocation_metadata() or ()).get(CHALLENGE, ""))
        proof = prove(_TOKEN, challenge, instance_id=self._instance_id, build=THIS_BUILD)
        await context.send_initial_metadata(proof or ())
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


class EvidenceServer:
    """Serves a data folder while it is entered."""

    def __init__(self, home: Path, evidence: CollectedEvidence, *, instance_id: str = "one") -> None:
        self._folder = DataFolder(home)
        self._evidence = evidence
        self._instance_id = instance_id
        self._server = grpc.aio.server()
        self._held = ExitStack()

    async def __aenter__(self) -> "EvidenceServer":
        self._folder.prepare()
        assert self._held.enter_context(try_lock(self._folder.lock_path))
        # A test's folder may be too deep for a socket's path.
        socket = Path(self._held.enter_context(tempfile.TemporaryDirectory())) / "s"
        pb_grpc.add_EvidenceServiceServicer_to_server(self._evidence, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(_Greeter(self._instance_id), self._server)
        self._server.add_insecure_port(f"unix:{socket}")
        await self._server.start()
        socket.chmod(0o600)
        holder = Holder(os.getpid(), psutil.Process().create_time(), self._instance_id)
        holder.write(self._folder)
        Endpoint(holder, f"unix:{socket}", _TOKEN, THIS_BUILD, 8 << 20).write(self._folder)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(0)
        self._held.close()
