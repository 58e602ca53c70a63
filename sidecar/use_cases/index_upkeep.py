"""Keeps the vector index equal to the store's vectors, and its saved copy on disk. Knows no model and no query.

Every change of the index or its file runs on one thread, in the order in which it was asked for: a purge can then be
overtaken neither by a save, which would write the rows back, nor by vectors that were computed before it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, ParamSpec, Protocol, TypeVar

import numpy as np

from sidecar.domain.model import ModelFingerprint
from sidecar.errors import StorageError
from sidecar.ports import Embedding, Keys, MemoryStore, VectorIndex

_PAGE: Final = 4096
"""Vectors read from the store at once: about 6 MB of 384 numbers."""
_NORM_TOLERANCE: Final = 1e-3
"""What `VectorIndex.upsert` takes."""

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


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
        """Remove the saved index and whatever a killed save left, so that no byte of a purged memory stays.

        Raises:
            StorageError: If the disk refuses.
        """
        ...


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """An index that agrees with the store.

    Attributes:
        origin: `loaded`, `rebuilt` or `empty`.
        rebuild_reason: Why it was not loaded; empty if it was.
    """

    index: VectorIndex
    origin: str
    rebuild_reason: str


class IndexUpkeep:
    """Opens, changes, saves and purges one vector index. Its methods are called on the event loop."""

    def __init__(
        self, *, store: MemoryStore, new_index: Callable[[int], VectorIndex], snapshots: IndexSnapshots | None
    ) -> None:
        """Take what is needed; nothing is read before `open`.

        Args:
            new_index: Makes an empty index of a dimension.
            snapshots: None if the index is not kept between runs.
        """
        self._store = store
        self._new_index = new_index
        self._snapshots = snapshots
        self._index: VectorIndex | None = None
        self._model_id = ""
        self._unsaved_writes = 0
        # For good: keys are never given out twice, and a vector computed before a purge may come after it.
        self._purged: set[int] = set()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="index")
        self.counters: Counter[str] = Counter()

    async def open(self, fingerprint: ModelFingerprint) -> OpenedIndex:
        """Load or make the index of a model and bring it in line with the store.

        Raises:
            StorageError: If the store's vectors cannot be read.
        """
        loaded = LoadedIndex(None, "")
        if self._snapshots is not None:
            loaded = await self._in_order(self._snapshots.load, fingerprint.id, fingerprint.dim)
        index = loaded.index if loaded.index is not None else self._new_index(fingerprint.dim)
        # In this order: a memory purged before is not among the stored keys, one purged later is dropped from here.
        self._index = index
        stored = await self._store.embedded_keys(fingerprint.id)
        await self._reconcile(index, stored, fingerprint)
        self._model_id = fingerprint.id
        if loaded.index is not None:
            return OpenedIndex(index, "loaded", "")
        return OpenedIndex(index, "rebuilt", loaded.reason) if len(stored) else OpenedIndex(index, "empty", "")

    async def add(self, rows: Sequence[tuple[int, Embedding]]) -> frozenset[int]:
        """Put vectors that the store holds into the open index, and return the keys; not those purged meanwhile."""
        if self._index is None:
            raise RuntimeError("open the index first")
        added = await self._take_in(self._index, rows)
        self._unsaved_writes += len(added)
        return added

    async def purge(self, keys: Sequence[int]) -> None:
        """Drop keys from the index and remove the saved one, which holds them; at any time, also while it is opened.

        Raises:
            StorageError: If the saved one cannot be removed. The next save, or else the next start, tries again.
        """
        self._purged.update(keys)
        self._unsaved_writes += len(keys)
        await self._drop(self._index, np.asarray(keys, dtype=np.int64))

    async def save(self, *, after_writes: int) -> None:
        """Write the open index to disk if at least this many rows changed since the last time."""
        if self._snapshots is None or self._index is None or not self._model_id or self._unsaved_writes < after_writes:
            return
        pending, self._unsaved_writes = self._unsaved_writes, 0
        try:
            await self._in_order(self._snapshots.save, self._index, self._model_id)
        except StorageError as error:
            self._unsaved_writes += pending
            self._note_disk_trouble(error)

    def close(self) -> None:
        """Free the thread, after what it works on."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _reconcile(self, index: VectorIndex, stored: Keys, fingerprint: ModelFingerprint) -> None:
        """Make the index hold exactly the stored keys. A key's vector never changes, so the keys tell all."""
        present = index.keys()
        surplus = np.setdiff1d(present, stored, assume_unique=True)
        missing = np.setdiff1d(stored, present, assume_unique=True)
        if len(surplus):
            try:
                # Purged just before a kill: the file still holds them.
                await self._drop(index, surplus)
            except StorageError as error:
                self._note_disk_trouble(error)
        for start in range(0, len(missing), _PAGE):
            wanted = [int(key) for key in missing[start : start + _PAGE]]
            rows = await self._store.embeddings(fingerprint.id, wanted)
            await self._take_in(index, await self._usable(rows, fingerprint))
        self._unsaved_writes += len(surplus) + len(missing)

    async def _usable(
        self, rows: Sequence[tuple[int, Embedding]], fingerprint: ModelFingerprint
    ) -> list[tuple[int, Embedding]]:
        """Return the rows that can be indexed, and have the others made anew."""
        usable = [row for row in rows if is_indexable(row[1], dim=fingerprint.dim)]
        if len(usable) < len(rows):
            kept = {key for key, _ in usable}
            damaged = [key for key, _ in rows if key not in kept]
            await self._store.requeue(fingerprint.id, damaged)
            self.counters["damaged_vectors"] += len(damaged)
            log.warning("stored vectors are damaged and are made anew", extra={"memory_count": len(damaged)})
        return usable

    async def _take_in(self, index: VectorIndex, rows: Sequence[tuple[int, Embedding]]) -> frozenset[int]:
        # Looked at just before the work is queued: a purge that comes later is queued behind it.
        kept = [(key, embedding) for key, embedding in rows if key not in self._purged]
        if kept:
            keys = np.asarray([key for key, windows in kept for _ in range(len(windows))], dtype=np.int64)
            await self._in_order(index.upsert, keys, np.concatenate([windows for _, windows in kept]))
        return frozenset(key for key, _ in kept)

    async def _drop(self, index: VectorIndex | None, keys: Keys) -> None:
        snapshots = self._snapshots

        def drop() -> None:
            # One piece of work: no save may come between and write the rows back.
            if index is not None:
                index.remove(keys)
            if snapshots is not None:
                snapshots.discard()

        await self._in_order(drop)

    async def _in_order(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def run() -> T:
            return work(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._pool, run)

    def _note_disk_trouble(self, error: StorageError) -> None:
        self.counters["index_save_failures"] += 1
        log.warning("the saved index cannot be changed; it is rebuilt when needed", extra={"reason": error.reason})


def is_indexable(embedding: Embedding, *, dim: int) -> bool:
    """Tell whether an array is `(windows, dim)` float32 with rows of unit length; damaged disks and models make others.

    Args:
        dim: Length of every embedding of the index.
    """
    if embedding.dtype != np.float32 or embedding.ndim != 2 or not len(embedding) or embedding.shape[1] != dim:
        return False
    lengths = np.linalg.norm(embedding.astype(np.float64), axis=1)
    # A NaN compares false to everything, so the test asks for what is good.
    return bool((np.abs(lengths - 1.0) <= _NORM_TOLERANCE).all())
