"""A vector index in plain numpy: the light twin of the FAISS index, for tests and as its reference. Not fast."""

import threading

import numpy as np

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


class BruteForceVectorIndex:
    """Scores every row on every search; see `VectorIndex`."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        # Writers replace both arrays and never change one in place, so a reader works on what it took.
        self._rows: tuple[Keys, Embedding] = (np.empty(0, np.int64), np.empty((0, dim), np.float32))
        self._writing = threading.Lock()

    @property
    def dim(self) -> int:
        """See `VectorIndex.dim`."""
        return self._dim

    def __len__(self) -> int:
        return len(self.keys())

    def upsert(self, keys: Keys, embeddings: Embedding) -> None:
        """See `VectorIndex.upsert`."""
        check_rows(keys, embeddings, dim=self._dim)
        with self._writing:
            row_keys, rows = self._rows
            kept = ~np.isin(row_keys, keys)
            self._rows = np.concatenate((row_keys[kept], keys)), np.concatenate((rows[kept], embeddings))

    def remove(self, keys: Keys) -> int:
        """See `VectorIndex.remove`."""
        check_keys(keys)
        with self._writing:
            row_keys, rows = self._rows
            dropped = np.isin(row_keys, keys)
            self._rows = row_keys[~dropped], rows[~dropped]
        return len(np.unique(row_keys[dropped]))

    def search(self, query: Embedding, *, limit: int, allowed: KeyMask | None = None) -> list[tuple[int, float]]:
        """See `VectorIndex.search`."""
        check_query(query, dim=self._dim)
        row_keys, rows = self._rows
        if allowed is not None:
            check_mask(allowed)
            candidates = rows_allowed(row_keys, allowed)
            row_keys, rows = row_keys[candidates], rows[candidates]
        return best_of_each_key(row_keys, rows @ query)[: max(limit, 0)]

    def similarities(self, query: Embedding, keys: Keys) -> list[float | None]:
        """See `VectorIndex.similarities`."""
        check_query(query, dim=self._dim)
        check_keys(keys)
        row_keys, rows = self._rows
        cosines = rows @ query
        best: list[float | None] = []
        for key in keys.tolist():
            of_key = cosines[row_keys == key]
            best.append(round(float(of_key.max()), COSINE_DIGITS) if len(of_key) else None)
        return best

    def keys(self) -> Keys:
        """See `VectorIndex.keys`."""
        return np.unique(self._rows[0])
