"""Which statements about a memory's use count: precedence, single counting, clearing."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from sidecar.domain.evidence import UsageEvent, UsageSource, Valence
from sidecar.domain.reinforcement import Evidence
from sidecar.domain.weighing import Standing, evidence_of, misled_signals, weigh_events
from tests.store_builders import NOW, OWNER

USEFUL = UsageEvent(
    owner=OWNER,
    memory_id="m",
    credited_id="m",
    source=UsageSource.IN_BAND,
    valence=Valence.USEFUL,
    weight=1.0,
    client="c",
    session="s",
    at=NOW,
)
WEIGHTS = {UsageSource.JUDGE: 0.8}
POLARITIES = (Valence.USEFUL, Valence.MISLED)
PROOF = (UsageSource.IN_BAND, UsageSource.CITATION, UsageSource.CHALLENGE)
STATEMENTS = tuple(itertools.product(UsageSource, POLARITIES))


def said(source: UsageSource, valence: Valence) -> UsageEvent:
    return replace(USEFUL, source=source, valence=valence, weight=WEIGHTS.get(source, 1.0))


def weighed(events: Iterable[UsageEvent]) -> Evidence:
    return evidence_of(weigh_events(events, "m"))


@pytest.mark.parametrize(
    ("events", "evidence"),
    [
        ([USEFUL, USEFUL], Evidence(useful=1)),
        ([USEFUL, replace(USEFUL, session="t")], Evidence(useful=2)),
        ([USEFUL, replace(USEFUL, valence=Valence.MISLED)], Evidence(useful=1, misled=1)),
        ([replace(USEFUL, source=UsageSource.JUDGE, weight=0.9), replace(USEFUL, weight=0.5)], Evidence(useful=0.5)),
        ([replace(USEFUL, source=UsageSource.JUDGE, weight=0.7)], Evidence(useful=0.7)),
        ([replace(USEFUL, valence=Valence.SURFACED), replace(USEFUL, valence=Valence.RELEVANT)], Evidence()),
        ([replace(USEFUL, session="", weight=0.5)] * 3, Evidence(useful=0.5)),
        ([replace(USEFUL, session="", at=NOW + timedelta(days=day)) for day in range(3)], Evidence(useful=3)),
    ],
)
def test_evidence_counts_each_session_once_for_and_once_against(events: list[UsageEvent], evidence: Evidence) -> None:
    """Facts go before opinions; showing a memory is neither; without a session a day stands for one."""
    assert weighed(events) == evidence


TRUTH: dict[tuple[str, ...], tuple[float, float]] = {
    (): (0, 0),
    ("judge+",): (0.8, 0),
    ("judge-",): (0, 0.8),
    ("judge+", "judge-"): (0.8, 0.8),
    ("in_band+",): (1, 0),
    ("in_band+", "judge+"): (1, 0),
    ("in_band+", "judge-"): (1, 0),
    ("citation+",): (1, 0),
    ("citation+", "in_band+"): (1, 0),
    ("citation+", "judge+"): (1, 0),
    ("citation+", "judge-"): (1, 0),
    ("challenge-", "citation+", "judge-"): (1, 1),
    ("citation+", "outcome+"): (1, 0),
    ("challenge-",): (0, 1),
    ("challenge-", "judge-"): (0, 1),
    ("challenge-", "judge+"): (0, 1),
    ("challenge-", "in_band+"): (1, 1),
    ("challenge-", "in_band+", "judge+", "judge-"): (1, 1),
    ("outcome+",): (1, 0),
    ("judge+", "outcome+"): (1, 0),
    ("judge-", "outcome+"): (1, 0.8),
    ("challenge-", "outcome+"): (1, 1),
    ("challenge-", "judge-", "outcome+"): (1, 1),
    ("in_band+", "judge-", "outcome+"): (1, 0),
}
"""What a session's statements come to, for and against: those that can occur, written out by hand."""


@pytest.mark.parametrize("spoken", TRUTH, ids=lambda spoken: " ".join(spoken) or "nothing")
def test_truth_table_of_what_can_occur(spoken: tuple[str, ...]) -> None:
    """A challenge and a proof of use silence the judge altogether, an outcome only where they agree."""
    polarity = {"+": Valence.USEFUL, "-": Valence.MISLED}
    events = [said(UsageSource(name[:-1]), polarity[name[-1]]) for name in spoken]
    assert weighed(events) == Evidence(*TRUTH[spoken])


def test_truth_table_of_every_combination() -> None:
    """All 1,024 of five sources and two polarities, in either order, each said three times over."""
    for chosen in itertools.product((False, True), repeat=len(STATEMENTS)):
        spoken = [statement for statement, is_said in zip(STATEMENTS, chosen, strict=True) if is_said]
        events = [said(source, valence) for source, valence in spoken] * 3
        is_proven = any(source in PROOF for source, _ in spoken)
        expected = []
        for valence in POLARITIES:
            sources = {source for source, polarity in spoken if polarity is valence}
            facts = sources - {UsageSource.JUDGE}
            opinion = 0.8 if UsageSource.JUDGE in sources and not is_proven else 0.0
            expected.append(1.0 if facts else opinion)
        assert weighed(events) == Evidence(*expected), spoken
        assert weighed(reversed(events)) == Evidence(*expected), spoken


def test_proof_in_one_session_says_nothing_of_another() -> None:
    """Nor does proof of which the session is not known."""
    judged = said(UsageSource.JUDGE, Valence.MISLED)
    assert weighed([judged, replace(USEFUL, session="other")]) == Evidence(useful=1, misled=0.8)
    assert weighed([replace(judged, session=""), replace(USEFUL, session="")]) == Evidence(useful=1, misled=0.8)


def test_credit_that_was_passed_on_does_not_count_for_the_older_memory() -> None:
    """But the proof it rests on overrules what a judge said of that memory."""
    passed = replace(USEFUL, credited_id="successor")
    events = [said(UsageSource.JUDGE, Valence.USEFUL), passed]
    standings = [each.standing for each in weigh_events(events, "m")]
    assert standings == [Standing.OVERRULED, Standing.PASSED_ON]
    assert evidence_of(weigh_events([passed], "successor")) == Evidence(useful=1)


def test_settled_dispute_clears_what_came_before_it() -> None:
    """And only what was held against the memory."""
    against = said(UsageSource.CHALLENGE, Valence.MISLED)
    later = replace(against, session="t", at=NOW + timedelta(days=2))
    found = weigh_events([against, later, USEFUL], "m", cleared_at=NOW + timedelta(days=1))
    assert [each.standing for each in found] == [Standing.CLEARED, Standing.COUNTED, Standing.COUNTED]
    assert evidence_of(found) == Evidence(useful=1, misled=1)


def test_signals_for_a_review_are_those_since_the_last_settlement() -> None:
    """Each session gives one."""
    against = said(UsageSource.CHALLENGE, Valence.MISLED)
    days = [replace(against, session=str(day), at=NOW + timedelta(days=day)) for day in range(3)]
    found = weigh_events([*days, *days], "m")
    assert len(misled_signals(found, since=None)) == 3
    assert [event.session for event in misled_signals(found, since=NOW)] == ["1", "2"]
