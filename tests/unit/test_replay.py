"""Replaying recalls: what was known then, both halves apart, and no verdict on too little data."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.evidence import UsageEvent, UsageSource, Valence
from sidecar.domain.reinforcement import IN_USE, UNREINFORCED, Constants, Evidence
from sidecar.domain.replay import (
    LEAST_SESSIONS,
    RecordedCandidate,
    RecordedRecall,
    ReplayOutcome,
    ReplayReport,
    UseHistory,
    evidence_at,
    is_held_out,
    is_in_holdout,
    replay,
)
from sidecar.errors import InvalidInputError
from sidecar.use_cases.replay_recalls import ReplayRecalls
from tests.store_builders import NOW, OWNER, SetClock

GOOD, POOR = "mem_good", "mem_poor"
USED_ELSEWHERE = UsageEvent(
    owner=OWNER,
    memory_id=GOOD,
    credited_id=GOOD,
    source=UsageSource.OUTCOME,
    valence=Valence.USEFUL,
    weight=1.0,
    client="c",
    session="earlier",
    at=NOW - timedelta(days=1),
)


def recalled(session: str, *, used: str = GOOD, delivered: int = 1, is_unreinforced: bool = False) -> RecordedRecall:
    """A recall in which the poor memory is a little more relevant than the good one."""
    candidates = (RecordedCandidate(POOR, 0.55, 1.0, False), RecordedCandidate(GOOD, 0.5, 1.0, False))
    return RecordedRecall(f"r-{session}", "c", session, NOW, delivered, is_unreinforced, candidates, frozenset({used}))


def run(recalls: list[RecordedRecall], *events: UsageEvent, proposed: Constants = IN_USE) -> ReplayReport:
    generator = random.Random(1)
    said = {GOOD: UseHistory(tuple(event for event in events if event.memory_id == GOOD))}
    return replay(
        recalls,
        said,
        baseline=UNREINFORCED,
        proposed=proposed,
        draw=lambda count: generator.choices(range(count), k=count),
    )


def sessions(count: int) -> list[str]:
    """Session names, so many of them on the half that decides."""
    held_out = [name for name in (f"s{number}" for number in range(40 + count * 4)) if is_held_out("c", name)]
    return held_out[:count]


def test_split_is_by_session_and_always_the_same() -> None:
    """About half of the sessions decide."""
    names = [f"session-{number}" for number in range(1000)]
    assert 430 < sum(is_held_out("claude-code", name) for name in names) < 570
    assert [is_held_out("c", name) for name in names] == [is_held_out("c", name) for name in names]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_holdout_takes_its_share_of_sessions(share: float) -> None:
    """The same ones every time, and another choice than that of the halves."""
    names = [f"session-{number}" for number in range(4000)]
    taken = [name for name in names if is_in_holdout("c", name, share=share)]
    assert len(taken) == pytest.approx(4000 * share, abs=120)
    if share == 0.5:
        assert 0.4 < sum(is_held_out("c", name) for name in taken) / len(taken) < 0.6


def test_evidence_is_that_of_the_time_without_the_session_itself() -> None:
    """What a session went on to say must not have helped it."""
    recall = recalled("now")
    events = [
        USED_ELSEWHERE,
        replace(USED_ELSEWHERE, session="now"),
        replace(USED_ELSEWHERE, session="later", at=NOW + timedelta(days=1)),
        replace(USED_ELSEWHERE, session="forgotten", at=NOW - timedelta(days=91)),
    ]
    assert evidence_at(recall, GOOD, UseHistory(tuple(events))) == Evidence(useful=1)


def test_verdict_given_after_the_recall_was_not_known_then() -> None:
    """Its event is dated by when the memory was shown; the judge spoke later, and only then could it help."""
    judged = replace(USED_ELSEWHERE, source=UsageSource.JUDGE, weight=0.9)
    late = replace(judged, known_at=NOW + timedelta(minutes=1))
    assert evidence_at(recalled("now"), GOOD, UseHistory((late,))) == Evidence()
    in_time = replace(judged, known_at=NOW - timedelta(minutes=1))
    assert evidence_at(recalled("now"), GOOD, UseHistory((in_time,))) == Evidence(useful=0.9)


def test_dispute_settled_for_a_memory_clears_it_from_then_on_only() -> None:
    """A recall before that ranked with what was held against it, one after that without."""
    blamed = replace(USED_ELSEWHERE, source=UsageSource.CHALLENGE, valence=Valence.MISLED)
    before, after = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
    assert evidence_at(recalled("now"), GOOD, UseHistory((blamed,), cleared_at=(after,))) == Evidence(misled=1)
    assert evidence_at(recalled("now"), GOOD, UseHistory((blamed,), cleared_at=(before, after))) == Evidence()


def test_late_verdicts_cannot_make_a_change_better() -> None:
    """They were all given after the last recall, so that reinforcement had nothing to go by."""
    events = [
        replace(USED_ELSEWHERE, session=f"earlier-{n}", source=UsageSource.JUDGE, known_at=NOW + timedelta(days=1))
        for n in range(3)
    ]
    report = run([recalled(name) for name in sessions(LEAST_SESSIONS)], *events)
    assert report.outcome is ReplayOutcome.NO_DIFFERENCE
    assert report.held_out.reciprocal_rank.proposed == 0.5


def test_reinforcement_that_helps_is_found_better() -> None:
    """The used memory would have come first, and so been delivered."""
    events = [replace(USED_ELSEWHERE, session=f"earlier-{number}") for number in range(3)]
    report = run([recalled(name) for name in sessions(LEAST_SESSIONS)], *events)
    held_out = report.held_out
    assert (report.outcome, held_out.sessions, report.tuning.sessions) == (ReplayOutcome.BETTER, LEAST_SESSIONS, 0)
    assert (held_out.reciprocal_rank.baseline, held_out.reciprocal_rank.proposed) == (0.5, 1.0)
    assert (held_out.useful_share.baseline, held_out.useful_share.proposed) == (0.0, 1.0)
    assert held_out.ndcg.baseline == pytest.approx(0.631, abs=0.001)
    assert held_out.reciprocal_rank.low == held_out.reciprocal_rank.high == 0.5


def test_reinforcement_that_harms_is_found_worse() -> None:
    """It lifted what was not used."""
    events = [replace(USED_ELSEWHERE, session=f"earlier-{number}") for number in range(3)]
    report = run([recalled(name, used=POOR) for name in sessions(LEAST_SESSIONS)], *events)
    assert report.outcome is ReplayOutcome.WORSE


def test_same_constants_make_no_difference() -> None:
    """And say so."""
    report = run([recalled(name) for name in sessions(LEAST_SESSIONS)], USED_ELSEWHERE, proposed=UNREINFORCED)
    assert report.outcome is ReplayOutcome.NO_DIFFERENCE
    assert "chance" in report.reason


def test_too_few_sessions_decide_nothing_however_clear_they_are() -> None:
    """Many recalls of few sessions are no substitute: those of a session are alike."""
    events = [replace(USED_ELSEWHERE, session=f"earlier-{number}") for number in range(3)]
    recalls = [
        replace(recalled(name), recall_id=f"r-{name}-{n}") for name in sessions(LEAST_SESSIONS - 1) for n in range(5)
    ]
    report = run(recalls, *events)
    assert report.outcome is ReplayOutcome.TOO_LITTLE_DATA
    assert report.telling == 5 * (LEAST_SESSIONS - 1)
    assert str(LEAST_SESSIONS) in report.reason


def test_recalls_without_a_used_candidate_or_a_session_tell_nothing() -> None:
    """They are counted, and left out."""
    report = run([recalled("a", used="mem_other"), recalled("")])
    assert (report.recalls, report.telling, report.sessions) == (2, 0, 0)
    assert report.held_out.reciprocal_rank.baseline is None


def test_exact_match_is_ranked_as_recall_ranks_it() -> None:
    """The lower bound of an exact match holds in a replay too."""
    blamed = [replace(USED_ELSEWHERE, valence=Valence.MISLED, session=f"e-{number}") for number in range(20)]
    exact = RecordedCandidate(GOOD, 0.6, 1.0, True)
    recall = replace(recalled("s"), candidates=(exact, RecordedCandidate(POOR, 0.4, 1.0, False)))
    figures = [run([replace(recall, session=name)], *blamed) for name in sessions(1)]
    assert figures[0].held_out.reciprocal_rank.proposed == 1.0


def test_arms_of_the_holdout_are_compared_when_both_are_large_enough() -> None:
    """What was delivered with reinforcement and without, and whether it was used."""
    reinforced = [recalled(f"with-{number}", used=POOR) for number in range(LEAST_SESSIONS)]
    unreinforced = [recalled(f"without-{number}", is_unreinforced=True) for number in range(LEAST_SESSIONS)]
    holdout = run([*reinforced, *unreinforced]).holdout
    assert (holdout.reinforced.useful, holdout.unreinforced.useful) == (LEAST_SESSIONS, 0)
    assert (holdout.low, holdout.high) == (1.0, 1.0)
    few = run([*reinforced, *unreinforced[1:]]).holdout
    assert (few.low, few.high) == (None, None)


async def test_constants_out_of_range_are_refused() -> None:
    """By name, with what would be right."""
    clock = SetClock()
    replays = ReplayRecalls(insights=InMemoryStore(clock=clock), clock=clock)
    with pytest.raises(InvalidInputError, match="useful_gain"):
        await replays.run(OWNER, proposed=Constants(useful_gain=-0.1))
    with pytest.raises(InvalidInputError, match="highest"):
        await replays.run(OWNER, proposed=IN_USE, baseline=Constants(highest=0.5))
    assert (await replays.run(OWNER, proposed=IN_USE)).outcome is ReplayOutcome.TOO_LITTLE_DATA
