"""The exact vector index: one FAISS inner-product table, and which key each of its rows belongs to.

Right for small stores, where exact is also fast. Whatever suits large ones goes beside it, behind the same port.
"""

import threading
from dataclasses import dataclass
from typing import Final

import faiss
import numpy as np
import numpy.typing as npt

from sidecar.adapters.faiss.rwlock import ReadersWriterLock
from sidecar.adapters.index_rows import (
    COSINE_DIGITS,
    best_of_each_key,
    check_keys,
    check_mask,
    check_query,
    check_rows,
    rows_allowed,
)
from sidecar.ports import Embedding, KeyMask, Keys

_GROWTH: Final = 4
_FIRST_CAPACITY: Final = 1024


@dataclass(frozen=True, slots=True)
class IndexRows:
    """All rows of an index at one moment: `keys` (n,) int64 and `embeddings` (n, dim) float32, unit length."""

    keys: Keys
    embeddings: Embedding


class FaissVectorIndex:
    """Scores every allowed row with FAISS; see `VectorIndex`.

    FAISS numbers rows by position and moves later ones up on a removal, keeping their order. The rows of one key are
    always next to each other, so a key needs no more than the position of its first row.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._table = faiss.IndexFlatIP(dim)
        self._key_of_row: Keys = np.empty(_FIRST_CAPACITY, np.int64)
        self._first_row: dict[int, int] = {}
        self._lock = ReadersWriterLock()
        self._thread = threading.local()

    @property
    def dim(self) -> int:
        """See `VectorIndex.dim`."""
        return self._dim

    def __len__(self) -> int:
        return len(self._first_row)

    def upsert(self, keys: Keys, embeddings: Embedding) -> None:
        """See `VectorIndex.upsert`."""
        check_rows(keys, embeddings, dim=self._dim)
        order = np.argsort(keys, kind="stable")
        keys, embeddings = keys[order], np.ascontiguousarray(embeddings[order])
        self._use_one_thread()
        with self._lock.writing():
            self._drop(keys)
            self._append(keys, embeddings)

    def remove(self, keys: Keys) -> int:
        """See `VectorIndex.remove`. Takes time in proportion to the whole index, however few the keys: batch them."""
        check_keys(keys)
        self._use_one_thread()
        with self._lock.writing():
            return self._drop(keys)

    def search(self, query: Embedding, *, limit: int, allowed: KeyMask | None = None) -> list[tuple[int, float]]:
        """See `VectorIndex.search`."""
        check_query(query, dim=self._dim)
        if allowed is not None:
            check_mask(allowed)
        if limit <= 0:
            return []
        self._use_one_thread()
        with self._lock.reading():
            return self._search(query[np.newaxis, :], limit, allowed)

    def similarities(self, query: Embedding, keys: Keys) -> list[float | None]:
        """See `VectorIndex.similarities`."""
        check_query(query, dim=self._dim)
        check_keys(keys)
        with self._lock.reading():
            return self._similarities(query, keys.tolist())

    def keys(self) -> Keys:
        """See `VectorIndex.keys`."""
        with self._lock.reading():
            found = np.fromiter(self._first_row, np.int64, len(self._first_row))
        return np.sort(found)

    def rows_of(self, keys: Keys) -> tuple[Keys, Embedding]:
        """Return a copy of the rows of those keys that are here: `(n,)` keys and `(n, dim)` float32."""
        with self._lock.reading():
            positions = np.array([row for key in keys.tolist() for row in self._rows_of(key)], np.int64)
            if not len(positions):
                return positions, np.empty((0, self._dim), np.float32)
            return self._key_of_row[positions], self._rows().take(positions, axis=0)

    def export_rows(self) -> IndexRows:
        """Return a copy of every row, taken at one moment; writers wait meanwhile."""
        with self._lock.reading():
            count = self._table.ntotal
            return IndexRows(self._key_of_row[:count].copy(), self._table.reconstruct_n(0, count))

    def _search(self, query: Embedding, limit: int, allowed: KeyMask | None) -> list[tuple[int, float]]:
        row_keys = self._key_of_row[: self._table.ntotal]
        candidate_count = len(row_keys)
        selector: faiss.IDSelector | None = None
        if allowed is not None:
            is_candidate = rows_allowed(row_keys, allowed)
            candidate_count = int(np.count_nonzero(is_candidate))
            # A selector costs a small store more than the search itself.
            selector = _row_selector(is_candidate) if candidate_count < len(row_keys) else None
        # One more than asked tells whether the cut goes through a run of equal cosines.
        row_limit = limit + 1
        while True:
            row_limit = min(row_limit, candidate_count)
            if not row_limit:
                return []
            hits = self._nearest_rows(query, row_limit, selector)
            if row_limit == candidate_count or _is_settled(hits, limit):
                return hits.pairs[:limit]
            row_limit *= _GROWTH

    def _nearest_rows(self, query: Embedding, row_limit: int, selector: faiss.IDSelector | None) -> "_NearestRows":
        # FAISS's stubs describe its C++ constructors; its Python ones take keywords and arrays.
        parameters = faiss.SearchParameters(sel=selector) if selector else None  # type: ignore[call-arg]
        cosines, positions = self._table.search(query, row_limit, params=parameters)
        # FAISS pads short results with position -1.
        found = positions[0] >= 0
        pairs = best_of_each_key(self._key_of_row[positions[0][found]], cosines[0][found])
        last = round(float(cosines[0][found][-1]), COSINE_DIGITS) if found.any() else -np.inf
        return _NearestRows(pairs, last)

    def _similarities(self, query: Embedding, keys: list[int]) -> list[float | None]:
        """Return the best cosine of each key's rows, which lie next to each other."""
        count = self._table.ntotal
        firsts = np.fromiter((self._first_row.get(key, -1) for key in keys), np.int64, len(keys))
        positions = firsts[firsts >= 0]
        after = np.minimum(positions + 1, count - 1)
        if not np.any((self._key_of_row[after] == self._key_of_row[positions]) & (after > positions)):
            # Hardly any text has a second window.
            found = iter((self._rows().take(positions, axis=0) @ query).tolist())
            return [round(next(found), COSINE_DIGITS) if first >= 0 else None for first in firsts.tolist()]
        return self._best_of_windows(query, keys)

    def _best_of_windows(self, query: Embedding, keys: list[int]) -> list[float | None]:
        spans = [self._rows_of(key) for key in keys]
        positions = np.array([row for span in spans for row in span], np.int64)
        cosines = self._rows().take(positions, axis=0) @ query
        lengths = [len(span) for span in spans if span]
        starts = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
        best = iter(np.maximum.reduceat(cosines, starts).tolist())
        return [round(next(best), COSINE_DIGITS) if span else None for span in spans]

    def _rows(self) -> Embedding:
        """Return FAISS's own memory, not a copy: only for use under the lock."""
        count = self._table.ntotal
        rows: Embedding = faiss.rev_swig_ptr(self._table.get_xb(), count * self._dim).reshape(count, self._dim)
        return rows

    def _rows_of(self, key: int) -> range:
        first = self._first_row.get(key)
        if first is None:
            return range(0)
        end, count = first + 1, self._table.ntotal
        while end < count and self._key_of_row[end] == key:
            end += 1
        return range(first, end)

    def _append(self, keys: Keys, embeddings: Embedding) -> None:
        start = self._table.ntotal
        end = start + len(keys)
        if end > len(self._key_of_row):
            grown = np.empty(max(end, 2 * len(self._key_of_row)), np.int64)
            grown[:start] = self._key_of_row[:start]
            self._key_of_row = grown
        self._table.add(embeddings)
        self._key_of_row[start:end] = keys
        self._note_first_rows(start, end)

    def _drop(self, keys: Keys) -> int:
        present = [key for key in set(keys.tolist()) if key in self._first_row]
        if not present:
            return 0
        row_keys = self._key_of_row[: self._table.ntotal]
        is_dropped = np.isin(row_keys, np.array(present, np.int64))
        self._table.remove_ids(_row_selector(is_dropped))
        kept = row_keys[~is_dropped]
        self._key_of_row[: len(kept)] = kept
        self._first_row.clear()
        self._note_first_rows(0, len(kept))
        return len(present)

    def _note_first_rows(self, start: int, end: int) -> None:
        keys, first = np.unique(self._key_of_row[start:end], return_index=True)
        self._first_row.update(zip(keys.tolist(), (first + start).tolist(), strict=True))

    def _use_one_thread(self) -> None:
        # OpenMP keeps this setting for each thread. With more, a search beside a busy compiler takes 30 times as long.
        if not getattr(self._thread, "is_single", False):
            faiss.omp_set_num_threads(1)
            self._thread.is_single = True


@dataclass(frozen=True, slots=True)
class _NearestRows:
    pairs: list[tuple[int, float]]
    last_cosine: float


def _is_settled(hits: _NearestRows, limit: int) -> bool:
    """Tell whether rows further down could not change the first `limit` keys: neither their number nor a tie."""
    return len(hits.pairs) >= limit and hits.last_cosine < hits.pairs[limit - 1][1]


def _row_selector(is_selected: npt.NDArray[np.bool_]) -> faiss.IDSelector:
    bits = np.packbits(is_selected, bitorder="little")
    return faiss.IDSelectorBitmap(bits)  # type: ignore[call-arg,arg-type]  # see `_nearest_rows`
