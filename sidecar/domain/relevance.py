"""From similarity and words to one relevance in 0 to 1, on one scale for all queries.

A logistic regression: unlike fused ranks its figures can be multiplied by factors and compared with a floor. The
weights are readable numbers, fitted by `tests/bench/fit_relevance.py`, which prints them with their figures.
"""

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RelevanceWeights:
    """Weights of the three models: both signals, words alone, meaning alone."""

    bias: float
    similarity: float
    words: float
    words_bias: float
    words_alone: float
    similarity_bias: float
    similarity_alone: float


FITTED: Final = RelevanceWeights(
    bias=-4.0,
    similarity=6.0,
    words=6.0,
    words_bias=-3.0,
    words_alone=7.0,
    similarity_bias=-3.5,
    similarity_alone=8.0,
)


def relevance(similarity: float | None, word_share: float | None, weights: RelevanceWeights = FITTED) -> float:
    """Return how likely a memory bears on the query, 0 to 1.

    Args:
        similarity: Raw cosine; None if the meaning of one of the two is not known.
        word_share: BM25 over the query's best possible, 0 to 1; None if full text did not take part.
    """
    if similarity is None:
        return _logistic(weights.words_bias + weights.words_alone * (word_share or 0.0))
    if word_share is None:
        return _logistic(weights.similarity_bias + weights.similarity_alone * similarity)
    return _logistic(weights.bias + weights.similarity * similarity + weights.words * word_share)


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
