"""A tiny deterministic embedder without a model: texts that share words or word parts are near. For tests only."""

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from sidecar.adapters.embedders.windows import window_spans
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.text import normalise
from sidecar.ports import Embedding

_WORD: Final = re.compile(r"\w+")
_WINDOW_WORDS: Final = 256
_GRAM: Final = 3
_GRAM_WEIGHT: Final = 0.3
_EVERY_TEXT_WEIGHT: Final = 0.05
_SIGN_BIT: Final = 31


class HashingEmbedder:
    """Adds up hashed words and their character trigrams; see `Embedder`. Real arithmetic, no meaning."""

    def __init__(self, dim: int = 64, *, name: str = "hashing") -> None:
        """Make one; those of other names or dimensions have other fingerprints and other vectors."""
        self._dim = dim
        self._name = name

    @property
    def fingerprint(self) -> ModelFingerprint:
        """See `Embedder.fingerprint`."""
        return ModelFingerprint(
            model=self._name,
            weights="",
            dim=self._dim,
            pooling="sum",
            normalised=True,
            max_tokens=_WINDOW_WORDS,
            precision="float32",
        )

    def embed_query(self, text: str) -> Embedding:
        """See `Embedder.embed_query`."""
        first: Embedding = self._embed(text)[0]
        return first

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """See `Embedder.embed_documents`."""
        return [self._embed(text) for text in texts]

    def close(self) -> None:
        """See `Embedder.close`."""

    def _embed(self, text: str) -> Embedding:
        words = _WORD.findall(normalise(text).lower())
        spans = window_spans(range(len(words)), window_tokens=_WINDOW_WORDS)
        return np.stack([self._embed_words(words[start:end]) for start, end in spans])

    def _embed_words(self, words: Sequence[str]) -> Embedding:
        row = np.zeros(self._dim, np.float64)
        # One feature that every text has, so that a text without words has a direction too.
        features = [("", _EVERY_TEXT_WEIGHT), *(feature for word in words for feature in _features(word))]
        for feature, weight in features:
            code = zlib.crc32(f"{self._name}\x1f{feature}".encode())
            row[code % self._dim] += weight if code >> _SIGN_BIT else -weight
        length = float(np.linalg.norm(row))
        if not length:
            row[0] = length = 1.0
        return (row / length).astype(np.float32)


def _features(word: str) -> Iterator[tuple[str, float]]:
    yield word, 1.0
    padded = f"<{word}>"
    for start in range(len(padded) - _GRAM + 1):
        yield padded[start : start + _GRAM], _GRAM_WEIGHT
