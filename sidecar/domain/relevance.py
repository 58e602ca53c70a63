"""From similarity, words and what was remembered nearby to one relevance in 0 to 1, on one scale for all queries.

A logistic regression: unlike fused ranks its figures can be multiplied by factors and compared with a floor. The
weights are readable numbers, fitted by `tests/bench/fit_relevance.py`, which prints them with their figures.
"""

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_COMMON_AMONG: Final = 100


@dataclass(frozen=True, slots=True)
class RelevanceWeights:
    """Weights of the three models: both signals, words alone, meaning alone.

    Attributes:
        common_words: How much less words count where a hundred memories share them.
        neighbours: Of the words of the memory two before, before, after and two after.
    """

    bias: float
    similarity: float
    words: float
    common_words: float
    words_bias: float
    words_alone: float
    similarity_bias: float
    similarity_alone: float
    neighbours: tuple[float, float, float, float]


FITTED: Final = RelevanceWeights(
    bias=-5.10,
    similarity=9.60,
    words=6.43,
    common_words=6.79,
    words_bias=-3.52,
    words_alone=9.43,
    similarity_bias=-4.80,
    similarity_alone=11.97,
    neighbours=(9.37, 7.32, 5.21, 7.79),
)
"""On 1,620 questions of four sets, each weighing the same; docs/recall-quality.md has what they lead to."""

FLOOR: Final = 0.05
"""What is less relevant than this is not returned. On the development part of our own set it costs 3 in 100 of the
answers among the first five; up to a loss of 5 in 100 no floor keeps more questions without an answer empty."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the other candidates of a query say of one.

    Attributes:
        commonness: See `word_commonness`.
        neighbour_shares: Word shares of the memories two before, before, after and two after; 0 where there is none.
    """

    commonness: float = 0.0
    neighbour_shares: tuple[float, ...] = ()


NOTHING_AROUND: Final = Surroundings()


def word_commonness(word_shares: Iterable[float]) -> float:
    """Return the mean word share of the hundred best, 0 to 1: near 0 if few memories hold the query's words."""
    return math.fsum(heapq.nlargest(_COMMON_AMONG, word_shares)) / _COMMON_AMONG


def relevance(
    similarity: float | None,
    word_share: float | None,
    surroundings: Surroundings = NOTHING_AROUND,
    weights: RelevanceWeights = FITTED,
) -> float:
    """Return how likely a memory bears on the query, 0 to 1.

    Args:
        similarity: Raw cosine; None if the meaning of one of the two is not known.
        word_share: BM25 over the query's best possible, 0 to 1; None if full text did not take part.
    """
    if similarity is None:
        return _logistic(weights.words_bias + weights.words_alone * (word_share or 0.0))
    if word_share is None:
        return _logistic(weights.similarity_bias + weights.similarity_alone * similarity)
    words = max(weights.words - weights.common_words * surroundings.commonness, 0.0)
    # Only what a neighbour has above the many counts: where all hold the query's words, its words tell nothing.
    context = sum(
        weight * max(share - surroundings.commonness, 0.0)
        for weight, share in zip(weights.neighbours, surroundings.neighbour_shares, strict=False)
    )
    own = weights.bias + weights.similarity * similarity + words * word_share
    # A neighbour confirms what is likely by itself; it must not carry along whatever else was said that hour.
    return _logistic(own + _logistic(own) * context)


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
