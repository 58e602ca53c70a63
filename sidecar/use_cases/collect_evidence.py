"""Takes what transcript readers report: redacts it, and hands it to the ledger with its cursor."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sidecar.domain.coverage import ClientCoverage
from sidecar.domain.evidence import (
    MAX_READER_STATE_BYTES,
    MAX_SLICE_CHARACTERS,
    BatchOutcome,
    EvidenceBatch,
    EvidenceEvent,
    SessionCoverage,
    SessionRecall,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
    TranscriptCursor,
)
from sidecar.domain.text import normalise
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, EvidenceStore, Redactor

MAX_EVENTS: Final = 1000
MAX_SESSIONS: Final = 1000
DEFAULT_SESSIONS: Final = 20


class CollectEvidence:
    """Takes batches of evidence."""

    def __init__(self, *, evidence: EvidenceStore, redactor: Redactor, clock: Clock) -> None:
        self._evidence = evidence
        self._redactor = redactor
        self._clock = clock

    async def run(self, owner: str, batch: EvidenceBatch) -> BatchOutcome:
        """Take a batch; return when it is safe on disk, its cursor with it.

        Raises:
            InvalidInputError: If the batch is too large or its cursor is incomplete; nothing is taken then.
        """
        if len(batch.events) > MAX_EVENTS:
            raise InvalidInputError("events", len(batch.events), f"at most {MAX_EVENTS} a batch")
        if not batch.cursor.client or not batch.cursor.path:
            raise InvalidInputError("cursor", batch.cursor.path, "a client and a path")
        state_bytes = len(batch.cursor.reader_state.encode())
        if state_bytes > MAX_READER_STATE_BYTES:
            raise InvalidInputError("cursor.reader_state", state_bytes, f"at most {MAX_READER_STATE_BYTES} bytes")
        # A batch may hold megabytes, and cleaning them takes longer than anybody else should wait.
        events = await asyncio.to_thread(self._clean_all, batch.events)
        return await self._evidence.apply_batch(owner, replace(batch, events=events), at=self._clock.now())

    async def cursors(self, owner: str, client: str) -> list[TranscriptCursor]:
        """Return how far each transcript has been read."""
        return await self._evidence.cursors(owner, client)

    async def sessions(self, owner: str, limit: int) -> list[SessionCoverage]:
        """Return what is known of each session, the latest first.

        Raises:
            InvalidInputError: If the limit is out of range.
        """
        limit = limit or DEFAULT_SESSIONS
        if not 1 <= limit <= MAX_SESSIONS:
            raise InvalidInputError("limit", limit, f"a whole number from 1 to {MAX_SESSIONS}")
        return await self._evidence.sessions(owner, limit=limit)

    async def session_recalls(self, owner: str, client: str, session: str) -> list[SessionRecall]:
        """Return what each recall of a session showed, and what of it was used.

        Raises:
            InvalidInputError: If client or session is empty.
        """
        if not client or not session:
            raise InvalidInputError("session", session, "a client and a session id; `sidecar sessions` lists them")
        return await self._evidence.session_recalls(owner, client, session)

    async def end_session(self, owner: str, client: str, session: str) -> bool:
        """Note that a session ended; tell whether anything is known of it.

        Raises:
            InvalidInputError: If client or session is empty.
        """
        if not client or not session:
            raise InvalidInputError("session", session, "a client and a session id; `sidecar sessions` lists them")
        return await self._evidence.end_session(owner, client, session, at=self._clock.now())

    async def coverage(self, owner: str, client: str) -> list[ClientCoverage]:
        """Return how much of each client's sessions could be read, by client, channel and version."""
        return await self._evidence.coverage(owner, client)

    def _clean_all(self, events: Sequence[EvidenceEvent]) -> tuple[EvidenceEvent, ...]:
        return tuple(self._clean(event) for event in events)

    def _clean(self, event: EvidenceEvent) -> EvidenceEvent:
        payload = event.payload
        if isinstance(payload, TextSpoken | ToolCalled | ToolAnswered):
            payload = replace(payload, text=self._clean_text(payload.text))
        return replace(event, payload=payload)

    def _clean_text(self, text: str) -> str:
        return self._redactor.redact(normalise(text[:MAX_SLICE_CHARACTERS])).text
