"""Builds values for tests of the stores. Ids count up, so that they sort in the order they were made."""

import hashlib
import itertools
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.domain.evidence import EvidenceBatch, EvidenceEvent, EvidencePayload, SessionThread, TranscriptCursor
from sidecar.domain.ids import memory_id, recall_id
from sidecar.domain.memory import Link, Memory, MemoryState, MemoryType
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import NewMemory, RecallRecord
from sidecar.domain.words import tokenise

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNER = "ada"
EVERYTHING = NamespaceScope(())
ALL = MemoryFilter(OWNER, EVERYTHING, states=tuple(MemoryState))
ACTIVE = MemoryFilter(OWNER, EVERYTHING)
THREAD = SessionThread("claude-code", "session-1", project="app")

Store = InMemoryStore | SqliteStore

_numbers = itertools.count(1)


class SetClock:
    """A clock that stands still until it is told to move."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        """Return the time that was set."""
        return self.time

    def random_bytes(self, count: int) -> bytes:
        """Return unpredictable bytes."""
        return os.urandom(count)

    def advance(self, step: timedelta) -> None:
        """Move on."""
        self.time += step


def open_store(kind: str, folder: Path, clock: SetClock, **options: int) -> Store:
    """Return a fresh store of a kind: `in-memory` or `sqlite`."""
    if kind == "in-memory":
        return InMemoryStore(clock=clock, **options)
    return SqliteStore.open(folder / "memories.db", clock=clock, **options)


def new_memory(
    content: str,
    *,
    namespace: str = "project:app",
    links: Sequence[Link] = (),
    at: datetime = NOW,
    owner: str = OWNER,
    request_key: str = "",
    request_digest: str = "",
    **fields: object,
) -> NewMemory:
    """Return a memory to store."""
    memory = Memory(
        id=next_memory_id(at),
        owner=owner,
        namespace=namespace,
        type=fields.pop("type", MemoryType.FACT),  # type: ignore[arg-type]
        content=content,
        content_hash=hashlib.sha256(content.encode()).hexdigest(),
        created_at=at,
        accessed_at=at,
        **fields,  # type: ignore[arg-type]
    )
    return NewMemory(memory, tokenise(content), tuple(links), request_key, request_digest)


def next_memory_id(at: datetime = NOW) -> str:
    """Return an id above all before it with the same time."""
    return memory_id(int(at.timestamp() * 1000), next(_numbers).to_bytes(10, "big"))


def recall_of(memory_ids: Sequence[str], *, at: datetime = NOW, **fields: object) -> RecallRecord:
    """Return the record of a delivered recall."""
    values = {"client": "claude-code", "session": "session-1", "project": "app", "owner": OWNER, **fields}
    return RecallRecord(
        recall_id=recall_id(int(at.timestamp() * 1000), next(_numbers).to_bytes(10, "big")),
        at=at,
        memory_ids=tuple(memory_ids),
        is_degraded=False,
        **values,  # type: ignore[arg-type]
    )


async def settle(store: Store) -> None:
    """Wait until everything that was queued is written: writes keep their order."""
    await store.retry_parked()


def cursor_at(offset: int, **fields: object) -> TranscriptCursor:
    """Return a cursor into one transcript."""
    values = {
        "client": "claude-code",
        "path": "a.jsonl",
        "file_id": "1:2",
        "line_hash": "ab",
        "generation": 0,
        "parser_version": 1,
        "lines_read": offset // 10,
        **fields,
    }
    return TranscriptCursor(offset=offset, **values)  # type: ignore[arg-type]


def event(
    payload: EvidencePayload,
    *,
    event_id: str = "",
    thread: SessionThread = THREAD,
    after_s: float = 0.0,
) -> EvidenceEvent:
    """Return an event so many seconds after `NOW`; without an id, one of its own."""
    return EvidenceEvent(event_id or f"event-{next(_numbers)}", thread, NOW + timedelta(seconds=after_s), payload)


def batch(*events: EvidenceEvent, offset: int = 100) -> EvidenceBatch:
    """Return a batch of one transcript."""
    return EvidenceBatch(cursor_at(offset), events)
