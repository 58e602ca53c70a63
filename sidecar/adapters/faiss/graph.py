"""A graph of near vectors (HNSW) over rows in half precision: finds neighbours in a large store without scanning it.

Approximate: it may miss a near row, and it cannot take rows out, only mark them. What to do about either is decided
in `layered`. Not safe for threads; the owner holds a lock. Memory: 2 bytes a dimension and about 270 bytes a row.
"""

from dataclasses import dataclass
from typing import Any, Final

import faiss
import numpy as np
import numpy.typing as npt

from sidecar.adapters.index_rows import rows_allowed
from sidecar.ports import Embedding, KeyMask, Keys

NEIGHBOURS: Final = 32
"""Links of a row in the graph, twice as many on its lowest level."""
_EF_BUILD: Final = 64
_LARGE: Final = 200_000
_EF_SEARCH: Final = 160
_EF_SEARCH_LARGE: Final = 512
"""Measured: the ten nearest are 0.999 right at 100,000 with 160; at a million 0.945 with 160, 0.979 with 512."""
_MAX_EF_SEARCH: Final = 1_024
EXACT_BELOW: Final = 20_000
"""So few allowed rows are scanned: that takes a millisecond or two, and the graph would miss most of them."""
EXACT_SHARE: Final = 0.1
"""Likewise a smaller share of all rows than this."""
_FIRST_CAPACITY: Final = 1024
_KEPT_SELECTIONS: Final = 4

Cosines = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Selection:
    """The rows that a mask allows; `mask` is kept so that its identity stays its own.

    Attributes:
        selector: None if all rows are allowed.
    """

    mask: KeyMask | None
    count: int
    selector: faiss.IDSelector | None
    bits: npt.NDArray[np.uint8] | None


