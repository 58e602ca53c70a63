"""How well verdicts agree with labels: counts, precision, recall, F1, calibration. Pure.

Rates are None where there is nothing to divide by, rather than 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.judgement import Verdict
from sidecar.domain.judging.labelled import Label

_BINS: Final = 10


class Asked(StrEnum):
    """What a verdict tells."""

    USED = "used"
    RELEVANT = "relevant"
    MISLED = "misled"


@dataclass(frozen=True, slots=True)
class Score:
    """How often a yes was right.

    Attributes:
        tp: Yes and rightly so; `fp` yes and wrongly, `fn` no and wrongly, `tn` no and rightly.
    """

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0

    @property
    def support(self) -> int:
        """How many should be a yes."""
        return self.tp + self.fn

    @property
    def precision(self) -> float | None:
        """Share of right ones among the yes."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Share of what should be a yes that is one."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)


@dataclass(frozen=True, slots=True)
class Judged:
    """A label beside the verdict on it; None if there was no verdict, which counts as three times no."""

    label: Label
    verdict: Verdict | None

    def is_expected(self, asked: Asked) -> bool:
        """Whether the label says yes."""
        return {
            Asked.USED: self.label.used,
            Asked.RELEVANT: self.label.relevant,
            Asked.MISLED: self.label.misled,
        }[asked]

    def is_told(self, asked: Asked) -> bool:
        """Whether the verdict says yes."""
        if self.verdict is None:
            return False
        return {
            Asked.USED: self.verdict.is_used,
            Asked.RELEVANT: self.verdict.is_relevant,
            Asked.MISLED: self.verdict.is_misled,
        }[asked]

    def probability(self, asked: Asked) -> float | None:
        """How sure the verdict is of a yes."""
        if self.verdict is None:
            return None
        return {
            Asked.USED: self.verdict.used,
            Asked.RELEVANT: self.verdict.relevant,
            Asked.MISLED: self.verdict.misled,
        }[asked]


def score(judged: Iterable[Judged], asked: Asked) -> Score:
    """Return the score of one question."""
    counts = Counter((entry.is_expected(asked), entry.is_told(asked)) for entry in judged)
    return Score(tp=counts[True, True], fp=counts[False, True], fn=counts[True, False], tn=counts[False, False])


def by_kind(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the entries of each kind, kinds in alphabetical order; those without a kind are left out."""
    kinds = sorted({entry.label.kind for entry in judged} - {""})
    return {kind: [entry for entry in judged if entry.label.kind == kind] for kind in kinds}


def calibration_error(judged: Iterable[Judged], asked: Asked) -> float | None:
    """Return by how much probabilities miss the observed shares, 0 to 1, over ten bins weighted by size; None if empty.

    Source:
        The expected calibration error of Naeini, Cooper and Hauskrecht, AAAI 2015.
    """
    bins: dict[int, list[tuple[float, bool]]] = {}
    for entry in judged:
        probability = entry.probability(asked)
        if probability is not None:
            place = min(int(probability * _BINS), _BINS - 1)
            bins.setdefault(place, []).append((probability, entry.is_expected(asked)))
    total = sum(map(len, bins.values()))
    missed = sum(abs(sum(p for p, _ in entries) - sum(yes for _, yes in entries)) for entries in bins.values())
    return missed / total if total else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
