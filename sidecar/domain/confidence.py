"""How outcomes move a memory's confidence, and when it becomes a golden rule or stops being one. Stores nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.memory import GOLDEN_CONFIDENCE, MemoryType, Provenance, parse_fraction
from sidecar.errors import InvalidInputError

DEFAULT_ADJUSTMENT: Final = 0.1
FAILURE_FACTOR: Final = 1.5
"""A failure weighs more than a success: what misled once may do so again."""

FALL_BACK_BELOW: Final = 0.75
"""Lower than the 0.9 of promotion, so that one failure does not move a rule to and fro."""

PROMOTABLE: Final = frozenset(
    (MemoryType.PREFERENCE, MemoryType.DECISION, MemoryType.PATTERN, MemoryType.CONVENTION, MemoryType.GOTCHA)
)
"""What can be a rule; the other types tell what happened or how things are."""

_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class ConfidenceRules:
    """How outcomes move confidence.

    Attributes:
        failure_factor: How much further a failure moves it than a success, at least 0.
        golden_confidence: From it on a success promotes; 0 to 1.
        fall_back_below: Below it a failure undoes a promotion; 0 to 1, never above `golden_confidence`.

    Raises:
        InvalidInputError: If a figure is outside its bounds.
    """

    failure_factor: float = FAILURE_FACTOR
    golden_confidence: float = GOLDEN_CONFIDENCE
    fall_back_below: float = FALL_BACK_BELOW

    def __post_init__(self) -> None:
        parse_fraction(self.golden_confidence, field_name="golden_confidence")
        if not 0.0 <= self.fall_back_below <= self.golden_confidence:
            expected = f"a number from 0 to `golden_confidence`, {self.golden_confidence:g}"
            raise InvalidInputError("golden_fall_back", self.fall_back_below, expected)


RULES: Final = ConfidenceRules()


class ValidationKind(StrEnum):
    """What a report about a memory says."""

    APPLIED = "applied"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a report may change of a memory.

    Attributes:
        confidence: 0 to 1.
        type_before: What it was before it was promoted; None unless it was.
    """

    type: MemoryType
    confidence: float
    type_before: MemoryType | None = None


@dataclass(frozen=True, slots=True)
class ConfidenceChange:
    """What a report did. Confidences are rounded to 1e-9, and are to be stored like that."""

    old: Standing
    new: Standing

    @property
    def is_promoted(self) -> bool:
        """Whether it became a golden rule by this."""
        return self.new.type is MemoryType.GOLDEN_RULE and self.old.type is not MemoryType.GOLDEN_RULE

    @property
    def is_demoted(self) -> bool:
        """Whether it stopped being a golden rule by this."""
        return self.old.type is MemoryType.GOLDEN_RULE and self.new.type is not MemoryType.GOLDEN_RULE


@dataclass(frozen=True, slots=True)
class ValidationSummary:
    """Counts over all reports about a memory."""

    applied: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.applied + self.succeeded + self.failed

    @property
    def success_rate(self) -> float | None:
        """Share of the outcomes that went well; None without an outcome."""
        outcome_count = self.succeeded + self.failed
        return self.succeeded / outcome_count if outcome_count else None


def settle_confidence(confidence: float) -> float:
    """Return the value that is stored and compared: rounded, so that six times 0.1 on 0.3 is 0.9, within 0 to 1."""
    return min(max(round(confidence, _DIGITS), 0.0), 1.0)


def validate(
    standing: Standing,
    *,
    is_success: bool,
    provenance: Provenance,
    adjustment: float = DEFAULT_ADJUSTMENT,
    rules: ConfidenceRules = RULES,
) -> ConfidenceChange:
    """Return what one outcome does to a memory.

    Args:
        adjustment: How far a success lifts the confidence, 0 to 1; a failure lowers it further, by the rules.
        provenance: What a machine extracted gains confidence but is never promoted by itself.

    Raises:
        InvalidInputError: If the adjustment or the confidence is outside 0 to 1.
    """
    parse_fraction(adjustment, field_name="adjustment")
    parse_fraction(standing.confidence, field_name="confidence")
    step = adjustment if is_success else -rules.failure_factor * adjustment
    old = Standing(standing.type, settle_confidence(standing.confidence), standing.type_before)
    confidence = settle_confidence(old.confidence + step)
    is_due = confidence >= rules.golden_confidence and old.type in PROMOTABLE and provenance is not Provenance.MACHINE
    if is_success and is_due:
        return ConfidenceChange(old, Standing(MemoryType.GOLDEN_RULE, confidence, type_before=old.type))
    is_promoted_rule = old.type is MemoryType.GOLDEN_RULE and old.type_before is not None
    if not is_success and is_promoted_rule and confidence < rules.fall_back_below:
        return ConfidenceChange(old, Standing(old.type_before or old.type, confidence))
    return ConfidenceChange(old, Standing(old.type, confidence, old.type_before))


def summarise(kinds: Iterable[ValidationKind]) -> ValidationSummary:
    """Return the counts over these reports."""
    counts = dict.fromkeys(ValidationKind, 0)
    for kind in kinds:
        counts[kind] += 1
    return ValidationSummary(
        counts[ValidationKind.APPLIED], counts[ValidationKind.SUCCEEDED], counts[ValidationKind.FAILED]
    )
