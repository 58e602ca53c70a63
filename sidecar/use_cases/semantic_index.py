"""Finds memories by meaning: owns the embedder and the vector index, and says plainly when they cannot answer.

Both are loaded in the background, so that the sidecar serves full text at once. The index is a cache of the store's
vectors: whatever it is loaded from, it is compared with the store before it answers; see `index_upkeep`.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from sidecar.domain.model import ModelFingerprint
from sidecar.errors import EmbedderUnavailableError, EmbeddingFailedError
from sidecar.ports import Embedder, Embedding, KeyMask, Keys, MemoryStore, VectorIndex
from sidecar.use_cases.index_upkeep import IndexSnapshots, IndexUpkeep, is_indexable

_PROBE: Final = "Is this model well?"

log = logging.getLogger(__name__)


class SemanticState(StrEnum):
    """Whether meaning can be searched."""

    LOADING = "loading"
    READY = "ready"
    OFF = "off"


@dataclass(slots=True)
class SemanticStatus:
    """What a status answer tells of this part.

    Attributes:
        problem: Why meaning cannot be searched; empty if it can.
        is_chosen_off: Whether it is off because the user said so, which is no problem.
    """

    state: SemanticState = SemanticState.LOADING
    problem: str = ""
    is_chosen_off: bool = False
    fingerprint: ModelFingerprint | None = None
    index_size: int = 0
    index_origin: str = ""
    rebuild_reason: str = ""
    cache_hits: int = 0
    cache_lookups: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)


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
        abort_load: Callable[[], None] | None = None,
        prepare_batch_thread: Callable[[], None] | None = None,
    ) -> None:
        """Take what is needed; nothing is loaded before `load`.

        Args:
            load_embedder: Runs in a worker thread; None if meaning is switched off.
            new_index: Makes an empty index of a dimension.
            cache_size: Embedded queries that are kept.
            abort_load: Makes a `load_embedder` that runs fail soon; None if it takes no longer than a stop may.
            prepare_batch_thread: Called once on the thread that embeds documents, such as to lower its priority.
        """
        self._store = store
        self._load_embedder = load_embedder
        self._abort_load = abort_load
        self._upkeep = IndexUpkeep(store=store, new_index=new_index, snapshots=snapshots)
        self._cache: OrderedDict[str, Embedding] = OrderedDict()
        self._cache_size = cache_size
        self._embedder: Embedder | None = None
        self._model_id = ""
        self._index: VectorIndex | None = None
        self._is_aborted = False
        # Two pools: a batch of documents must never stand before a query.
        self._query_pool = ThreadPoolExecutor(2, thread_name_prefix="recall")
        self._batch_pool = ThreadPoolExecutor(1, thread_name_prefix="embed", initializer=prepare_batch_thread)
        self.status = SemanticStatus(counters=self._upkeep.counters)
        self.loaded = asyncio.Event()

    @property
    def model_id(self) -> str:
        """Id of the model in use; empty without one, and while it or the index is being loaded."""
        return self._model_id

    async def load(self) -> None:
        """Load the model, then the index. Without a model `status` says so: words can still be searched.

        May be called again when it failed.

        Raises:
            StorageError: If the store's vectors cannot be read.
            TooManyRequestsError: If its queue is full.
        """
        try:
            await self._load()
        except EmbedderUnavailableError as error:
            self.switch_off(error.message)
        self.loaded.set()

    def switch_off(self, problem: str) -> None:
        """Give up searching by meaning, and say why."""
        self._model_id = ""
        self.status.state = SemanticState.OFF
        self.status.problem = problem
        self.loaded.set()
        level = logging.INFO if self.status.is_chosen_off else logging.WARNING
        log.log(level, "meaning cannot be searched", extra={"reason": problem})

    async def nearest(
        self, text: str, *, limit: int, allowed: KeyMask | None
    ) -> tuple[Embedding, list[tuple[int, float]]]:
        """Return the query's embedding and up to `limit` (key, cosine) pairs, best first.

        Raises:
            EmbedderUnavailableError: If meaning cannot be searched now, or not for this query.
        """
        embedder, index = self._parts()
        cached = self._cached(text)

        def search() -> tuple[Embedding, list[tuple[int, float]]]:
            query = cached if cached is not None else _embedded_query(embedder, text, dim=index.dim)
            return query, index.search(query, limit=limit, allowed=allowed)

        query, hits = await asyncio.get_running_loop().run_in_executor(self._query_pool, search)
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

    async def holds(self, key: int) -> bool:
        """Tell whether a memory can be found by meaning now."""
        if not self.model_id:
            return False
        _, index = self._parts()
        anything = np.zeros(index.dim, np.float32)
        anything[0] = 1.0
        return bool(await self.similarities(anything, [key]))

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one `(windows, dim)` array for each text, computed behind all queries.

        Raises:
            EmbedderUnavailableError: If the model cannot run now.
            EmbeddingFailedError: If it failed on one of these texts, or made no vector that can be indexed of it.
        """
        embedder, index = self._parts()
        embeddings = await asyncio.get_running_loop().run_in_executor(self._batch_pool, embedder.embed_documents, texts)
        if not all(is_indexable(embedding, dim=index.dim) for embedding in embeddings):
            raise EmbeddingFailedError("a vector is not finite or not of unit length")
        return embeddings

    async def probe(self) -> None:
        """Try the model on a plain text, to tell a bad text from a model that is down.

        Raises:
            EmbedderUnavailableError: If it fails on that too.
        """
        try:
            await self.embed([_PROBE])
        except EmbedderUnavailableError:
            raise
        except Exception as error:
            raise EmbedderUnavailableError(f"it fails on any text ({type(error).__name__})") from error

    async def add(self, rows: Sequence[tuple[int, Embedding]]) -> frozenset[int]:
        """Put vectors that the store holds into the index and return the keys that are in; not those purged by now."""
        _, index = self._parts()
        added = await self._upkeep.add(rows)
        self.status.index_size = len(index)
        return added

    async def purge(self, keys: Sequence[int]) -> None:
        """Drop keys from the index and remove the saved one, which holds them; also while the index is being loaded.

        Raises:
            StorageError: If the saved one cannot be removed. The next save, or else the next start, tries again.
        """
        try:
            await self._upkeep.purge(keys)
        finally:
            if self._index is not None:
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
        await self._upkeep.save(after_writes=after_writes)

    def abort(self) -> None:
        """End what runs in the model, a load too, and free it. What was embedded can still be saved."""
        self._is_aborted = True
        if self._abort_load is not None:
            self._abort_load()
        if self._embedder is not None:
            self._embedder.close()

    def close(self) -> None:
        """Free the threads; after `abort`."""
        # Not waited for: a load that cannot be ended goes on for seconds, and holds nothing that must be closed.
        self._query_pool.shutdown(wait=False, cancel_futures=True)
        self._batch_pool.shutdown(wait=True, cancel_futures=True)
        self._upkeep.close()

    async def _load(self) -> None:
        if self._load_embedder is None:
            self.status.is_chosen_off = True
            raise EmbedderUnavailableError("it is switched off by the setting `embedder`")
        if self._embedder is None:
            loop = asyncio.get_running_loop()
            self._embedder = await loop.run_in_executor(self._query_pool, self._loaded_embedder, self._load_embedder)
        fingerprint = self._embedder.fingerprint
        self.status.fingerprint = fingerprint
        await self._store.set_model(fingerprint)
        opened = await self._upkeep.open(fingerprint)
        self._index = opened.index
        self._model_id = fingerprint.id
        self.status.state = SemanticState.READY
        self.status.index_size = len(opened.index)
        self.status.index_origin, self.status.rebuild_reason = opened.origin, opened.rebuild_reason
        log.info("meaning can be searched", extra={"memory_count": len(opened.index), "origin": opened.origin})

    def _loaded_embedder(self, load: Callable[[], Embedder]) -> Embedder:
        embedder = load()
        if self._is_aborted:
            # Nobody waits for it any more.
            embedder.close()
        return embedder

    def _parts(self) -> tuple[Embedder, VectorIndex]:
        if self._embedder is None or self._index is None or not self.model_id:
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


def _embedded_query(embedder: Embedder, text: str, *, dim: int) -> Embedding:
    try:
        query = embedder.embed_query(text)
    except EmbedderUnavailableError:
        raise
    except Exception as error:
        # What raises for a bad text is up to the model. Words can still answer, and the answer says so.
        log.warning("embedding a query failed", extra={"error": type(error).__name__})
        raise EmbedderUnavailableError(f"it failed on this query ({type(error).__name__})") from error
    if not is_indexable(query[np.newaxis, :], dim=dim):
        raise EmbedderUnavailableError("it made no usable vector of this query")
    return query
