"""Ranks recorded recalls anew under other constants, and tells whether that would have been better. Pure.

A candidate is credited with what was known of its use when it was recalled, without that of its own session: what a
session was going to say about a memory must not help to rank it there, nor what a judge has said since. Only what was
delivered can have been used, so recorded recalls lean towards the ranking in use; a change that wins against that lean
is likely a real one.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sidecar.domain.evidence import UsageEvent
from sidecar.domain.reinforcement import EXACT_LOWEST, WINDOW_DAYS, Constants, Evidence, multiplier
from sidecar.domain.weighing import evidence_of, weigh_events

KEPT_CANDIDATES: Final = 30
"""The first ones of each recall are recorded; what ranks lower would have to climb far to be delivered."""

LEAST_SESSIONS: Final = 30
"""With fewer sessions on the half that decides, no difference could be told from chance."""

RESAMPLES: Final = 1000
NDCG_DEPTH: Final = 10
_LOW, _HIGH = 0.025, 0.975
_NO_EVIDENCE: Final = Evidence()

Draw = Callable[[int], Sequence[int]]
"""Draws as many numbers below a number as it says, each as likely as the others, the same ones more than once."""


class ReplayOutcome(StrEnum):
    """What a replay found."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no_difference"
    TOO_LITTLE_DATA = "too_little_data"


@dataclass(frozen=True, slots=True)
class RecordedCandidate:
    """One candidate of a recall, figures only.

    Attributes:
        relevance: 0 to 1; `factors`: product of what it was multiplied by, reinforcement apart.
        is_exact: See `sidecar.domain.reinforcement.applied`.
    """

    memory_id: str
    relevance: float
    factors: float
    is_exact: bool


@dataclass(frozen=True, slots=True)
class RecordedRecall:
    """A recall with its candidates in the order in which they were ranked.

    Attributes:
        delivered: How many of them the agent got.
        is_unreinforced: Whether evidence of use was left out of account, to measure what it does.
        used_ids: Memories that its session used; empty where no session is known.
    """

    recall_id: str
    client: str
    session: str
    at: datetime
    delivered: int
    is_unreinforced: bool
    candidates: tuple[RecordedCandidate, ...]
    used_ids: frozenset[str]

    @property
    def is_telling(self) -> bool:
        """Whether a candidate was used: other recalls cannot tell one ranking from another."""
        return any(candidate.memory_id in self.used_ids for candidate in self.candidates)

    @property
    def is_useful(self) -> bool:
        """Whether what it delivered was used."""
        return any(candidate.memory_id in self.used_ids for candidate in self.candidates[: self.delivered])


@dataclass(frozen=True, slots=True)
class UseHistory:
    """What was said of a memory's use, of whatever session and time.

    Attributes:
        cleared_at: When disputes about it ended in its favour.
    """

    events: tuple[UsageEvent, ...] = ()
    cleared_at: tuple[datetime, ...] = ()


_NOTHING_SAID: Final = UseHistory()


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean under both sets of constants, and the 95 % interval of the difference; None without recalls."""

    baseline: float | None = None
    proposed: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Two rankings of one half of the sessions."""

    sessions: int
    recalls: int
    reciprocal_rank: Figure
    ndcg: Figure
    useful_share: Figure


@dataclass(frozen=True, slots=True)
class Arm:
    """Recalls of known sessions that delivered something: all with reinforcement, or all without."""

    sessions: int
    recalls: int
    useful: int


@dataclass(frozen=True, slots=True)
class Holdout:
    """Both arms, and the 95 % interval of the difference of their useful shares; None for too few sessions."""

    reinforced: Arm
    unreinforced: Arm
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay found, and why."""

    recalls: int
    telling: int
    sessions: int
    tuning: Part
    held_out: Part
    outcome: ReplayOutcome
    reason: str
    holdout: Holdout


def is_held_out(client: str, session: str) -> bool:
    """Tell whether a session belongs to the half that decides; the same session always does, or never."""
    return bool(_digest("split", client, session) & 1)


def is_in_holdout(client: str, session: str, *, share: float) -> bool:
    """Tell whether a session's recalls are left unreinforced, so that a share of all sessions is; always the same."""
    return _digest("holdout", client, session) < share * (1 << 64)


