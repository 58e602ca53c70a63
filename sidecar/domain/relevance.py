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
    bias=-4.62,
    similarity=7.39,
    words=5.66,
    words_bias=-1.71,
    words_alone=6.60,
    similarity_bias=-4.37,
    similarity_alone=9.93,
)
"""On the 759 questions of five LoCoMo conversations: 0.681 of the evidence among the first ten on conversations left
out of the fit, words alone 0.625, meaning alone 0.518. Relevance 0.5 is even odds among a query's candidates."""

FLOOR: Final = 0.15
"""What is less relevant than this is not returned: it keeps 0.96 of the right candidates there and 0.6 of the wrong."""


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
