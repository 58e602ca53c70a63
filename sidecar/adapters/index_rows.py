"""Checks on what goes into a vector index and the one ordering of what comes out. Knows no index library.

Index libraries take a wrong shape, a NaN or a negative id without a word and answer nonsense later, so every index
checks its input here first. Nothing here is an `assert`: `python -O` must not switch the checks off.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from sidecar.errors import IndexRowError
from sidecar.ports import Embedding, KeyMask, Keys

NORM_TOLERANCE: Final = 1e-3

# float32 sums differ in the seventh digit with the order of addition, so equal vectors could get unequal cosines.
COSINE_DIGITS: Final = 6


def check_rows(keys: Keys, embeddings: Embedding, *, dim: int) -> None:
    """Refuse rows that an index must not take.

    Args:
        keys: Meant to be `(n,)` int64, each 0 or above; repeats are allowed.
        embeddings: Meant to be `(n, dim)` float32, finite, rows of norm 1.
        dim: Length of every embedding of the index.

    Raises:
        IndexRowError: Says which of these does not hold.
    """
    check_keys(keys)
    _check_array(embeddings, np.float32, what="embeddings")
    if embeddings.shape != (len(keys), dim):
        raise IndexRowError(f"the embeddings have shape {embeddings.shape}; expected {(len(keys), dim)}")
    _check_unit_length(embeddings)


def check_keys(keys: Keys) -> None:
    """Refuse keys that are not a `(n,)` int64 array of numbers from 0 up.

    Raises:
        IndexRowError: Says what is wrong.
    """
    _check_array(keys, np.int64, what="keys")
    if keys.ndim != 1:
        raise IndexRowError(f"the keys have shape {keys.shape}; expected one dimension")
    if keys.size and int(keys.min()) < 0:
        raise IndexRowError(f"a key is {int(keys.min())}; expected 0 or above")


def check_query(query: Embedding, *, dim: int) -> None:
    """Refuse a query that is not a finite `(dim,)` float32 array of norm 1.

    Raises:
        IndexRowError: Says what is wrong.
    """
    _check_array(query, np.float32, what="query")
    if query.shape != (dim,):
        raise IndexRowError(f"the query has shape {query.shape}; expected {(dim,)}")
    _check_unit_length(query[np.newaxis, :])


def check_mask(allowed: KeyMask) -> None:
    """Refuse a filter that is not a one-dimensional array of booleans.

    Raises:
        IndexRowError: Says what is wrong.
    """
    _check_array(allowed, np.bool_, what="filter")
    if allowed.ndim != 1:
        raise IndexRowError(f"the filter has shape {allowed.shape}; expected one dimension")


def rows_allowed(row_keys: Keys, allowed: KeyMask) -> npt.NDArray[np.bool_]:
    """Return for each row whether its key may be returned; keys beyond the mask may not."""
    if not len(allowed):
        return np.zeros(len(row_keys), dtype=np.bool_)
    return allowed.take(row_keys, mode="clip") & (row_keys < len(allowed))


def best_of_each_key(row_keys: Keys, cosines: npt.NDArray[np.float32]) -> list[tuple[int, float]]:
    """Return (key, cosine) pairs, best first, each key once with its best row; equal cosines are ordered by key.

    Args:
        row_keys: `(n,)` key of each row.
        cosines: `(n,)` cosine of each row.
    """
    rounded = np.round(cosines.astype(np.float64), COSINE_DIGITS)
    order = np.lexsort((row_keys, -rounded))
    _, first_seen = np.unique(row_keys[order], return_index=True)
    best = order[np.sort(first_seen)]
    return list(zip(row_keys[best].tolist(), rounded[best].tolist(), strict=True))


def _check_unit_length(embeddings: Embedding) -> None:
    norms = np.sqrt(np.einsum("ij,ij->i", embeddings, embeddings, dtype=np.float64))
    # A NaN compares false to everything, so the test asks for what is good.
    good = np.abs(norms - 1.0) <= NORM_TOLERANCE
    if not good.all():
        row = int(np.argmin(good))
        raise IndexRowError(f"row {row} has norm {norms[row]:.6g}; expected 1 within {NORM_TOLERANCE:g}")


def _check_array(value: object, dtype: type[np.generic], *, what: str) -> None:
    if not isinstance(value, np.ndarray):
        raise IndexRowError(f"the {what} came as {type(value).__name__}; expected an array of {dtype.__name__}")
    if value.dtype != dtype:
        raise IndexRowError(f"the {what} came as {value.dtype}; expected {dtype.__name__}")
