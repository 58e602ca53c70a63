"""Scores: relevance first, factors bounded, order deterministic."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import ranking
from sidecar.domain.memory import Provenance
from sidecar.domain.reinforcement import HIGHEST, LOWEST, Evidence, multiplier
from sidecar.domain.relevance import relevance

NOW = datetime(2026, 1, 1, tzinfo=UTC)
fractions = st.floats(0, 1)
cosines = st.floats(-1, 1)


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_multipliers_are_bounded(useful: float, misled: float) -> None:
    """No amount of evidence lifts or sinks a memory without end."""
    assert LOWEST <= multiplier(Evidence(useful, misled)) <= HIGHEST


def test_no_evidence_changes_nothing() -> None:
    """Shown but unused has no effect."""
    assert multiplier(Evidence()) == 1.0


@pytest.mark.parametrize(("useful", "misled", "expected"), [(1, 0, 1.104), (0, 1, 0.827), (10, 0, 1.36), (1, 1, 0.931)])
def test_multiplier_is_the_formula(useful: float, misled: float, expected: float) -> None:
    """1 + 0.15 ln(1+u) - 0.25 ln(1+m)."""
    assert multiplier(Evidence(useful, misled)) == pytest.approx(expected, abs=5e-4)


@given(cosines, cosines, fractions)
def test_relevance_rises_with_similarity(one: float, other: float, words: float) -> None:
    """Of two memories with the same words the nearer one is more relevant."""
    low, high = sorted((one, other))
    assert 0 <= relevance(low, words) <= relevance(high, words) <= 1


@given(fractions, fractions, cosines)
def test_relevance_rises_with_words(one: float, other: float, similarity: float) -> None:
    """Of two equally near memories the one with more of the words is more relevant."""
    low, high = sorted((one, other))
    assert relevance(similarity, low) <= relevance(similarity, high)
    assert relevance(None, low) <= relevance(None, high)


@given(st.integers(-400_000, 400_000))
def test_age_never_explodes(days: int) -> None:
    """A clock that is wrong, either way, keeps the factor within its bounds."""
    factor = ranking.age_factor(NOW - timedelta(days=days), NOW, half_life_days=180)
    assert ranking.OLDEST_FACTOR <= factor <= 1.0
    if days <= 0:
        assert factor == 1.0


def test_machine_extracted_memories_rank_a_little_lower() -> None:
    """Nobody vouched for them."""
    assert ranking.provenance_factor(Provenance.MACHINE, machine_weight=0.9) == 0.9
    assert ranking.provenance_factor(Provenance.USER, machine_weight=0.9) == 1.0
