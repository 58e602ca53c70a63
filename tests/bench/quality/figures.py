"""Figures of a ranking against what is right, and how sure they are. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

CUT: Final = 10
_ROUNDS: Final = 2000
_SEED: Final = 7


@dataclass(frozen=True)
class Interval:
    """A mean and the bounds within which it lies 95 times in 100, by drawing the questions again."""

    mean: float
    low: float
    high: float


def question_figures(ranked: Sequence[str], relevant: Mapping[str, int]) -> dict[str, float]:
    """Return the figures of one question, each 0 to 1.

    Args:
        ranked: Names, best first, each once.
        relevant: At least one; gains of nDCG are the grades.
    """
    found: dict[str, float] = {}
    for cut in (5, CUT):
        hits = sum(name in relevant for name in ranked[:cut])
        found[f"any@{cut}"] = float(hits > 0)
        found[f"R@{cut}"] = hits / len(relevant)
        found[f"all@{cut}"] = float(hits == len(relevant))
    places = [place for place, name in enumerate(ranked[:CUT], 1) if name in relevant]
    found["MRR@10"] = 1.0 / places[0] if places else 0.0
    found["nDCG@10"] = _discounted([relevant.get(name, 0) for name in ranked[:CUT]]) / _discounted(
        sorted(relevant.values(), reverse=True)[:CUT]
    )
    return found


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of a figure over questions with its bootstrap interval; the draws are the same every time."""
    array = np.asarray(values, np.float64)
    draws = np.random.default_rng(_SEED).integers(0, len(array), (_ROUNDS, len(array)))
    low, high = np.quantile(array[draws].mean(axis=1), (0.025, 0.975))
    return Interval(float(array.mean()), float(low), float(high))


def difference(values: Sequence[float], others: Sequence[float]) -> Interval:
    """Return by how much a figure is above another on the same questions."""
    return interval([value - other for value, other in zip(values, others, strict=True)])
