"""Seams of meaning: the index of vectors, and the embedder that makes them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sidecar.domain.model import ModelFingerprint

Embedding = npt.NDArray[np.float32]
Keys = npt.NDArray[np.int64]
KeyMask = npt.NDArray[np.bool_]
"""`mask[key]` says whether that key may be returned; keys beyond its length may not."""


class VectorIndex(Protocol):
    """Finds keys of near embeddings. A cache: it can be rebuilt from the memory store at any time.

    Safe to call from several threads at once.
    """

    @property
    def dim(self) -> int:
        """Length of every embedding."""
        ...

    def __len__(self) -> int:
        """Return how many keys it holds."""
        ...

    def upsert(self, keys: Keys, embeddings: Embedding) -> None:
        """Store `(n, dim)` rows under `(n,)` keys; a key that is there already is replaced.

        A text in several windows has several rows under one key: repeat the key. Replacing drops all of its old rows.

        Raises:
            IndexRowError: If shape, dtype, finiteness, norm (1 within 1e-3) or a key (0 or above) is wrong; nothing
                is stored then.
        """
        ...

    def remove(self, keys: Keys) -> int:
        """Drop these keys and return how many of them were there."""
        ...

    def search(self, query: Embedding, *, limit: int, allowed: KeyMask | None = None) -> list[tuple[int, float]]:
        """Return up to `limit` (key, cosine) pairs, best first, each key once with its best row.

        MUST be empty for an empty index. Equal cosines are ordered by key.

        Raises:
            IndexRowError: If the query is not a finite `(dim,)` float32 array of norm 1.
        """
        ...

    def similarities(self, query: Embedding, keys: Keys) -> list[float | None]:
        """Return the cosine of each key with the query, None for keys it does not hold."""
        ...

    def keys(self) -> Keys:
        """Return all keys in ascending order, each once."""
        ...


class Embedder(Protocol):
    """Turns texts into embeddings. Loaded when constructed; safe to call from several threads at once."""

    @property
    def fingerprint(self) -> ModelFingerprint:
        """What makes its vectors comparable with others."""
        ...

    def embed_query(self, text: str) -> Embedding:
        """Return the `(dim,)` embedding of a query; a longer one is cut at the model's limit.

        Raises:
            EmbedderUnavailableError: If the model cannot run now, such as a child process that died.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one `(windows, dim)` array for each text, at least one row each.

        A text over the model's limit is cut into overlapping windows, at most 64; one bad text fails the whole call.

        Raises:
            EmbedderUnavailableError: See `embed_query`.
        """
        ...

    def close(self) -> None:
        """Free what it holds, such as a child process. It MUST NOT be called again afterwards."""
        ...
