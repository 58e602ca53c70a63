"""Decides which statements about a memory's use count, and what they come to. Pure rules over usage events.

Per session and memory, a challenge or a proof of use (in band, or a citation) overrules the judge altogether: it states
what the judge could only guess at. Of what is left, each session counts once for a memory and once against it, however
often it says so. A dispute that ended in the memory's favour clears it of everything that was held against it until
then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidecar.domain.evidence import UsageEvent, UsageSource, Valence
from sidecar.domain.reinforcement import Evidence

REVIEW_SIGNALS: Final = 2
"""So many signals that a memory misled, from different sessions, call for a person to look at it."""

OVERRULING: Final = frozenset({UsageSource.IN_BAND, UsageSource.CITATION, UsageSource.CHALLENGE})
"""Sources whose word stands against a judge's. The view `counted_uses` of the schema names them too."""

_FACTS: Final = OVERRULING | {UsageSource.OUTCOME}
_VOTES: Final = frozenset({Valence.USEFUL, Valence.MISLED})


class Standing(StrEnum):
    """What became of one statement.

    COUNTED: it is part of the sum. REPEATED: its session said the same more weightily. OVERRULED: a judge's opinion
    where there is proof. CLEARED: a dispute was settled in the memory's favour since. PASSED_ON: another memory has the
    credit. NO_VOTE: it neither speaks for the memory nor against it, as being shown does not.
    """

    COUNTED = "counted"
    REPEATED = "repeated"
    OVERRULED = "overruled"
    CLEARED = "cleared"
    PASSED_ON = "passed_on"
    NO_VOTE = "no_vote"


@dataclass(frozen=True, slots=True)
class WeighedEvent:
    """A statement and what became of it."""

    event: UsageEvent
    standing: Standing


def weigh_events(
    events: Iterable[UsageEvent], memory_id: str, *, cleared_at: datetime | None = None
) -> list[WeighedEvent]:
    """Return what becomes of each statement, in their order.

    Args:
        events: All that are about the memory or credited to it, within the window.
        cleared_at: When a dispute about it was last settled in its favour.
    """
    given = list(events)
    proven = {_case(event) for event in given if event.source in OVERRULING and event.session}
    standings = [_standing_alone(event, memory_id, proven, cleared_at) for event in given]
    best: dict[tuple[str, str, Valence], int] = {}
    for place, event in enumerate(given):
        if standings[place] is Standing.COUNTED:
            earlier = best.setdefault(_vote(event), place)
            if earlier != place and _rank(event) > _rank(given[earlier]):
                best[_vote(event)] = place
    counted = set(best.values())
    return [
        WeighedEvent(event, Standing.REPEATED if standing is Standing.COUNTED and place not in counted else standing)
        for place, (event, standing) in enumerate(zip(given, standings, strict=True))
    ]


def evidence_of(weighed: Iterable[WeighedEvent]) -> Evidence:
    """Return the sums of what counts."""
    counted = [each.event for each in weighed if each.standing is Standing.COUNTED]
    return Evidence(
        useful=sum(event.weight for event in counted if event.valence is Valence.USEFUL),
        misled=sum(event.weight for event in counted if event.valence is Valence.MISLED),
    )


def misled_signals(weighed: Iterable[WeighedEvent], *, since: datetime | None) -> Sequence[UsageEvent]:
    """Return what counts against a memory and is newer than `since`, the last time somebody settled it."""
    return [
        each.event
        for each in weighed
        if each.standing is Standing.COUNTED
        and each.event.valence is Valence.MISLED
        and (since is None or each.event.at > since)
    ]


def _standing_alone(
    event: UsageEvent, memory_id: str, proven: set[tuple[str, str, str]], cleared_at: datetime | None
) -> Standing:
    if event.valence not in _VOTES:
        return Standing.NO_VOTE
    if event.source is UsageSource.JUDGE and _case(event) in proven:
        return Standing.OVERRULED
    if event.credited_id != memory_id:
        return Standing.PASSED_ON
    if event.valence is Valence.MISLED and cleared_at is not None and event.at <= cleared_at:
        return Standing.CLEARED
    return Standing.COUNTED


def _case(event: UsageEvent) -> tuple[str, str, str]:
    return event.client, event.session, event.memory_id


def _vote(event: UsageEvent) -> tuple[str, str, Valence]:
    # Where no session is known, a client has one voice a day.
    return event.client, event.session or event.at.date().isoformat(), event.valence


def _rank(event: UsageEvent) -> tuple[bool, float]:
    return event.source in _FACTS, event.weight