def replay(
    recalls: Sequence[RecordedRecall],
    histories: Mapping[str, UseHistory],
    *,
    baseline: Constants,
    proposed: Constants,
    draw: Draw,
) -> ReplayReport:
    """Rank the recalls under both sets of constants.

    Args:
        histories: By candidate; those that nothing was said of may be missing.
        draw: Chance, for the intervals.
    """
    telling = [recall for recall in recalls if recall.session and recall.is_telling]
    scored = [_compare(recall, histories, baseline, proposed) for recall in telling]
    tuning = _part([each for each in scored if not is_held_out(*each.session)], draw)
    held_out = _part([each for each in scored if is_held_out(*each.session)], draw)
    outcome, reason = _decide(held_out)
    return ReplayReport(
        recalls=len(recalls),
        telling=len(telling),
        sessions=tuning.sessions + held_out.sessions,
        tuning=tuning,
        held_out=held_out,
        outcome=outcome,
        reason=reason,
        holdout=_holdout(recalls, draw),
    )


def evidence_at(recall: RecordedRecall, memory_id: str, history: UseHistory) -> Evidence:
    """Return what there was to go by when a memory was recalled, its own session left out."""
    since = recall.at - timedelta(days=WINDOW_DAYS)
    earlier = [
        event
        for event in history.events
        if since <= event.at
        and event.was_known(recall.at)
        and (event.client, event.session) != (recall.client, recall.session)
    ]
    if not earlier:
        return _NO_EVIDENCE
    cleared_at = max((moment for moment in history.cleared_at if moment < recall.at), default=None)
    return evidence_of(weigh_events(earlier, memory_id, cleared_at=cleared_at))


@dataclass(frozen=True, slots=True)
class _Compared:
    """One recall's (reciprocal rank, nDCG, useful) under both sets of constants."""

    session: tuple[str, str]
    baseline: tuple[float, float, float]
    proposed: tuple[float, float, float]


def _compare(
    recall: RecordedRecall, histories: Mapping[str, UseHistory], baseline: Constants, proposed: Constants
) -> _Compared:
    evidence = {
        candidate.memory_id: evidence_at(recall, candidate.memory_id, histories.get(candidate.memory_id, _NOTHING_SAID))
        for candidate in recall.candidates
    }
    return _Compared(
        (recall.client, recall.session),
        *(_figures(recall, _ranked(recall, evidence, constants)) for constants in (baseline, proposed)),
    )


def _ranked(recall: RecordedRecall, evidence: Mapping[str, Evidence], constants: Constants) -> list[str]:
    def score(candidate: RecordedCandidate) -> float:
        value = multiplier(evidence[candidate.memory_id], constants)
        return candidate.relevance * candidate.factors * (max(value, EXACT_LOWEST) if candidate.is_exact else value)

    return [candidate.memory_id for candidate in sorted(recall.candidates, key=score, reverse=True)]


def _figures(recall: RecordedRecall, ranked: Sequence[str]) -> tuple[float, float, float]:
    places = [place for place, memory_id in enumerate(ranked) if memory_id in recall.used_ids]
    gain = sum(1.0 / math.log2(place + 2) for place in places if place < NDCG_DEPTH)
    best = sum(1.0 / math.log2(place + 2) for place in range(min(len(places), NDCG_DEPTH)))
    return 1.0 / (places[0] + 1), gain / best, float(places[0] < recall.delivered)


def _part(compared: Sequence[_Compared], draw: Draw) -> Part:
    sessions: dict[tuple[str, str], list[_Compared]] = {}
    for each in compared:
        sessions.setdefault(each.session, []).append(each)
    intervals = _difference_intervals(list(sessions.values()), draw)
    before = _means([each.baseline for each in compared])
    after = _means([each.proposed for each in compared])
    figures = [Figure(before[number], after[number], *intervals[number]) for number in range(3)]
    return Part(len(sessions), len(compared), *figures)


