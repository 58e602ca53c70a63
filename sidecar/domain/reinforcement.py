"""How evidence of use becomes a factor on a memory's score."""

import math
from dataclasses import dataclass
from typing import Final

USEFUL_GAIN: Final = 0.15
MISLED_LOSS: Final = 0.25
LOWEST: Final = 0.5
HIGHEST: Final = 1.4
NEUTRAL: Final = 1.0
WINDOW_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a multiplier rests on: weights summed over sessions, each (session, memory, polarity) once."""

    useful: float = 0.0
    misled: float = 0.0


def multiplier(evidence: Evidence) -> float:
    """Return the factor for a memory's score, 0.5 to 1.4; exactly 1 without evidence.

    Source:
        Our own design: logarithmic, so that the first confirmations count most and no amount of them dominates.
    """
    value = (
        NEUTRAL
        + USEFUL_GAIN * math.log1p(max(evidence.useful, 0.0))
        - MISLED_LOSS * math.log1p(max(evidence.misled, 0.0))
    )
    return min(max(value, LOWEST), HIGHEST)
