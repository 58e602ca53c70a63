"""Finds memories by meaning: owns the embedder and the vector index, and says plainly when they cannot answer.

Both are loaded in the background, so that the sidecar serves full text at once. The index is a cache of the store's
vectors: whatever it is loaded from, it is compared with the store before it answers.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

import numpy as np

from sidecar.domain.model import ModelFingerprint
from sidecar.errors import EmbedderUnavailableError, StorageError
from sidecar.ports import Embedder, Embedding, KeyMask, Keys, MemoryStore, VectorIndex

_PAGE: Final = 4096
"""Vectors read from the store at once: about 6 MB of 384 numbers."""

log = logging.getLogger(__name__)


class SemanticState(StrEnum):
    """Whether meaning can be searched."""

    LOADING = "loading"
    READY = "ready"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class LoadedIndex:
    """An index read from disk, or the reason why there is none."""

    index: VectorIndex | None
    reason: str


class IndexSnapshots(Protocol):
    """Keeps the index on disk between runs. A bad file is a reason, never an error."""

    def load(self, model_id: str, dim: int) -> LoadedIndex:
        """Return the saved index of this model if there is not the least doubt about it."""
        ...

    def save(self, index: VectorIndex, model_id: str) -> None:
        """Replace the saved index.

        Raises:
            StorageError: If the disk refuses; the old one is still there.
        """
        ...

    def discard(self) -> None:
        """Remove the saved index, so that no byte of a purged memory stays."""
        ...


@dataclass(slots=True)
class SemanticStatus:
    """What a status answer tells of this part."""

    state: SemanticState = SemanticState.LOADING
    problem: str = ""
    fingerprint: ModelFingerprint | None = None
    index_size: int = 0
    index_origin: str = ""
    rebuild_reason: str = ""
    cache_hits: int = 0
    cache_lookups: int = 0
    counters: dict[str, int] = field(default_factory=dict)


class SemanticIndex:
    """Embeds queries and searches vectors, off the event loop. Its methods are called on the event loop."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        load_embedder: Callable[[], Embedder] | None,
        new_index: Callable[[int], VectorIndex],
        snapshots: IndexSnapshots | None,
        cache_size: int,
    ) -> None:
        """Take what is needed; nothing is loaded before `load`.

        Args:
            load_embedder: Runs in a worker thread; None if meaning is switched off.
            new_index: Makes an empty index of a dimension.
            cache_size: Embedded queries that are kept.
        """
        self._store = store
        self._load_embedder = load_embedder
        self._new_index = new_index
        self._snapshots = snapshots
        self._cache: OrderedDict[str, Embedding] = OrderedDict()
        self._cache_size = cache_size
        self._embedder: Embedder | None = None
        self._index: VectorIndex | None = None
        self._unsaved_writes = 0
        # Two pools: a batch of documents must never stand before a query.
        self._query_pool = ThreadPoolExecutor(2, thread_name_prefix="recall")
        self._batch_pool = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self.status = SemanticStatus()
        self.loaded = asyncio.Event()

    async def load(self) -> None:
        """Load the model, then the index; failures end up in `status`, since words can still be searched."""
        try:
            await self._load()
        except EmbedderUnavailableError as error:
            self._switch_off(error.message)
        finally:
            self.loaded.set()

    async def nearest(
        self, text: str, *, limit: int, allowed: KeyMask | None
    ) -> tuple[Embedding, list[tuple[int, float]]]:
        """Return the query's embedding and up to `limit` (key, cosine) pairs, best first.

        Raises:
            EmbedderUnavailableError: If meaning cannot be searched now.
        """
        embedder, index = self._parts()
        cached = self._cached(text)
        loop = asyncio.get_running_loop()

        def search() -> tuple[Embedding, list[tuple[int, float]]]:
            query = cached if cached is not None else embedder.embed_query(text)
            return query, index.search(query, limit=limit, allowed=allowed)

        query, hits = await loop.run_in_executor(self._query_pool, search)
        self._remember_query(text, query)
        return query, hits

    async def nearest_to(self, embedding: Embedding, *, limit: int, allowed: KeyMask | None) -> list[tuple[int, float]]:
        """Return up to `limit` (key, cosine) pairs near a memory, best first, searched behind all queries.

        Args:
            embedding: `(windows, dim)` rows of one memory; of each other key its best pair of windows counts.

        Raises:
            EmbedderUnavailableError: If meaning cannot be searched now.
        """
        _, index = self._parts()

        def search() -> list[tuple[int, float]]:
            best: dict[int, float] = {}
            for window in embedding:
                for key, cosine in index.search(window, limit=limit, allowed=allowed):
                    best[key] = max(cosine, best.get(key, cosine))
            return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:limit]

        return await asyncio.get_running_loop().run_in_executor(self._batch_pool, search)

    async def similarities(self, query: Embedding, keys: Sequence[int]) -> dict[int, float]:
        """Return the cosine of those keys that have a vector."""
        _, index = self._parts()
        wanted = np.asarray(keys, dtype=np.int64)
        loop = asyncio.get_running_loop()
        cosines = await loop.run_in_executor(self._query_pool, index.similarities, query, wanted)
        return {key: cosine for key, cosine in zip(keys, cosines, strict=True) if cosine is not None}

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one `(windows, dim)` array for each text, computed behind all queries."""
        embedder, _ = self._parts()
        return await asyncio.get_running_loop().run_in_executor(self._batch_pool, embedder.embed_documents, texts)

    async def add(self, rows: Sequence[tuple[int, Embedding]]) -> None:
        """Put vectors that the store holds into the index."""
        _, index = self._parts()
        keys, embeddings = _flatten(rows)
        await asyncio.get_running_loop().run_in_executor(self._batch_pool, index.upsert, keys, embeddings)
        self._unsaved_writes += len(rows)
        self.status.index_size = len(index)

    async def purge(self, keys: Sequence[int]) -> None:
        """Drop keys from the index, and from the disk."""
        if self._snapshots is not None:
            await asyncio.to_thread(self._snapshots.discard)
        self._unsaved_writes += len(keys)
        if self._index is not None:
            wanted = np.asarray(keys, dtype=np.int64)
            await asyncio.get_running_loop().run_in_executor(self._batch_pool, self._index.remove, wanted)
            self.status.index_size = len(self._index)

    async def keys(self) -> Keys:
        """Return all keys that the index holds, ascending, once what was begun before is in it.

        Raises:
            EmbedderUnavailableError: If meaning cannot be searched now.
        """
        _, index = self._parts()
        return await asyncio.get_running_loop().run_in_executor(self._batch_pool, index.keys)

    async def save(self, *, after_writes: int = 1) -> None:
        """Write the index to disk if at least this many rows changed since the last time."""
        if self._snapshots is None or self._index is None or self._unsaved_writes < after_writes:
            return
        pending, self._unsaved_writes = self._unsaved_writes, 0
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._batch_pool, self._snapshots.save, self._index, self.model_id
            )
        except StorageError as error:
            self._unsaved_writes += pending
            self._count("index_save_failures")
            log.warning("index not saved; it will be rebuilt", extra={"reason": error.reason})

    @property
    def model_id(self) -> str:
        """Id of the model in use; empty without one."""
        return self._embedder.fingerprint.id if self._embedder is not None else ""

    def close(self) -> None:
        """Free the model and the threads."""
        self._query_pool.shutdown(wait=True, cancel_futures=True)
        self._batch_pool.shutdown(wait=True, cancel_futures=True)
        if self._embedder is not None:
            self._embedder.close()

    async def _load(self) -> None:
        if self._load_embedder is None:
            raise EmbedderUnavailableError("it is switched off by the setting `embedder`")
        loop = asyncio.get_running_loop()
        embedder = await loop.run_in_executor(self._query_pool, self._load_embedder)
        fingerprint = embedder.fingerprint
        self.status.fingerprint = fingerprint
        await self._store.set_model(fingerprint)
        index, origin, reason = await self._open_index(fingerprint)
        self._embedder, self._index = embedder, index
        self.status.state = SemanticState.READY
        self.status.index_size = len(index)
        self.status.index_origin, self.status.rebuild_reason = origin, reason
        log.info("meaning can be searched", extra={"memory_count": len(index), "origin": origin})

    async def _open_index(self, fingerprint: ModelFingerprint) -> tuple[VectorIndex, str, str]:
        loop = asyncio.get_running_loop()
        stored = await self._store.embedded_keys(fingerprint.id)
        loaded = LoadedIndex(None, "")
        if self._snapshots is not None:
            loaded = await loop.run_in_executor(self._batch_pool, self._snapshots.load, fingerprint.id, fingerprint.dim)
        if loaded.index is not None:
            await self._reconcile(loaded.index, stored, fingerprint.id)
            return loaded.index, "loaded", ""
        index = self._new_index(fingerprint.dim)
        await self._reconcile(index, stored, fingerprint.id)
        self._unsaved_writes += len(stored)
        return (index, "rebuilt", loaded.reason) if len(stored) else (index, "empty", "")

    async def _reconcile(self, index: VectorIndex, stored: Keys, model_id: str) -> None:
        """Make the index hold exactly the stored keys. A key's vector never changes, so the keys tell all."""
        present = index.keys()
        surplus = np.setdiff1d(present, stored, assume_unique=True)
        missing = np.setdiff1d(stored, present, assume_unique=True)
        loop = asyncio.get_running_loop()
        if len(surplus):
            await loop.run_in_executor(self._batch_pool, index.remove, surplus)
        for start in range(0, len(missing), _PAGE):
            wanted = [int(key) for key in missing[start : start + _PAGE]]
            rows = await self._store.embeddings(model_id, wanted)
            keys, embeddings = _flatten(rows)
            await loop.run_in_executor(self._batch_pool, index.upsert, keys, embeddings)
        self._unsaved_writes += len(surplus) + len(missing)

    def _switch_off(self, problem: str) -> None:
        self.status.state = SemanticState.OFF
        self.status.problem = problem
        log.warning("meaning cannot be searched", extra={"reason": problem})

    def _parts(self) -> tuple[Embedder, VectorIndex]:
        if self._embedder is None or self._index is None:
            raise EmbedderUnavailableError(self.status.problem or "it is still being loaded")
        return self._embedder, self._index

    def _cached(self, text: str) -> Embedding | None:
        self.status.cache_lookups += 1
        cached = self._cache.get(text)
        if cached is not None:
            self.status.cache_hits += 1
            self._cache.move_to_end(text)
        return cached

    def _remember_query(self, text: str, query: Embedding) -> None:
        self._cache[text] = query
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)

    def _count(self, name: str) -> None:
        self.status.counters[name] = self.status.counters.get(name, 0) + 1


def _flatten(rows: Sequence[tuple[int, Embedding]]) -> tuple[Keys, Embedding]:
    """Return keys repeated for each window, and all windows below each other."""
    keys = np.asarray([key for key, windows in rows for _ in range(len(windows))], dtype=np.int64)
    return keys, np.concatenate([windows for _, windows in rows]) if rows else np.zeros((0, 0), dtype=np.float32)
