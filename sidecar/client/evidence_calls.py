"""The calls of the EvidenceService that are no streams, for both clients."""

from abc import ABC, abstractmethod

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.client import methods
from sidecar.client.methods import Method, Request, Response


class EvidenceCalls(ABC):
    """A part of `Sidecar`."""

    @abstractmethod
    def _call(self, method: Method[Request, Response], request: Request, deadline_s: float | None) -> Response: ...

    def list_cursors(
        self, request: evidence.ListCursorsRequest, *, deadline_s: float | None = None
    ) -> evidence.ListCursorsResponse:
        """List how far transcripts have been read."""
        return self._call(methods.LIST_CURSORS, request, deadline_s)

    def list_sessions(
        self, request: evidence.ListSessionsRequest, *, deadline_s: float | None = None
    ) -> evidence.ListSessionsResponse:
        """List what sessions were shown."""
        return self._call(methods.LIST_SESSIONS, request, deadline_s)

    def get_session(
        self, request: evidence.GetSessionRequest, *, deadline_s: float | None = None
    ) -> evidence.GetSessionResponse:
        """Tell what each recall of a session showed."""
        return self._call(methods.GET_SESSION, request, deadline_s)

    def get_coverage(
        self, request: evidence.GetCoverageRequest, *, deadline_s: float | None = None
    ) -> evidence.GetCoverageResponse:
        """Tell how much of each client's sessions could be read."""
        return self._call(methods.GET_COVERAGE, request, deadline_s)

    def request_reading(
        self, request: evidence.RequestReadingRequest, *, deadline_s: float | None = None
    ) -> evidence.RequestReadingResponse:
        """Ask for a transcript to be read now; returns before it is."""
        return self._call(methods.REQUEST_READING, request, deadline_s)

    def end_session(
        self, request: evidence.EndSessionRequest, *, deadline_s: float | None = None
    ) -> evidence.EndSessionResponse:
        """Say that a session ended."""
        return self._call(methods.END_SESSION, request, deadline_s)


class AsyncEvidenceCalls(ABC):
    """A part of `AsyncSidecar`."""

    @abstractmethod
    async def _call(
        self, method: Method[Request, Response], request: Request, deadline_s: float | None
    ) -> Response: ...

    async def list_cursors(
        self, request: evidence.ListCursorsRequest, *, deadline_s: float | None = None
    ) -> evidence.ListCursorsResponse:
        """List how far transcripts have been read."""
        return await self._call(methods.LIST_CURSORS, request, deadline_s)

    async def list_sessions(
        self, request: evidence.ListSessionsRequest, *, deadline_s: float | None = None
    ) -> evidence.ListSessionsResponse:
        """List what sessions were shown."""
        return await self._call(methods.LIST_SESSIONS, request, deadline_s)

    async def get_session(
        self, request: evidence.GetSessionRequest, *, deadline_s: float | None = None
    ) -> evidence.GetSessionResponse:
        """Tell what each recall of a session showed."""
        return await self._call(methods.GET_SESSION, request, deadline_s)

    async def get_coverage(
        self, request: evidence.GetCoverageRequest, *, deadline_s: float | None = None
    ) -> evidence.GetCoverageResponse:
        """Tell how much of each client's sessions could be read."""
        return await self._call(methods.GET_COVERAGE, request, deadline_s)

    async def request_reading(
        self, request: evidence.RequestReadingRequest, *, deadline_s: float | None = None
    ) -> evidence.RequestReadingResponse:
        """Ask for a transcript to be read now; returns before it is."""
        return await self._call(methods.REQUEST_READING, request, deadline_s)

    async def end_session(
        self, request: evidence.EndSessionRequest, *, deadline_s: float | None = None
    ) -> evidence.EndSessionResponse:
        """Say that a session ended."""
        return await self._call(methods.END_SESSION, request, deadline_s)
