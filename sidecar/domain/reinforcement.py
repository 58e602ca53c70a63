"""How evidence of use becomes a factor on a memory's score, and how far that factor may go."""

import math
from dataclasses import dataclass
from typing import Final

NEUTRAL: Final = 1.0
WINDOW_DAYS: Final = 90

EXACT_SIMILARITY: Final = 0.9
EXACT_WORD_SHARE: Final = 0.95
"""From this cosine, or this share of the best possible word score, on a memory is what the query names."""

EXACT_LOWEST: Final = 0.8
"""Evidence takes no more than this from an exact match. One challenge takes less, so it shows at once."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The figures of the formula. Others are tried by replaying recorded recalls before they ship.

    Attributes:
        useful_gain: Factor of the logarithm of what counts for a memory.
        misled_loss: Factor of the logarithm of what counts against it.
        lowest: Lower bound of the multiplier; `highest` the upper one.
    """

    useful_gain: float = 0.15
    misled_loss: float = 0.25
    lowest: float = 0.5
    highest: float = 1.4


IN_USE: Final = Constants()
UNREINFORCED: Final = Constants(useful_gain=0.0, misled_loss=0.0)
LOWEST: Final = IN_USE.lowest
HIGHEST: Final = IN_USE.highest

CLEARLY_MORE_RELEVANT: Final = HIGHEST / LOWEST
"""A memory this many times as relevant as another, 2.8, stays ahead of it whatever the evidence on both."""

EXACT_LEAD: Final = HIGHEST / EXACT_LOWEST
"""The same for an exact match: 1.75 times as relevant is enough."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a multiplier rests on: weights summed over sessions, each (session, memory, polarity) once."""

    useful: float = 0.0
    misled: float = 0.0


def multiplier(evidence: Evidence, constants: Constants = IN_USE) -> float:
    """Return the factor for a memory's score, 0.5 to 1.4; exactly 1 without evidence.

    Source:
        Our own design: logarithmic, so that the first confirmations count most and no amount of them dominates.
    """
    value = (
        NEUTRAL
        + constants.useful_gain * math.log1p(max(evidence.useful, 0.0))
        - constants.misled_loss * math.log1p(max(evidence.misled, 0.0))
    )
    return min(max(value, constants.lowest), constants.highest)


def applied(value: float, *, similarity: float | None, word_share: float | None) -> float:
    """Return what of a multiplier applies to a candidate: an exact match is lowered only so far.

    Args:
        similarity: Raw cosine of query and memory; None if not known.
        word_share: Share of the best possible word score; None if words took no part.
    """
    return max(value, EXACT_LOWEST) if is_exact_match(similarity, word_share) else value


def is_exact_match(similarity: float | None, word_share: float | None) -> bool:
    """Tell whether a candidate is what the query names; see `applied`."""
    return (similarity or 0.0) >= EXACT_SIMILARITY or (word_share or 0.0) >= EXACT_WORD_SHARE


def arithmetic(evidence: Evidence) -> str:
    """Return the formula with the figures filled in, for a person."""
    value = multiplier(evidence)
    raw = NEUTRAL + IN_USE.useful_gain * math.log1p(evidence.useful) - IN_USE.misled_loss * math.log1p(evidence.misled)
    bound = "" if abs(raw - value) < 1e-9 else f" = {raw:.3f}, bounded to {LOWEST:g} to {HIGHEST:g}"
    return (
        f"1 + {IN_USE.useful_gain:g} x ln(1 + {evidence.useful:.2f}) - {IN_USE.misled_loss:g} x "
        f"ln(1 + {evidence.misled:.2f}){bound} = {value:.3f}"
    )
