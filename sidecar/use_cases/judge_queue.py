"""Tells how far judging has come, and has what was given up judged again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sidecar.domain.judge_jobs import JudgeJobCounts, ParkedJudgeJob
from sidecar.ports import JudgeStore

PARKED_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class JudgeStatus:
    """Who judges. `name`: empty if nobody does; `problem`: why it cannot judge now, empty if it can."""

    name: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class JudgeQueueReport:
    """The queue of one owner."""

    status: JudgeStatus
    counts: JudgeJobCounts
    parked: tuple[ParkedJudgeJob, ...]


class JudgeQueue:
    """Looks at the judge's queue."""

    def __init__(self, *, store: JudgeStore, status: Callable[[], JudgeStatus]) -> None:
        self._store = store
        self._status = status

    async def run(self, owner: str) -> JudgeQueueReport:
        """Return how far judging has come."""
        counts = await self._store.judge_job_counts(owner)
        parked = await self._store.parked_judge_jobs(owner, limit=PARKED_SHOWN)
        return JudgeQueueReport(self._status(), counts, tuple(parked))

    async def retry(self, owner: str) -> int:
        """Have what was given up judged again; return how many jobs."""
        return await self._store.retry_parked_judge_jobs(owner)
