"""The seams of what a judge works on, and of what its verdicts and all other evidence come to."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sidecar.domain.hygiene import EvidencePlace, MemoryEvidence, ReviewItem
from sidecar.domain.judge_jobs import DueRule, JudgeJob, JudgeJobCounts, ParkedJudgeJob, StoredVerdict
from sidecar.domain.judgement import JudgeCase, Verdict


class JudgeStore(Protocol):
    """Keeps judge jobs and verdicts. Methods without an `owner` work for all owners.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses; nothing was changed then.
    """

    async def claim_judge_jobs(self, rule: DueRule, *, now: datetime, limit: int) -> list[JudgeJob]:
        """Lease due jobs, those waiting longest first. Jobs of memories that are gone or forgotten are dropped."""
        ...

    async def judge_case(self, job: JudgeJob) -> JudgeCase | None:
        """Return what the judge is asked: of each thread that was shown the memory, what was said before and after.

        None if the memory is gone or forgotten, or nothing was said after it was shown.
        """
        ...

    async def save_verdicts(
        self, verdicts: Sequence[tuple[JudgeJob, Verdict]], *, judge: str, now: datetime
    ) -> list[StoredVerdict]:
        """Store verdicts with the usage events they come to, in place of those of earlier verdicts; end their jobs.

        Multipliers follow at once. What a memory that was purged or forgotten meanwhile got is left out of the answer.
        """
        ...

    async def end_judge_jobs(self, jobs: Sequence[JudgeJob]) -> None:
        """End jobs on which there is nothing to say; they wait again when their session goes on."""
        ...

    async def release_judge_jobs(self, jobs: Sequence[JudgeJob], *, next_try_at: datetime) -> None:
        """Give jobs back that could not be judged now, through no fault of theirs."""
        ...

    async def fail_judge_job(self, job: JudgeJob, *, reason: str, next_try_at: datetime | None) -> None:
        """Count a failed attempt; without a next try the job is parked with this reason."""
        ...

    async def retry_parked_judge_jobs(self, owner: str) -> int:
        """Make every parked job due again and return how many there were."""
        ...

    async def judge_job_counts(self, owner: str) -> JudgeJobCounts:
        """Count an owner's jobs."""
        ...

    async def parked_judge_jobs(self, owner: str, *, limit: int) -> list[ParkedJudgeJob]:
        """Return jobs that were given up, oldest first."""
        ...

    async def verdicts(self, owner: str, memory_id: str) -> list[StoredVerdict]:
        """Return the verdicts on a memory, the latest first."""
        ...

    async def drop_judged_texts(self, *, quiet_since: datetime, now: datetime) -> int:
        """Delete the texts of judged sessions that nothing was read of since; return of how many sessions.

        No byte of them is left in the database or its journal. Texts that still wait for a judge are kept for
        `WAITING_LIFE`; then they go too, with their jobs.
        """
        ...


class ReinforcementStore(Protocol):
    """Keeps multipliers in step with the evidence, and tells what each rests on.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses; nothing was changed then.
    """

    async def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """Take a lease unless another holder has it; tell whether that went well. It ends by itself."""
        ...

    async def release_lease(self, name: str, holder: str) -> None:
        """Give a lease back; one that somebody else holds by now stays."""
        ...

    async def evidence_places(self, *, after_key: int, limit: int) -> list[EvidencePlace]:
        """Return memories of all owners that have evidence or a multiplier, by key, from behind that key on."""
        ...

    async def recompute_multipliers(self, places: Sequence[EvidencePlace], *, at: datetime) -> int:
        """Compute these memories' multipliers anew from the window that ends then; return how many changed."""
        ...

    async def memory_evidence(self, owner: str, memory_id: str, *, at: datetime) -> MemoryEvidence:
        """Return all that bears on a memory's multiplier.

        Raises:
            MemoryNotFoundError: If it is not there.
        """
        ...

    async def review_items(self, owner: str, *, at: datetime, limit: int) -> list[ReviewItem]:
        """Return the active memories that misled several sessions; see `sidecar.domain.hygiene.by_urgency`."""
        ...
