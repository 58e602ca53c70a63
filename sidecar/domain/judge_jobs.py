"""What waits for a judge, and what becomes of its verdicts. Pure values and rules; the judges are adapters.

There is one job for each session and memory. It is due when the session has been quiet for a while or has said as much
as is kept. A session that goes on makes it due again, and the new verdict takes the place of the old one. Texts are
kept a little longer than that, for just this case; once they are gone, only what is new can be judged, so each
probability is then the higher of the old verdict's and the new one's: later talk does not undo an earlier use.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sidecar.domain.evidence import UsageEvent, UsageSource, Valence, session_occasion
from sidecar.domain.judgement import TranscriptPiece, Verdict

WAITING_LIFE: Final = timedelta(days=7)
"""Texts that no judge could read are kept no longer than this after their session was last heard of."""

MAX_CASE_BYTES: Final = 256 * 1024
"""Of the texts after a recall that one case holds, the first ones."""

MAX_OTHERS: Final = 30
"""Other memories that a case names, those shown first."""


class JobState(StrEnum):
    """How far a job has come.

    DONE: until its session goes on. PARKED: given up after too many failures, until somebody asks for it again.
    """

    WAITING = "waiting"
    DONE = "done"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class JobKey:
    """What there is one job and one verdict of."""

    owner: str
    client: str
    session: str
    memory_id: str

    @property
    def occasion(self) -> str:
        """What its usage events count once for."""
        return session_occasion(self.client, self.session, otherwise="")


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """A job that was claimed.

    Attributes:
        revision: Raised when something was said since; a verdict on an older one does not end the job.
        attempts: Failures so far.
    """

    key: JobKey
    revision: int
    attempts: int


ENDED_IDLE: Final = timedelta(seconds=5)
"""A client's last lines may be read a moment after it said that the session ends."""


@dataclass(frozen=True, slots=True)
class DueRule:
    """Which jobs may be claimed.

    Attributes:
        idle: A session is quiet when nothing of it was read for so long.
        ended_idle: The same for a session that said that it ended, and of which nothing later was seen since.
        lease: A claimed job is nobody else's for so long.
    """

    idle: timedelta
    lease: timedelta
    ended_idle: timedelta = ENDED_IDLE


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict as kept: ids and figures, never text.

    Attributes:
        judge: Name and version of who gave it.
        shown_at: When the session was shown the memory first, but never after `judged_at`.
    """

    key: JobKey
    judge: str
    verdict: Verdict
    shown_at: datetime
    judged_at: datetime


@dataclass(frozen=True, slots=True)
class JudgeJobCounts:
    """The judge's queue of one owner."""

    waiting: int
    done: int
    parked: int
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class ParkedJudgeJob:
    """A job that was given up, and why."""

    key: JobKey
    attempts: int
    reason: str


def renewed(earlier: Verdict, later: Verdict) -> Verdict:
    """Return what holds when the later verdict could not see what the earlier one saw."""
    return Verdict(
        memory_id=later.memory_id,
        used=max(earlier.used, later.used),
        relevant=max(earlier.relevant, later.relevant),
        misled=max(earlier.misled, later.misled),
    )


def verdict_events(stored: StoredVerdict) -> list[UsageEvent]:
    """Return what a verdict says of its memory's use; nothing for one that was of no use."""
    verdict = stored.verdict
    said: list[tuple[Valence, float]] = []
    if verdict.is_used:
        said.append((Valence.USEFUL, verdict.used))
    if verdict.is_relevant:
        said.append((Valence.RELEVANT, verdict.relevant))
    if verdict.is_misled:
        said.append((Valence.MISLED, verdict.misled))
    return [
        UsageEvent(
            owner=stored.key.owner,
            memory_id=stored.key.memory_id,
            credited_id=stored.key.memory_id,
            source=UsageSource.JUDGE,
            valence=valence,
            weight=weight,
            client=stored.key.client,
            session=stored.key.session,
            at=stored.shown_at,
            known_at=stored.judged_at,
        )
        for valence, weight in said
    ]


def within_case(pieces: Sequence[TranscriptPiece]) -> tuple[TranscriptPiece, ...]:
    """Return the first texts, as many as one case may hold."""
    kept: list[TranscriptPiece] = []
    size_bytes = 0
    for piece in pieces:
        size_bytes += len(piece.text.encode())
        if kept and size_bytes > MAX_CASE_BYTES:
            break
        kept.append(piece)
    return tuple(kept)


def case_age_days(created_at: datetime, shown_at: datetime) -> float:
    """Return how old a memory was when it was shown, in days; 0 where clocks disagree."""
    return max((shown_at - created_at) / timedelta(days=1), 0.0)
