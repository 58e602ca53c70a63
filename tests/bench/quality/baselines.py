"""Rankers that anyone can rerun: plain BM25, cosine of the same embedder, and the fusion of two rankings."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from sidecar.domain.words import inverse_document_frequency, term_score
from sidecar.ports import Embedding

FUSION_K: Final = 60
"""Cormack, Clarke, Buettcher, SIGIR 2009."""

_WORD: Final = re.compile(r"\w+")


class PlainBm25:
    """BM25 (k1 1.2, b 0.75) over lower-case words: no stems, no stop words, no knowledge of identifiers."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._documents = {name: Counter(_WORD.findall(text.lower())) for name, text in texts.items()}
        self._holding = Counter(word for words in self._documents.values() for word in words)
        self._lengths = {name: words.total() for name, words in self._documents.items()}
        self._mean_length = sum(self._lengths.values()) / max(len(self._lengths), 1)

    def rank(self, query: str, allowed: Sequence[str]) -> list[str]:
        """Return the names of those that share a word with the query, best first."""
        words = [word for word in dict.fromkeys(_WORD.findall(query.lower())) if word in self._holding]
        idf = {word: inverse_document_frequency(len(self._documents), self._holding[word]) for word in words}
        scores: dict[str, float] = {}
        for name in allowed:
            held = self._documents[name]
            score = sum(
                term_score(held[word], idf[word], length=self._lengths[name], mean_length=self._mean_length)
                for word in words
                if word in held
            )
            if score > 0:
                scores[name] = score
        return sorted(scores, key=lambda name: -scores[name])


class ExactCosine:
    """The best cosine of a text's windows with the query."""

    def __init__(self, vectors: Mapping[str, Embedding]) -> None:
        self._names = list(vectors)
        self._rows: npt.NDArray[np.float32] = np.concatenate([vectors[name] for name in self._names])
        self._ends = np.cumsum([len(vectors[name]) for name in self._names])

    def rank(self, query: Embedding, allowed: Sequence[str]) -> list[str]:
        """Return all names that are allowed, best first."""
        cosines = self._rows @ query
        best = np.maximum.reduceat(cosines, np.concatenate(([0], self._ends[:-1])))
        wanted = set(allowed)
        return [self._names[place] for place in np.argsort(-best, kind="stable") if self._names[place] in wanted]


def fused(rankings: Sequence[Sequence[str]], *, k: int = FUSION_K) -> list[str]:
    """Return the reciprocal rank fusion of rankings; equal scores in the order of first appearance."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking, 1):
            scores[name] = scores.get(name, 0.0) + 1.0 / (k + place)
    return sorted(scores, key=lambda name: -scores[name])