def _means(figures: Sequence[tuple[float, float, float]]) -> list[float | None]:
    if not figures:
        return [None] * 3
    return [sum(each[number] for each in figures) / len(figures) for number in range(3)]


def _difference_intervals(
    sessions: Sequence[Sequence[_Compared]], draw: Draw
) -> list[tuple[float | None, float | None]]:
    """Return the interval of each figure's difference. Sessions are drawn anew as wholes: their recalls are alike."""
    if not sessions:
        return [(None, None)] * 3
    sums = [
        tuple(sum(each.proposed[number] - each.baseline[number] for each in session) for number in range(3))
        for session in sessions
    ]
    sizes = [len(session) for session in sessions]
    drawn: tuple[list[float], list[float], list[float]] = ([], [], [])
    for _ in range(RESAMPLES):
        chosen = draw(len(sessions))
        size = sum(sizes[place] for place in chosen)
        for number in range(3):
            drawn[number].append(sum(sums[place][number] for place in chosen) / size)
    return [_interval(values) for values in drawn]


def _interval(values: Sequence[float]) -> tuple[float, float]:
    in_order = sorted(values)
    return in_order[int(_LOW * (len(in_order) - 1))], in_order[math.ceil(_HIGH * (len(in_order) - 1))]


def _decide(part: Part) -> tuple[ReplayOutcome, str]:
    ranks, useful = part.reciprocal_rank, part.useful_share
    if part.sessions < LEAST_SESSIONS or ranks.low is None or ranks.high is None or useful.high is None:
        return ReplayOutcome.TOO_LITTLE_DATA, (
            f"{part.sessions} {'session' if part.sessions == 1 else 'sessions'} with a used memory on the half that "
            f"decides, fewer than {LEAST_SESSIONS}; "
            "no difference could be told from chance"
        )
    has_shrunk = (useful.proposed or 0.0) < (useful.baseline or 0.0)
    if useful.high < 0 or ranks.high < 0:
        return ReplayOutcome.WORSE, "used memories would have ranked lower, or fewer recalls would have been useful"
    if ranks.low > 0 and not has_shrunk:
        return ReplayOutcome.BETTER, "used memories would have ranked higher, and no fewer recalls would be useful"
    if ranks.low > 0:
        return ReplayOutcome.NO_DIFFERENCE, "used memories would have ranked higher, but fewer recalls would be useful"
    return ReplayOutcome.NO_DIFFERENCE, "the difference in rank may be chance: its interval holds 0"


def _holdout(recalls: Iterable[RecordedRecall], draw: Draw) -> Holdout:
    arms: dict[bool, dict[tuple[str, str], list[bool]]] = {False: {}, True: {}}
    for recall in recalls:
        if recall.session and recall.delivered:
            sessions = arms[recall.is_unreinforced]
            sessions.setdefault((recall.client, recall.session), []).append(recall.is_useful)
    low, high = _arms_interval(list(arms[False].values()), list(arms[True].values()), draw)
    return Holdout(_arm(arms[False]), _arm(arms[True]), low, high)


def _arm(sessions: Mapping[tuple[str, str], Sequence[bool]]) -> Arm:
    outcomes = [is_useful for session in sessions.values() for is_useful in session]
    return Arm(len(sessions), len(outcomes), sum(outcomes))


def _arms_interval(
    one: Sequence[Sequence[bool]], other: Sequence[Sequence[bool]], draw: Draw
) -> tuple[float, float] | tuple[None, None]:
    if min(len(one), len(other)) < LEAST_SESSIONS:
        return None, None
    return _interval([_drawn_share(one, draw) - _drawn_share(other, draw) for _ in range(RESAMPLES)])


def _drawn_share(sessions: Sequence[Sequence[bool]], draw: Draw) -> float:
    chosen = [sessions[place] for place in draw(len(sessions))]
    return sum(sum(session) for session in chosen) / sum(len(session) for session in chosen)


def _digest(purpose: str, client: str, session: str) -> int:
    named = "\x1f".join((purpose, client, session)).encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "big")
