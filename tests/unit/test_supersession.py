"""Supersession: every condition is needed, and each one that fails is named."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.confidence import ValidationSummary
from sidecar.domain.memory import MemoryState
from sidecar.domain.supersession import (
    KeptReason,
    OlderMemory,
    SupersessionRules,
    TrackRecord,
    check_supersedes,
    kept_reason,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NEWER = TrackRecord("new", NOW, 0.5, is_golden_rule=False, summary=ValidationSummary(succeeded=2))
OLD_RECORD = TrackRecord(
    "old", NOW - timedelta(days=1), 0.3, is_golden_rule=False, summary=ValidationSummary(succeeded=5, failed=1)
)
OLDER = OlderMemory(OLD_RECORD, 0.7)


def older(similarity: float = 0.7, **fields: object) -> OlderMemory:
    return OlderMemory(replace(OLD_RECORD, **fields), similarity)  # type: ignore[arg-type]


def test_better_memory_supersedes() -> None:
    """At the very edge of every condition the older one gives way."""
    check = check_supersedes(NEWER, [OLDER], is_forced=False)
    assert (check.superseded, check.kept) == ((OLDER,), ())


@pytest.mark.parametrize(
    ("newer", "candidate", "reason"),
    [
        (replace(NEWER, summary=ValidationSummary(succeeded=1)), OLDER, KeptReason.TOO_FEW_SUCCESSES),
        (NEWER, older(memory_id="new"), KeptReason.SAME_MEMORY),
        (NEWER, older(state=MemoryState.SUPERSEDED), KeptReason.NOT_ACTIVE),
        (replace(NEWER, state=MemoryState.FORGOTTEN), OLDER, KeptReason.NOT_ACTIVE),
        (NEWER, older(0.6999), KeptReason.OTHER_TOPIC),
        (NEWER, older(float("nan")), KeptReason.OTHER_TOPIC),
        (NEWER, older(created_at=NOW), KeptReason.NOT_OLDER),
        (NEWER, older(confidence=0.5), KeptReason.NOT_LESS_CONFIDENT),
        (NEWER, older(confidence=0.5 - 1e-12), KeptReason.NOT_LESS_CONFIDENT),
        (NEWER, older(summary=ValidationSummary(succeeded=9)), KeptReason.NO_FAILURE),
        (replace(NEWER, summary=ValidationSummary(0, 2, 1)), OLDER, KeptReason.NOT_MORE_FAILURES),
        (NEWER, older(is_golden_rule=True), KeptReason.GOLDEN_RULE),
    ],
)
def test_each_condition_is_needed(newer: TrackRecord, candidate: OlderMemory, reason: KeptReason) -> None:
    """One that is not met keeps the older memory, and is the reason given."""
    assert kept_reason(newer, candidate, is_forced=False) is reason
    assert check_supersedes(newer, [candidate], is_forced=False).kept == ((candidate.record.memory_id, reason),)


def test_figures_are_the_rules() -> None:
    """As settings name them."""
    strict = SupersessionRules(similarity=0.95, successes=3, failures=2)
    proven = replace(NEWER, summary=ValidationSummary(succeeded=3))
    twice_failed = ValidationSummary(succeeded=5, failed=2)
    reasons = [
        kept_reason(newer, candidate, is_forced=False, rules=strict)
        for newer, candidate in (
            (NEWER, older(0.99, summary=twice_failed)),
            (proven, older(0.94, summary=twice_failed)),
            (proven, older(0.99)),
            (proven, older(0.99, summary=twice_failed)),
        )
    ]
    assert reasons == [KeptReason.TOO_FEW_SUCCESSES, KeptReason.OTHER_TOPIC, KeptReason.NO_FAILURE, None]


def test_force_replaces_golden_rules_and_nothing_else() -> None:
    """Force is about protection, not about evidence."""
    assert kept_reason(NEWER, older(is_golden_rule=True), is_forced=True) is None
    assert kept_reason(NEWER, older(0.1), is_forced=True) is KeptReason.OTHER_TOPIC


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1), st.integers(0, 3)), max_size=20))
def test_every_candidate_is_answered_for(rows: list[tuple[float, float, int]]) -> None:
    """Each is either superseded, the most similar first, or kept with a reason."""
    candidates = [
        older(similarity, memory_id=f"m{n}", confidence=confidence, summary=ValidationSummary(failed=failed))
        for n, (similarity, confidence, failed) in enumerate(rows)
    ]
    check = check_supersedes(NEWER, candidates, is_forced=False)
    ids = [one.record.memory_id for one in check.superseded] + [memory_id for memory_id, _ in check.kept]
    assert sorted(ids) == sorted(one.record.memory_id for one in candidates)
    assert [one.similarity for one in check.superseded] == sorted(
        (one.similarity for one in check.superseded), reverse=True
    )
    for one in check.superseded:
        assert one.similarity >= 0.7
        assert one.record.confidence < NEWER.confidence
        assert one.record.summary.failed >= 1