class GraphSegment:
    """Rows of keys in a graph. The rows of one key lie next to each other."""

    def __init__(self, dim: int) -> None:
        # FAISS's stubs know neither this constructor nor, below, the graph's own search parameters.
        make: Any = faiss.IndexHNSWSQ
        graph = make(dim, faiss.ScalarQuantizer.QT_fp16, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _EF_BUILD
        self._key_of_row: Keys = np.empty(0, np.int64)
        self._take(graph, self._key_of_row)

    @classmethod
    def restored(cls, graph: faiss.IndexHNSWSQ, key_of_row: Keys) -> "GraphSegment":
        """Return the segment of a graph that was kept; -1 as the key marks a row that was taken out."""
        segment = cls.__new__(cls)
        segment._take(graph, key_of_row)
        return segment

    @property
    def graph(self) -> faiss.IndexHNSWSQ:
        """FAISS's own object, for writing it to disk."""
        return self._graph

    @property
    def row_count(self) -> int:
        """Rows in the graph, those taken out included."""
        return int(self._graph.ntotal)

    @property
    def dead_count(self) -> int:
        """Rows that were taken out."""
        return self._dead_count

    def __len__(self) -> int:
        return len(self._span_of)

    def __contains__(self, key: int) -> bool:
        return key in self._span_of

    def keys(self) -> Keys:
        """Return all keys, in no order."""
        return np.fromiter(self._span_of, np.int64, len(self._span_of))

    def key_of_row(self) -> Keys:
        """Return the key of each row, -1 for those taken out; a view."""
        return self._key_of_row[: self.row_count]

    def append(self, keys: Keys, embeddings: Embedding) -> None:
        """Take in rows of keys that are not here; the rows of one key follow each other. Not a fast operation."""
        start, end = self.row_count, self.row_count + len(keys)
        if end > len(self._key_of_row):
            grown = np.full(max(end, 2 * len(self._key_of_row)), -1, np.int64)
            grown[:start] = self._key_of_row[:start]
            self._key_of_row = grown
        self._graph.add(np.ascontiguousarray(embeddings))
        self._key_of_row[start:end] = keys
        self._note_spans(start, end)
        self._selections.clear()

    def bury(self, keys: Keys) -> int:
        """Take keys out and return how many were here. Their vectors are overwritten, the links to them stay."""
        buried = 0
        codes = self._codes()
        for key in keys.tolist():
            span = self._span_of.pop(key, None)
            if span is None:
                continue
            first, count = span
            self._key_of_row[first : first + count] = -1
            codes[first : first + count] = 0
            self._dead_count += count
            buried += 1
        if buried:
            self._selections.clear()
        return buried

    def candidate_count(self, allowed: KeyMask | None) -> int:
        """Return how many rows may be found."""
        return self._selected(allowed).count

    def nearest(self, query: Embedding, row_limit: int, allowed: KeyMask | None) -> tuple[Keys, Cosines]:
        """Return keys and cosines of up to `row_limit` rows, best first; exact where few rows are allowed.

        Args:
            query: `(dim,)`, unit length.
            row_limit: 1 or more.
        """
        selection = self._selected(allowed)
        if not selection.count:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        rows = query[np.newaxis, :]
        row_limit = min(row_limit, selection.count)
        chosen: dict[str, Any] = {"sel": selection.selector} if selection.selector is not None else {}
        if selection.count <= max(EXACT_BELOW, int(EXACT_SHARE * self.row_count)):
            found = self._storage.search(rows, row_limit, params=faiss.SearchParameters(**chosen))
        else:
            least = _EF_SEARCH if self.row_count < _LARGE else _EF_SEARCH_LARGE
            effort = max(least, row_limit + row_limit // 2) * self.row_count // selection.count
            effort = max(min(effort, _MAX_EF_SEARCH), row_limit)
            parameters: Any = faiss.SearchParametersHNSW  # type: ignore[attr-defined]
            found = self._graph.search(rows, row_limit, params=parameters(efSearch=effort, **chosen))
        cosines, positions = found
        # FAISS pads short results with position -1.
        is_found = positions[0] >= 0
        # Half precision makes a row a little longer than 1.
        return self._key_of_row[positions[0][is_found]], np.minimum(cosines[0][is_found], 1.0)

    def rows_of(self, keys: Keys) -> tuple[Keys, Embedding]:
        """Return the rows of those keys that are here: `(n,)` keys and `(n, dim)` float32."""
        spans = [self._span_of[key] for key in keys.tolist() if key in self._span_of]
        positions = np.array([row for first, count in spans for row in range(first, first + count)], np.int64)
        if not len(positions):
            return positions, np.empty((0, self._graph.d), np.float32)
        return self._key_of_row[positions], self._storage.reconstruct_batch(positions)

    def _take(self, graph: faiss.IndexHNSWSQ, key_of_row: Keys) -> None:
        self._graph = graph
        self._storage: Any = faiss.downcast_index(graph.storage)
        self._key_of_row = np.full(max(len(key_of_row), _FIRST_CAPACITY), -1, np.int64)
        self._key_of_row[: len(key_of_row)] = key_of_row
        self._dead_count = int(np.count_nonzero(key_of_row < 0))
        self._span_of: dict[int, tuple[int, int]] = {}
        self._selections: dict[int, _Selection] = {}
        self._note_spans(0, len(key_of_row))

    def _note_spans(self, start: int, end: int) -> None:
        keys, first, counts = np.unique(self._key_of_row[start:end], return_index=True, return_counts=True)
        is_live = keys >= 0
        spans = zip((first[is_live] + start).tolist(), counts[is_live].tolist(), strict=True)
        self._span_of.update(zip(keys[is_live].tolist(), spans, strict=True))

    def _selected(self, allowed: KeyMask | None) -> _Selection:
        """Return which rows a mask allows. Kept: it takes longer than a search, and the same mask comes again."""
        kept = self._selections.get(id(allowed))
        if kept is not None:
            return kept
        row_keys = self.key_of_row()
        is_allowed = row_keys >= 0
        if allowed is not None:
            is_allowed &= rows_allowed(np.maximum(row_keys, 0), allowed)
        count = int(np.count_nonzero(is_allowed))
        selection = _Selection(allowed, count, None, None)
        if count < len(row_keys):
            bits = np.packbits(is_allowed, bitorder="little")
            selection = _Selection(allowed, count, faiss.IDSelectorBitmap(bits), bits)  # type: ignore[call-arg,arg-type]
        if len(self._selections) >= _KEPT_SELECTIONS:
            self._selections = {}
        self._selections[id(allowed)] = selection
        return selection

    def _codes(self) -> npt.NDArray[np.uint8]:
        """Return FAISS's own memory of the rows, not a copy."""
        size = int(self._storage.code_size)
        codes: npt.NDArray[np.uint8] = faiss.rev_swig_ptr(self._storage.codes.data(), self.row_count * size)
        return codes.reshape(self.row_count, size)
