"""Confidence: decimal-safe steps, promotion and fall-back, counts over all events."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.confidence import (
    PROMOTABLE,
    ConfidenceChange,
    ConfidenceRules,
    Standing,
    ValidationKind,
    ValidationSummary,
    summarise,
    validate,
)
from sidecar.domain.memory import MemoryType, Provenance
from sidecar.errors import InvalidInputError

types = st.sampled_from(list(MemoryType))
thousandths = st.integers(0, 1000).map(lambda n: n / 1000)


def report(standing: Standing, *successes: bool, adjustment: float = 0.1) -> ConfidenceChange:
    """Return the last change of a row of outcomes."""
    change = ConfidenceChange(standing, standing)
    for is_success in successes:
        change = validate(change.new, is_success=is_success, provenance=Provenance.AGENT, adjustment=adjustment)
    return change


@pytest.mark.parametrize("kind", sorted(PROMOTABLE))
def test_six_successes_from_the_default_promote(kind: MemoryType) -> None:
    """0.3 and six times 0.1 are 0.9, though not in binary; the sixth promotes, and the old type is kept."""
    fifth = report(Standing(kind, 0.3), *[True] * 5)
    assert (fifth.new, fifth.is_promoted) == (Standing(kind, 0.8), False)
    sixth = report(fifth.new, True)
    assert (sixth.old.confidence, sixth.new.confidence) == (0.8, 0.9)
    assert (sixth.new.type, sixth.new.type_before) == (MemoryType.GOLDEN_RULE, kind)
    assert (sixth.is_promoted, sixth.is_demoted) == (True, False)


def test_five_types_can_be_promoted() -> None:
    """What happened, or how things are, is no rule however often it is confirmed."""
    assert sorted(PROMOTABLE) == ["convention", "decision", "gotcha", "pattern", "preference"]
    for kind in set(MemoryType) - PROMOTABLE:
        change = report(Standing(kind, 0.3), *[True] * 8)
        assert (change.new.type, change.new.confidence) == (kind, 1.0)


def test_rule_falls_back_below_three_quarters() -> None:
    """0.9, 0.75: still a rule; 0.6: its old type again. A later success starts over."""
    rule = report(Standing(MemoryType.DECISION, 0.8), True).new
    once = report(rule, False)
    assert (once.new, once.is_demoted) == (Standing(MemoryType.GOLDEN_RULE, 0.75, MemoryType.DECISION), False)
    twice = report(once.new, False)
    assert (twice.new, twice.is_demoted) == (Standing(MemoryType.DECISION, 0.6), True)
    assert report(twice.new, *[True] * 3).is_promoted


def test_rule_that_was_written_as_one_stays_one() -> None:
    """Without an old type there is nothing to fall back to."""
    change = report(Standing(MemoryType.GOLDEN_RULE, 0.3), False)
    assert (change.new, change.is_demoted) == (Standing(MemoryType.GOLDEN_RULE, 0.15), False)


def test_machine_extracted_memories_are_not_promoted_by_themselves() -> None:
    """A text from a web page must not become a rule by being acted upon."""
    change = validate(Standing(MemoryType.DECISION, 0.85), is_success=True, provenance=Provenance.MACHINE)
    assert (change.new.type, change.new.confidence) == (MemoryType.DECISION, 0.95)


@given(types, thousandths, thousandths, st.lists(st.booleans(), max_size=30))
def test_confidence_is_the_decimal_sum_within_bounds(
    kind: MemoryType, confidence: float, adjustment: float, successes: list[bool]
) -> None:
    """However many steps, the outcome is what one would compute by hand, and rules follow from it alone."""
    expected = Decimal(str(confidence))
    for is_success in successes:
        step = Decimal(str(adjustment)) * (1 if is_success else Decimal("-1.5"))
        expected = min(max(expected + step, Decimal(0)), Decimal(1))
    change = report(Standing(kind, confidence), *successes, adjustment=adjustment)
    assert change.new.confidence == float(expected)
    if change.new.type_before is not None:
        assert change.new.type is MemoryType.GOLDEN_RULE
        assert change.new.type_before in PROMOTABLE
        assert expected >= Decimal("0.75")
    assert not (change.is_promoted and change.is_demoted)


@pytest.mark.parametrize("adjustment", [-0.1, 1.1, float("nan"), float("inf")])
def test_adjustment_outside_is_refused(adjustment: float) -> None:
    """The field is named, and nothing is bent into shape."""
    with pytest.raises(InvalidInputError) as caught:
        report(Standing(MemoryType.FACT, 0.5), True, adjustment=adjustment)
    assert caught.value.metadata["field"] == "adjustment"


@given(st.lists(st.sampled_from(list(ValidationKind))))
def test_summary_counts_everything(kinds: list[ValidationKind]) -> None:
    """The total is the sum, and the rate leaves out what has no outcome."""
    summary = summarise(kinds)
    assert summary.total == len(kinds)
    outcomes = [kind for kind in kinds if kind is not ValidationKind.APPLIED]
    expected = outcomes.count(ValidationKind.SUCCEEDED) / len(outcomes) if outcomes else None
    assert summary.success_rate == expected


def test_no_outcome_is_no_rate() -> None:
    """Never tried is not the same as never worked."""
    assert ValidationSummary(applied=3).success_rate is None
    assert ValidationSummary(failed=1).success_rate == 0.0


def test_figures_are_the_rules() -> None:
    """As settings name them: how much a failure weighs, what makes a golden rule and what unmakes it."""
    rules = ConfidenceRules(failure_factor=3.0, golden_confidence=0.5, fall_back_below=0.25)

    def move(standing: Standing, *, is_success: bool) -> Standing:
        return validate(standing, is_success=is_success, provenance=Provenance.AGENT, rules=rules).new

    rule = move(Standing(MemoryType.DECISION, 0.4), is_success=True)
    assert rule == Standing(MemoryType.GOLDEN_RULE, 0.5, MemoryType.DECISION)
    weaker = Standing(MemoryType.GOLDEN_RULE, 0.55, MemoryType.DECISION)
    assert move(weaker, is_success=False) == Standing(MemoryType.GOLDEN_RULE, 0.25, MemoryType.DECISION)
    assert move(rule, is_success=False) == Standing(MemoryType.DECISION, 0.2)


@pytest.mark.parametrize(("golden", "fall_back"), [(1.1, 0.5), (0.5, 0.6), (0.5, -0.1), (float("nan"), 0.5)])
def test_rules_that_would_flip_are_refused(golden: float, fall_back: float) -> None:
    """A rule that falls back above where it is promoted would go to and fro with each report."""
    with pytest.raises(InvalidInputError, match="golden_"):
        ConfidenceRules(golden_confidence=golden, fall_back_below=fall_back)
