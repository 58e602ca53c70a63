"""From signals to a verdict: a logistic regression for each question, and the curve that makes it a probability. Pure.

All numbers are readable and come from a file that the fit script writes; see docs/judge.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sidecar.domain.judgement import Verdict

_MAX_LOGIT: Final = 30.0


@dataclass(frozen=True, slots=True)
class SignalWeight:
    """What one signal adds: `weight * (value - mean) / scale`. Weights of one question can be compared."""

    weight: float
    mean: float
    scale: float


@dataclass(frozen=True, slots=True)
class Question:
    """The model of one question.

    Attributes:
        curve: (raw, calibrated) probabilities, both rising from 0 to 1; between them the curve is straight.
    """

    bias: float
    weights: Mapping[str, SignalWeight]
    curve: tuple[tuple[float, float], ...]

    def probability(self, signals: Mapping[str, float]) -> float:
        """Return the calibrated probability, 0 to 1. A signal it has no weight for adds nothing."""
        return calibrated(logistic(self.logit(signals)), self.curve)

    def logit(self, signals: Mapping[str, float]) -> float:
        """Return the log-odds before calibration."""
        return self.bias + sum(
            entry.weight * (signals[name] - entry.mean) / entry.scale for name, entry in self.weights.items()
        )


@dataclass(frozen=True, slots=True)
class JudgeModel:
    """The three questions of a verdict.

    Attributes:
        version: Changes with every fit; part of the judge's name.
    """

    version: str
    used: Question
    relevant: Question
    misled: Question

    def verdict(self, memory_id: str, signals: Mapping[str, float]) -> Verdict:
        """Return the verdict on a memory. What misled was not used, and either was relevant."""
        misled = self.misled.probability(signals)
        used = min(self.used.probability(signals), 1.0 - misled)
        relevant = max(self.relevant.probability(signals), used, misled)
        return Verdict(memory_id=memory_id, used=used, relevant=relevant, misled=misled)


def logistic(logit: float) -> float:
    """Return the probability of log-odds, also of huge ones."""
    bounded = max(-_MAX_LOGIT, min(_MAX_LOGIT, logit))
    return 1.0 / (1.0 + math.exp(-bounded))


def calibrated(raw: float, curve: Sequence[tuple[float, float]]) -> float:
    """Return where a raw probability lies on a curve from (0, 0) to (1, 1)."""
    for (left, low), (right, high) in pairwise(curve):
        if raw <= right:
            return low + (high - low) * (raw - left) / (right - left) if right > left else high
    return curve[-1][1] if curve else raw
