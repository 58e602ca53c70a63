"""Where evidence goes: a seam, and the sidecar behind it. One batch at a time, each waits to be acknowledged."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from client_plugins.kit.wire import batch_outcome, batch_request, cursor_value
from sidecar.api.v1 import evidence_service_pb2 as pb
from sidecar.domain.evidence import BatchOutcome, EvidenceBatch, TranscriptCursor
from sidecar.domain.reading_request import ReadingRequest
from sidecar.errors import DeadlineError, UnavailableError

ACKNOWLEDGED_WITHIN_S: Final = 30.0


class EvidenceSink(Protocol):
    """Takes evidence and keeps the cursors."""

    async def cursors(self, client: str) -> list[TranscriptCursor]:
        """Return how far each of a client's transcripts has been read."""
        ...

    async def send(self, batch: EvidenceBatch) -> BatchOutcome:
        """Return when the batch, and its cursor with it, is safe.

        Raises:
            SidecarError: If it is not. The same batch may be sent again.
        """
        ...

    def reading_requests(self, clients: Sequence[str]) -> AsyncGenerator[ReadingRequest, None]:
        """Give the requests to read a transcript of these clients now, until the sidecar ends or is lost.

        Raises:
            SidecarError: If it is lost.
        """
        ...


Connect = Callable[[], AbstractAsyncContextManager[EvidenceSink]]
"""Opens a sink for as long as it works."""


class EvidenceCalls(Protocol):
    """The calls of EvidenceService that a sink makes; `sidecar.client` has them."""

    def stream_evidence(
        self, requests: AsyncIterator[pb.StreamEvidenceRequest]
    ) -> AsyncIterator[pb.StreamEvidenceResponse]:
        """Open the stream; the answers come in the order of the requests."""
        ...

    async def list_cursors(self, request: pb.ListCursorsRequest) -> pb.ListCursorsResponse:
        """List how far transcripts have been read."""
        ...

    def watch_reading_requests(
        self, request: pb.WatchReadingRequestsRequest
    ) -> AsyncIterator[pb.WatchReadingRequestsResponse]:
        """Yield requests to read a transcript."""
        ...


class SidecarSink:
    """See `EvidenceSink`. Not for several tasks at once. A stream that broke is opened anew by the next `send`."""

    def __init__(self, calls: EvidenceCalls, *, acknowledged_within_s: float = ACKNOWLEDGED_WITHIN_S) -> None:
        self._calls = calls
        self._acknowledged_within_s = acknowledged_within_s
        self._stream: _Stream | None = None
        self._last_batch_id = 0

    async def cursors(self, client: str) -> list[TranscriptCursor]:
        """See `EvidenceSink.cursors`."""
        response = await self._calls.list_cursors(pb.ListCursorsRequest(client=client))
        return [cursor_value(cursor) for cursor in response.cursors]

    async def send(self, batch: EvidenceBatch) -> BatchOutcome:
        """See `EvidenceSink.send`."""
        self._stream = self._stream or _Stream(self._calls)
        self._last_batch_id += 1
        is_acknowledged = False
        try:
            async with asyncio.timeout(self._acknowledged_within_s):
                response = await self._stream.exchange(batch_request(batch, self._last_batch_id))
            is_acknowledged = response.batch_id == self._last_batch_id
        except TimeoutError as error:
            raise DeadlineError("StreamEvidence", self._acknowledged_within_s) from error
        finally:
            if not is_acknowledged:
                await self.close()
        if not is_acknowledged:
            raise UnavailableError("the sidecar acknowledged another batch than the one sent; send it again")
        return batch_outcome(response)

    async def reading_requests(self, clients: Sequence[str]) -> AsyncGenerator[ReadingRequest, None]:
        """See `EvidenceSink.reading_requests`."""
        async for wanted in self._calls.watch_reading_requests(pb.WatchReadingRequestsRequest(clients=clients)):
            yield ReadingRequest(wanted.client, wanted.transcript_path, wanted.session)

    async def close(self) -> None:
        """End the stream; what was not acknowledged is sent again later."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()


class _Stream:
    """One open stream: a request in, its answer out."""

    def __init__(self, calls: EvidenceCalls) -> None:
        self._requests: asyncio.Queue[pb.StreamEvidenceRequest | None] = asyncio.Queue()
        self._answers = aiter(calls.stream_evidence(self._outgoing()))

    async def exchange(self, request: pb.StreamEvidenceRequest) -> pb.StreamEvidenceResponse:
        await self._requests.put(request)
        try:
            return await anext(self._answers)
        except StopAsyncIteration as end:
            raise UnavailableError("the sidecar ended the stream; what was not acknowledged is sent again") from end

    async def close(self) -> None:
        await self._requests.put(None)
        # Generators have it and plain iterators do not; either way the requests end above.
        close = getattr(self._answers, "aclose", None)
        if close is not None:
            await close()

    async def _outgoing(self) -> AsyncIterator[pb.StreamEvidenceRequest]:
        while (request := await self._requests.get()) is not None:
            yield request
