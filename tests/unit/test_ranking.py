"""Scores: relevance first, factors bounded, order deterministic."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import ranking
from sidecar.domain.memory import Provenance
from sidecar.domain.reinforcement import (
    CLEARLY_MORE_RELEVANT,
    EXACT_LEAD,
    EXACT_LOWEST,
    EXACT_SIMILARITY,
    EXACT_WORD_SHARE,
    HIGHEST,
    LOWEST,
    Evidence,
    applied,
    arithmetic,
    multiplier,
)
from sidecar.domain.relevance import Surroundings, relevance, word_commonness

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


multipliers = st.floats(LOWEST, HIGHEST)


@given(fractions, fractions, multipliers, multipliers)
def test_reinforcement_never_lifts_over_a_clearly_more_relevant_memory(
    one: float, other: float, factor: float, other_factor: float
) -> None:
    """Clearly means 2.8 times as relevant, the ratio of the bounds; whatever the evidence on both."""
    less, more = sorted((one, other))
    if more > less * CLEARLY_MORE_RELEVANT:
        reinforced = [
            likely * applied(value, similarity=None, word_share=None)
            for likely, value in ((less, factor), (more, other_factor))
        ]
        assert reinforced[0] <= reinforced[1]


@given(fractions, fractions, multipliers, multipliers, st.booleans())
def test_reinforcement_never_buries_an_exact_match(
    likely: float, exact_likely: float, factor: float, exact_factor: float, is_by_words: bool
) -> None:
    """Only what is more than 1 / 1.75 times as relevant can pass it, by whatever the evidence."""
    exact = applied(
        exact_factor,
        similarity=None if is_by_words else EXACT_SIMILARITY,
        word_share=EXACT_WORD_SHARE if is_by_words else None,
    )
    assert exact >= EXACT_LOWEST
    if exact_likely > likely * EXACT_LEAD:
        assert exact_likely * exact >= likely * applied(factor, similarity=0.5, word_share=0.5)


@given(multipliers, st.floats(-1, EXACT_SIMILARITY - 1e-6), st.floats(0, EXACT_WORD_SHARE - 1e-6))
def test_multiplier_applies_as_it_is_to_all_others(factor: float, similarity: float, words: float) -> None:
    """And without evidence it is 1 for an exact match too."""
    assert applied(factor, similarity=similarity, word_share=words) == factor
    assert applied(1.0, similarity=1.0, word_share=1.0) == 1.0


def test_one_challenge_shows_in_an_exact_match() -> None:
    """It ranks lower at once, whatever is asked."""
    challenged = multiplier(Evidence(misled=1))
    assert applied(challenged, similarity=1.0, word_share=1.0) == challenged < 1


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        (Evidence(2, 0), "1 + 0.15 x ln(1 + 2.00) - 0.25 x ln(1 + 0.00) = 1.165"),
        (Evidence(0, 9), "1 + 0.15 x ln(1 + 0.00) - 0.25 x ln(1 + 9.00) = 0.424, bounded to 0.5 to 1.4 = 0.500"),
    ],
)
def test_arithmetic_is_told_with_its_figures(evidence: Evidence, told: str) -> None:
    """So that a person can check it by hand."""
    assert arithmetic(evidence) == told


@given(fractions, fractions, cosines, fractions)
def test_relevance_rises_with_what_neighbours_say(one: float, other: float, similarity: float, words: float) -> None:
    """What was remembered next to an answer is likely to belong to it."""
    low, high = (Surroundings(0.1, (0.0, share, 0.0, 0.0)) for share in sorted((one, other)))
    assert relevance(similarity, words, low) <= relevance(similarity, words, high) <= 1


def test_words_that_all_candidates_share_tell_nothing_of_neighbours() -> None:
    """In a store about one subject everything stands next to the query's words."""
    common = word_commonness([0.5] * 200)
    assert common == pytest.approx(0.5)
    alone, beside = Surroundings(common), Surroundings(common, (0.5, 0.5, 0.5, 0.5))
    assert relevance(0.4, 0.3, alone) == relevance(0.4, 0.3, beside)
