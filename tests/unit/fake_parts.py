"""Parts for use case tests: an embedder and a clock that do as they are told, over the hashing embedder."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sidecar.adapters.brute_force import BruteForceVectorIndex
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.redaction import RedactedText, Redaction
from sidecar.errors import EmbedderUnavailableError
from sidecar.ports import Embedder, Embedding, MemoryStore
from sidecar.testing.hashing_embedder import HashingEmbedder
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
    """The hashing embedder, which fails on texts with `poison` and whenever it is `down`."""

    def __init__(self) -> None:
        self._inner = HashingEmbedder(dim=64)
        self.is_down = False
        self.embedded: list[str] = []

    @property
    def fingerprint(self) -> ModelFingerprint:
        return self._inner.fingerprint

    def embed_query(self, text: str) -> Embedding:
        self._check()
        return self._inner.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        self._check()
        for text in texts:
            if "poison" in text:
                raise ValueError("this text makes the model fail")
        self.embedded += texts
        return self._inner.embed_documents(texts)

    def close(self) -> None:
        self.is_down = True

    def _check(self) -> None:
        if self.is_down:
            raise EmbedderUnavailableError("it was told to be down")


def semantic_index(store: MemoryStore, embedder: Embedder | None) -> SemanticIndex:
    """An index that is not loaded yet."""
    return SemanticIndex(
        store=store,
        load_embedder=(lambda: embedder) if embedder is not None else None,
        new_index=BruteForceVectorIndex,
        snapshots=None,
        cache_size=8,
    )
