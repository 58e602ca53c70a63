"""Has a judge look at what sessions did with the memories they were shown: durable jobs, in the background.

What cannot be judged now waits, and what makes the judge stumble is parked; neither holds up the rest.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sidecar.domain.judge_jobs import DueRule, JudgeJob
from sidecar.domain.judgement import JudgeCase, Verdict
from sidecar.errors import JudgeUnavailableError, SidecarError, StorageError, TooManyRequestsError
from sidecar.ports import Clock, Judge, JudgeStore
from sidecar.use_cases.judge_queue import JudgeStatus

_LONGEST_BACKOFF_S: Final = 3600.0
_LONGEST_WAIT_S: Final = 15.0
_SHORTEST_WAIT_S: Final = 0.1
_LOOKS_PER_IDLE: Final = 5
_REASON_CHARACTERS: Final = 200
_NO_VERDICT: Final = "the judge reached no verdict"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JudgePolicy:
    """When and how sessions are judged.

    Attributes:
        idle_s: A session is judged once nothing of it was read for so long.
        keep_text_s: Texts of a judged session are kept until it was quiet for so long, should it go on.
        batch_size: Cases that the judge is given at once.
        max_attempts: A job that failed this often is parked.
        backoff_s: Wait after the first failure; doubled after each further one, up to an hour.
        lease_s: A claimed job that was not heard of for so long is claimed anew.
    """

    idle_s: float = 300.0
    keep_text_s: float = 3600.0
    batch_size: int = 16
    max_attempts: int = 5
    backoff_s: float = 60.0
    lease_s: float = 900.0


class JudgeUsefulness:
    """Works off the judge's queue. One instance runs at a time."""

    def __init__(self, *, store: JudgeStore, judge: Judge, clock: Clock, policy: JudgePolicy) -> None:
        self._store = store
        self._judge = judge
        self._clock = clock
        self._policy = policy
        self._rule = DueRule(idle=timedelta(seconds=policy.idle_s), lease=timedelta(seconds=policy.lease_s))
        self._outages_in_a_row = 0
        self.problem = ""
        self.failures = 0
        self.judged = 0

    @property
    def status(self) -> JudgeStatus:
        """Who judges, and why not now."""
        return JudgeStatus(self._judge.name, self.problem)

    async def run(self) -> None:
        """Work until cancelled."""
        wait_s = min(max(self._policy.idle_s / _LOOKS_PER_IDLE, _SHORTEST_WAIT_S), _LONGEST_WAIT_S)
        while True:
            if not await self.work_off_batch():
                await self.drop_texts()
                await asyncio.sleep(wait_s)

    async def work_off_batch(self) -> bool:
        """Judge what is due, at most one batch; tell whether there may be more right now."""
        jobs = await self._store.claim_judge_jobs(self._rule, now=self._clock.now(), limit=self._policy.batch_size)
        if not jobs:
            return False
        try:
            return await self._work_off(jobs)
        except (StorageError, TooManyRequestsError):
            # Raised again: it passes by itself, and the leases run out.
            self.failures += 1
            raise

    async def drop_texts(self) -> int:
        """Delete the texts of judged sessions that have been quiet long enough; return of how many."""
        now = self._clock.now()
        quiet_since = now - timedelta(seconds=max(self._policy.keep_text_s, self._policy.idle_s))
        return await self._store.drop_judged_texts(quiet_since=quiet_since, now=now)

    async def _work_off(self, jobs: Sequence[JudgeJob]) -> bool:
        asked: list[tuple[JudgeJob, JudgeCase]] = []
        silent: list[JudgeJob] = []
        for job in jobs:
            case = await self._store.judge_case(job)
            if case is None:
                silent.append(job)
            else:
                asked.append((job, case))
        if silent:
            await self._store.end_judge_jobs(silent)
        if not asked:
            return True
        # What is reached is kept at once: an answer that was paid for must not wait for one that does not come.
        groups = _by_transcript(asked)
        for place, group in enumerate(groups):
            try:
                await self._judge_all(group)
            except JudgeUnavailableError as error:
                await self._wait_for_judge([job for left in groups[place:] for job, _ in left], error)
                return False
        self._outages_in_a_row = 0
        self.problem = ""
        return True

    async def _judge_all(self, asked: Sequence[tuple[JudgeJob, JudgeCase]]) -> None:
        try:
            verdicts = await self._judge.judge([case for _, case in asked])
        except JudgeUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - what raises for a bad case is up to the judge; counted with the job
            log.warning("judging failed", extra={"cases": len(asked), "error": type(error).__name__})
            if len(asked) == 1:
                await self._note_failure(asked[0][0], _reason(error))
                return
            for one in asked:
                await self._judge_all([one])
            return
        await self._keep(list(zip((job for job, _ in asked), verdicts, strict=True)))

    async def _keep(self, given: Sequence[tuple[JudgeJob, Verdict | None]]) -> None:
        reached = [(job, verdict) for job, verdict in given if verdict is not None]
        if reached:
            saved = await self._store.save_verdicts(reached, judge=self._judge.name, now=self._clock.now())
            self.judged += len(saved)
        for job, verdict in given:
            if verdict is None:
                await self._note_failure(job, _NO_VERDICT)

    async def _note_failure(self, job: JudgeJob, reason: str) -> None:
        self.failures += 1
        is_last = job.attempts + 1 >= self._policy.max_attempts
        wait_s = min(self._policy.backoff_s * 2.0**job.attempts, _LONGEST_BACKOFF_S)
        next_try = None if is_last else self._clock.now() + timedelta(seconds=wait_s)
        await self._store.fail_judge_job(job, reason=reason, next_try_at=next_try)

    async def _wait_for_judge(self, jobs: Sequence[JudgeJob], error: JudgeUnavailableError) -> None:
        """Give the jobs back; nothing is counted against them."""
        self.failures += 1
        self.problem = f"usefulness is not judged: {error.message}"
        log.warning("the judge is not available", extra={"reason": error.reason, "jobs": len(jobs)})
        wait_s = min(self._policy.backoff_s * 2.0**self._outages_in_a_row, _LONGEST_BACKOFF_S)
        self._outages_in_a_row = min(self._outages_in_a_row + 1, 10)
        next_try = self._clock.now() + timedelta(seconds=wait_s)
        await self._store.release_judge_jobs(jobs, next_try_at=next_try)


def _by_transcript(asked: Sequence[tuple[JudgeJob, JudgeCase]]) -> list[list[tuple[JudgeJob, JudgeCase]]]:
    """Return what is to be judged, put together where a judge reads the same transcript; in order."""
    groups: defaultdict[object, list[tuple[JudgeJob, JudgeCase]]] = defaultdict(list)
    for job, case in asked:
        groups[case.before, case.after].append((job, case))
    return list(groups.values())


def _reason(error: Exception) -> str:
    # Words of others may quote the session, and a reason is kept.
    return error.message[:_REASON_CHARACTERS] if isinstance(error, SidecarError) else type(error).__name__
