"""Fills a data folder with made-up memories, vectors included, so that a size can be measured without embedding it."""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.system_clock import SystemClock
from sidecar.cli.bench import corpus
from sidecar.domain import ids
from sidecar.domain.memory import Memory, MemoryType
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.store_values import AddOutcome, NewMemory
from sidecar.domain.words import tokenise

NAMESPACE: Final = "project:bench"
OWNER: Final = "local"
_AT_ONCE: Final = 256


async def seed(database: Path, count: int, fingerprint: ModelFingerprint, *, progress: Callable[[int], None]) -> None:
    """Store `count` memories with vectors of this model; `progress` gets the number so far, again and again."""
    clock = SystemClock()
    store = SqliteStore.open(database, clock=clock)
    try:
        await store.set_model(fingerprint)
        vectors = corpus.embeddings(count, fingerprint.dim)
        texts = list(corpus.texts(count))
        for start in range(0, count, _AT_ONCE):
            stop = min(start + _AT_ONCE, count)
            outcomes = await asyncio.gather(*(store.add(_memory(text, clock)) for text in texts[start:stop]))
            keys = [_key(outcome) for outcome in outcomes]
            rows = [(key, vectors[start + i : start + i + 1]) for i, key in enumerate(keys)]
            await store.save_embeddings(fingerprint.id, rows)
            progress(stop)
    finally:
        await store.close()


def _memory(text: str, clock: SystemClock) -> NewMemory:
    now = clock.now()
    memory = Memory(
        id=ids.memory_id(int(now.timestamp() * 1000), clock.random_bytes(10)),
        owner=OWNER,
        namespace=NAMESPACE,
        type=MemoryType.FACT,
        content=text,
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        created_at=now,
        accessed_at=now,
    )
    return NewMemory(memory=memory, tokens=tokenise(text))


def _key(outcome: AddOutcome) -> int:
    return outcome.changed[0].key
