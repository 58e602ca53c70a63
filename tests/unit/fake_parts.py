"""Parts for use case tests: an embedder and a clock that do as they are told, over the hashing embedder."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from sidecar.adapters.brute_force import BruteForceVectorIndex
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.redaction import RedactedText, Redaction
from sidecar.errors import EmbedderUnavailableError, EmbeddingFailedError
from sidecar.ports import Embedder, Embedding, MemoryStore, VectorIndex
from sidecar.testing.hashing_embedder import HashingEmbedder
from sidecar.use_cases.index_upkeep import IndexSnapshots
from sidecar.use_cases.semantic_index import SemanticIndex

START = datetime(2026, 1, 1, tzinfo=UTC)


class SteppingClock:
    """Goes on by a second at each look, or as told."""

    def __init__(self) -> None:
        self._now = START
        self._count = 0

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def advance(self, **delta: float) -> None:
        self._now += timedelta(**delta)

    def random_bytes(self, count: int) -> bytes:
        self._count += 1
        return self._count.to_bytes(count, "big")


class PlainRedactor:
    """Takes out one word."""

    def redact(self, text: str) -> RedactedText:
        count = text.count("hunter2")
        findings = (Redaction("word", count),) if count else ()
        return RedactedText(text.replace("hunter2", "[redacted:word]"), findings)


class MoodyEmbedder:
    """The hashing embedder, which fails whenever it is `down`, and on texts that hold one of these words.

    `poison` and `refused` fail as a library or an adapter does, `killer` as an outage does, and what has `sick` in it
    gets a vector that no index takes.
    """

    def __init__(self) -> None:
        self._inner = HashingEmbedder(dim=64)
        self.is_down = False
        self.embedded: list[str] = []

    @property
    def fingerprint(self) -> ModelFingerprint:
        return self._inner.fingerprint

    def embed_query(self, text: str) -> Embedding:
        return self._embed([text])[0][0]  # type: ignore[no-any-return]

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        embeddings = self._embed(texts)
        self.embedded += texts
        return embeddings

    def close(self) -> None:
        self.is_down = True

    def _embed(self, texts: Sequence[str]) -> list[Embedding]:
        if self.is_down or any("killer" in text for text in texts):
            raise EmbedderUnavailableError("it was told to be down")
        if any("poison" in text for text in texts):
            raise ValueError("this text makes the model fail")
        if any("refused" in text for text in texts):
            raise EmbeddingFailedError("it was told to refuse it")
        embeddings = self._inner.embed_documents(texts)
        return [rows * np.float32("sick" not in text) for text, rows in zip(texts, embeddings, strict=True)]


def semantic_index(
    store: MemoryStore,
    embedder: Embedder | None,
    *,
    snapshots: IndexSnapshots | None = None,
    new_index: Callable[[int], VectorIndex] = BruteForceVectorIndex,
) -> SemanticIndex:
    """An index that is not loaded yet."""
    return SemanticIndex(
        store=store,
        load_embedder=(lambda: embedder) if embedder is not None else None,
        new_index=new_index,
        snapshots=snapshots,
        cache_size=8,
    )
