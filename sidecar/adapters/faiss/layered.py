"""The vector index of a store of any size: an exact segment for what is new, and a graph for the rest.

A small store has the exact segment alone. Once that is large, a thread of its own builds a graph of all rows beside
it and puts it in its place at one moment; what comes later is moved over in small portions. A narrow filter is
answered exactly from either.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from typing import Final

import faiss
import numpy as np

from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.graph import GraphSegment
from sidecar.adapters.faiss.rwlock import ReadersWriterLock
from sidecar.adapters.index_rows import (
    COSINE_DIGITS,
    best_of_each_key,
    check_keys,
    check_mask,
    check_query,
    check_rows,
)
from sidecar.adapters.thread_priority import give_way
from sidecar.ports import Embedding, KeyMask, Keys

log = logging.getLogger(__name__)

GRAPH_FROM: Final = 20_000
"""An exact search of so many rows takes 1.5 ms; the graph takes half of that at any size."""
FRESH_LIMIT: Final = 4_000
_PORTION: Final = 256
"""The end of the process waits for so many rows at most: a third of a second at a million."""
_ROWS_PER_LOCK: Final = 8
"""Searches wait for so many rows at most: 5 to 20 ms at a million."""
_REST_SHARE: Final = 0.5
_DEAD_SHARE: Final = 0.2
_GROWTH: Final = 4
_NICENESS: Final = 10


class LayeredVectorIndex:
    """See `VectorIndex`. Recall of the ten nearest against an exact search: 0.95 or better in its graph."""

    def __init__(self, dim: int, *, graph_from: int = GRAPH_FROM, fresh_limit: int = FRESH_LIMIT) -> None:
        """Make an empty index.

        Args:
            graph_from: Keys from which on a graph is built.
            fresh_limit: Keys beside the graph from which on they are moved into it.
        """
        self._dim = dim
        self._graph_from = graph_from
        self._fresh_limit = fresh_limit
        self._fresh = FaissVectorIndex(dim)
        self._graph: GraphSegment | None = None
        # Writers hold `_changing` first, and a save holds that alone, so that no search waits for a save.
        self._changing = threading.Lock()
        self._lock = ReadersWriterLock()
        self._changed_since: set[int] = set()
        self._worker: threading.Thread | None = None
        self._thread = threading.local()

    @property
    def dim(self) -> int:
        """See `VectorIndex.dim`."""
        return self._dim

    @property
    def graph_size(self) -> int:
        """Keys that are in the graph; 0 while there is none."""
        return 0 if self._graph is None else len(self._graph)

    def __len__(self) -> int:
        return len(self._fresh) + self.graph_size

    def upsert(self, keys: Keys, embeddings: Embedding) -> None:
        """See `VectorIndex.upsert`."""
        check_rows(keys, embeddings, dim=self._dim)
        with self._writing():
            self._note_change(keys)
            if self._graph is not None:
                self._graph.bury(np.unique(keys))
            self._fresh.upsert(keys, embeddings)
            self._consider()

    def remove(self, keys: Keys) -> int:
        """See `VectorIndex.remove`."""
        check_keys(keys)
        with self._writing():
            self._note_change(keys)
            buried = self._graph.bury(np.unique(keys)) if self._graph is not None else 0
            removed = buried + self._fresh.remove(keys)
            self._consider()
        return removed

    def search(self, query: Embedding, *, limit: int, allowed: KeyMask | None = None) -> list[tuple[int, float]]:
        """See `VectorIndex.search`."""
        check_query(query, dim=self._dim)
        if allowed is not None:
            check_mask(allowed)
        if limit <= 0:
            return []
        self._use_one_thread()
        with self._lock.reading():
            hits = self._fresh.search(query, limit=limit, allowed=allowed)
            if self._graph is None:
                return hits
            # A key that is being moved is in both; its exact cosine counts.
            best = dict(_nearest_keys(self._graph, query, limit, allowed)) | dict(hits)
        return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:limit]

    def similarities(self, query: Embedding, keys: Keys) -> list[float | None]:
        """See `VectorIndex.similarities`."""
        check_query(query, dim=self._dim)
        check_keys(keys)
        with self._lock.reading():
            cosines = self._fresh.similarities(query, keys)
            if self._graph is None:
                return cosines
            row_keys, rows = self._graph.rows_of(np.unique(keys))
        best: dict[int, float] = {}
        for key, cosine in zip(row_keys.tolist(), np.minimum(rows @ query, 1.0).tolist(), strict=True):
            best[key] = max(best.get(key, -2.0), round(cosine, COSINE_DIGITS))
        return [best.get(key) if found is None else found for key, found in zip(keys.tolist(), cosines, strict=True)]

    def keys(self) -> Keys:
        """See `VectorIndex.keys`."""
        with self._lock.reading():
            fresh = self._fresh.keys()
            return fresh if self._graph is None else np.sort(np.concatenate((fresh, self._graph.keys())))

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[tuple[FaissVectorIndex, GraphSegment | None]]:
        """Give both segments for the block, in which nothing changes and everybody may search."""
        with self._changing:
            yield self._fresh, self._graph

    def restore(self, fresh: FaissVectorIndex | None, graph: GraphSegment | None) -> None:
        """Take segments that were kept; of keys that are in both, the graph's rows count."""
        with self._writing():
            self._graph = graph
            if fresh is not None:
                self._fresh = fresh
                if graph is not None:
                    fresh.remove(np.intersect1d(fresh.keys(), graph.keys(), assume_unique=True))
            self._consider()

    def settle(self) -> None:
        """Return when nothing is being built or moved."""
        worker = self._worker
        if worker is not None:
            worker.join()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._use_one_thread()
        with self._changing, self._lock.writing():
            yield

    def _note_change(self, keys: Keys) -> None:
        if self._worker is not None:
            self._changed_since.update(keys.tolist())

    def _consider(self) -> None:
        """Start the worker if there is work and none runs. Called by writers."""
        if self._worker is None and (self._wants_graph() or self._wants_moving()):
            self._worker = threading.Thread(target=self._work, name="index-graph")
            # Not a daemon: one that is inside FAISS when the interpreter ends takes the process down with an abort.
            self._worker.start()

    def _wants_graph(self) -> bool:
        graph = self._graph
        if graph is None:
            return len(self._fresh) >= self._graph_from
        return graph.dead_count > max(_DEAD_SHARE * graph.row_count, self._fresh_limit)

    def _wants_moving(self, *, is_begun: bool = False) -> bool:
        # Once begun, all are moved: otherwise the next write would start a thread again.
        return self._graph is not None and len(self._fresh) >= (1 if is_begun else self._fresh_limit)

    # --- on the worker's thread ---

    def _work(self) -> None:
        give_way(_NICENESS)
        self._use_one_thread()
        is_begun = False
        try:
            while True:
                with self._changing:
                    wants_graph, wants_moving = self._wants_graph(), self._wants_moving(is_begun=is_begun)
                    if not wants_graph and not wants_moving:
                        self._worker = None
                        return
                if _is_ending():
                    return
                if wants_graph:
                    self._build()
                else:
                    self._move_portion()
                is_begun = True
        except Exception:
            # Searches go on, exact and slower; the next start tries again. Whoever reads the log must see it.
            log.exception("the graph of near vectors could not be built")

    def _build(self) -> None:
        """Make a graph of all rows beside the present segments, then put it in their place."""
        began = time.monotonic()
        with self._changing:
            self._changed_since.clear()
            wanted = self.keys()
        graph = GraphSegment(self._dim)
        for start in range(0, len(wanted), _PORTION):
            with self._lock.reading():
                row_keys, rows = self._rows_of(wanted[start : start + _PORTION])
            if len(row_keys):
                graph.append(row_keys, rows)
            if _is_ending():
                return
        with self._changing:
            # What changed meanwhile is in the fresh segment, or gone.
            graph.bury(np.fromiter(self._changed_since, np.int64, len(self._changed_since)))
            fresh = FaissVectorIndex(self._dim)
            late = np.setdiff1d(self.keys(), graph.keys(), assume_unique=True)
            row_keys, rows = self._rows_of(late)
            if len(row_keys):
                fresh.upsert(row_keys, rows)
            with self._lock.writing():
                self._fresh, self._graph = fresh, graph
        seconds = round(time.monotonic() - began, 1)
        log.info("a graph of near vectors is in use", extra={"memory_count": len(graph), "seconds": seconds})

    def _move_portion(self) -> None:
        """Move the oldest fresh rows into the graph, a few at a time."""
        with self._changing:
            self._changed_since.clear()
            row_keys, rows = self._fresh.rows_of(self._fresh.keys()[:_PORTION])
        for start, end in _portions(row_keys):
            if _is_ending():
                return
            began = time.monotonic()
            with self._changing:
                graph, keys = self._graph, row_keys[start:end]
                is_current = np.array([key not in self._changed_since for key in keys.tolist()])
                if graph is not None and is_current.any():
                    with self._lock.writing():
                        # In the fresh segment too until the end: equal rows of a key count once.
                        graph.append(keys[is_current], rows[start:end][is_current])
            time.sleep(_REST_SHARE * (time.monotonic() - began))
        with self._changing, self._lock.writing():
            if self._graph is not None:
                moved = np.unique(row_keys)
                self._fresh.remove(moved[np.isin(moved, self._graph.keys())])

    def _rows_of(self, keys: Keys) -> tuple[Keys, Embedding]:
        fresh_keys, fresh_rows = self._fresh.rows_of(keys)
        if self._graph is None:
            return fresh_keys, fresh_rows
        graph_keys, graph_rows = self._graph.rows_of(np.setdiff1d(keys, fresh_keys))
        return np.concatenate((fresh_keys, graph_keys)), np.concatenate((fresh_rows, graph_rows))

    def _use_one_thread(self) -> None:
        # OpenMP keeps this setting for each thread; see `FaissVectorIndex`.
        if not getattr(self._thread, "is_single", False):
            faiss.omp_set_num_threads(1)
            self._thread.is_single = True


def _nearest_keys(
    graph: GraphSegment, query: Embedding, limit: int, allowed: KeyMask | None
) -> list[tuple[int, float]]:
    """Return up to `limit` (key, cosine) pairs: as many rows are asked for as it takes to have that many keys."""
    candidate_count = graph.candidate_count(allowed)
    row_limit = limit + 1
    while True:
        keys, cosines = graph.nearest(query, row_limit, allowed)
        pairs = best_of_each_key(keys, cosines)
        if len(pairs) >= limit or row_limit >= candidate_count or len(keys) < row_limit:
            return pairs[:limit]
        row_limit *= _GROWTH


def _portions(row_keys: Keys) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of a few rows each, never between two rows of one key."""
    start = 0
    while start < len(row_keys):
        end = min(start + _ROWS_PER_LOCK, len(row_keys))
        while end < len(row_keys) and row_keys[end] == row_keys[end - 1]:
            end += 1
        yield start, end
        start = end


def _is_ending() -> bool:
    """Tell whether the process waits for this thread: then the work is left to the next start."""
    return not threading.main_thread().is_alive()
