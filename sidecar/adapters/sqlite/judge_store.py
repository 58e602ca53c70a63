"""The judge store on SQLite: each method an operation of the writer, or a read."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sidecar.adapters.sqlite import judge_cases, judging
from sidecar.adapters.sqlite.readers import Readers
from sidecar.adapters.sqlite.writer import Writer
from sidecar.domain.judge_jobs import (
    WAITING_LIFE,
    DueRule,
    JudgeJob,
    JudgeJobCounts,
    ParkedJudgeJob,
    StoredVerdict,
)
from sidecar.domain.judgement import JudgeCase, Verdict


class SqliteJudging:
    """Implements `JudgeStore`; a part of `SqliteStore`, which opens what it works with."""

    _writer: Writer
    _readers: Readers

    async def claim_judge_jobs(self, rule: DueRule, *, now: datetime, limit: int) -> list[JudgeJob]:
        """See `JudgeStore.claim_judge_jobs`."""
        # With many sessions that are still busy, a look takes half a second, for which the writer must not be held up.
        if not await self._readers.run(partial(judging.are_any_due, rule=rule, now=now)):
            return []
        return await self._writer.run(partial(judging.claim, rule=rule, now=now, limit=limit))

    async def judge_case(self, job: JudgeJob) -> JudgeCase | None:
        """See `JudgeStore.judge_case`."""
        return await self._readers.run(partial(judge_cases.judge_case, key=job.key))

    async def save_verdicts(
        self, verdicts: Sequence[tuple[JudgeJob, Verdict]], *, judge: str, now: datetime
    ) -> list[StoredVerdict]:
        """See `JudgeStore.save_verdicts`."""
        return await self._writer.run(partial(judging.save_verdicts, verdicts=verdicts, judge=judge, now=now))

    async def end_judge_jobs(self, jobs: Sequence[JudgeJob]) -> None:
        """See `JudgeStore.end_judge_jobs`."""
        await self._writer.run(partial(judging.end, jobs=jobs))

    async def release_judge_jobs(self, jobs: Sequence[JudgeJob], *, next_try_at: datetime) -> None:
        """See `JudgeStore.release_judge_jobs`."""
        await self._writer.run(partial(judging.release, jobs=jobs, next_try_at=next_try_at))

    async def fail_judge_job(self, job: JudgeJob, *, reason: str, next_try_at: datetime | None) -> None:
        """See `JudgeStore.fail_judge_job`."""
        await self._writer.run(partial(judging.fail, job=job, reason=reason, next_try_at=next_try_at))

    async def retry_parked_judge_jobs(self, owner: str) -> int:
        """See `JudgeStore.retry_parked_judge_jobs`."""
        return await self._writer.run(partial(judging.retry_parked, owner=owner))

    async def judge_job_counts(self, owner: str) -> JudgeJobCounts:
        """See `JudgeStore.judge_job_counts`."""
        return await self._readers.run(partial(judging.counts, owner=owner))

    async def parked_judge_jobs(self, owner: str, *, limit: int) -> list[ParkedJudgeJob]:
        """See `JudgeStore.parked_judge_jobs`."""
        return await self._readers.run(partial(judging.parked, owner=owner, limit=limit))

    async def verdicts(self, owner: str, memory_id: str) -> list[StoredVerdict]:
        """See `JudgeStore.verdicts`."""
        return await self._readers.run(partial(judging.verdicts, owner=owner, memory_id=memory_id))

    async def drop_judged_texts(self, *, quiet_since: datetime, now: datetime) -> int:
        """See `JudgeStore.drop_judged_texts`."""
        return await self._writer.run(
            partial(
                judging.drop_texts,
                quiet_since=quiet_since,
                abandoned_since=now - WAITING_LIFE,
                empty_journal=self._writer.empty_journal,
            )
        )
