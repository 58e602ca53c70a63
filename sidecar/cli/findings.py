"""What `doctor` finds: values only."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a check ended."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        check: What was looked at.
        told: What was seen.
        remedy: What to do about it; empty if good.
    """

    check: str
    verdict: Verdict
    told: str
    remedy: str = ""
