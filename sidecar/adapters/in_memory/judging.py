"""The judge store in plain collections."""

from collections.abc import Sequence
from datetime import datetime

from sidecar.adapters.in_memory.ledger_rows import InMemoryLedgerRows
from sidecar.adapters.in_memory.tables import JudgeEntry, Tables, ThreadEntry
from sidecar.domain.confirmation import CLOCK_SKEW, recompute
from sidecar.domain.judge_jobs import (
    MAX_OTHERS,
    WAITING_LIFE,
    DueRule,
    JobKey,
    JobState,
    JudgeJob,
    JudgeJobCounts,
    ParkedJudgeJob,
    StoredVerdict,
    case_age_days,
    renewed,
    verdict_events,
    within_case,
)
from sidecar.domain.judgement import JudgeCase, TranscriptPiece, Verdict
from sidecar.domain.ledger import JOB_BYTES
from sidecar.domain.memory import Memory, MemoryState


class InMemoryJudging:
    """Implements `JudgeStore`; a part of `InMemoryStore`."""

    _tables: Tables

    async def claim_judge_jobs(self, rule: DueRule, *, now: datetime, limit: int) -> list[JudgeJob]:
        """See `JudgeStore.claim_judge_jobs`."""
        due = [(key, entry) for key, entry in self._tables.judge_jobs.items() if self._is_due(key, entry, rule, now)]
        due.sort(key=lambda item: (item[1].next_try_at is not None, item[1].next_try_at or now, item[1].number))
        claimed = []
        for key, entry in due[:limit]:
            if self._judged_memory(key) is None:
                del self._tables.judge_jobs[key]
                continue
            entry.leased_until = now + rule.lease
            claimed.append(JudgeJob(key, entry.revision, entry.attempts))
        return claimed

    async def judge_case(self, job: JudgeJob) -> JudgeCase | None:
        """See `JudgeStore.judge_case`."""
        memory = self._judged_memory(job.key)
        if memory is None:
            return None
        before, after = self._texts(job.key)
        if not after:
            return None
        return JudgeCase(
            memory_id=memory.id,
            content=memory.content,
            memory_type=memory.type,
            age_days=case_age_days(memory.created_at, self._first_shown(job.key) or memory.created_at),
            others=self._others(job.key),
            before=before,
            after=within_case(after),
        )

    async def save_verdicts(
        self, verdicts: Sequence[tuple[JudgeJob, Verdict]], *, judge: str, now: datetime
    ) -> list[StoredVerdict]:
        """See `JudgeStore.save_verdicts`."""
        saved = (self._save(job, verdict, judge=judge, now=now) for job, verdict in verdicts)
        return [stored for stored in saved if stored is not None]

    async def end_judge_jobs(self, jobs: Sequence[JudgeJob]) -> None:
        """See `JudgeStore.end_judge_jobs`."""
        for job in jobs:
            self._end(job)

    async def release_judge_jobs(self, jobs: Sequence[JudgeJob], *, next_try_at: datetime) -> None:
        """See `JudgeStore.release_judge_jobs`."""
        for job in jobs:
            entry = self._tables.judge_jobs.get(job.key)
            if entry is not None:
                entry.leased_until, entry.next_try_at = None, next_try_at

    async def fail_judge_job(self, job: JudgeJob, *, reason: str, next_try_at: datetime | None) -> None:
        """See `JudgeStore.fail_judge_job`."""
        entry = self._tables.judge_jobs.get(job.key)
        if entry is None:
            return
        entry.state = JobState.PARKED if next_try_at is None else JobState.WAITING
        entry.attempts, entry.reason = job.attempts + 1, reason
        entry.leased_until, entry.next_try_at = None, next_try_at

    async def retry_parked_judge_jobs(self, owner: str) -> int:
        """See `JudgeStore.retry_parked_judge_jobs`."""
        parked = [entry for _, entry in self._own_jobs(owner) if entry.state is JobState.PARKED]
        for entry in parked:
            entry.state, entry.attempts, entry.reason = JobState.WAITING, 0, ""
            entry.next_try_at = entry.leased_until = None
        return len(parked)

    async def judge_job_counts(self, owner: str) -> JudgeJobCounts:
        """See `JudgeStore.judge_job_counts`."""
        entries = [entry for _, entry in self._own_jobs(owner)]
        waiting = [entry.created_at for entry in entries if entry.state is JobState.WAITING]
        return JudgeJobCounts(
            waiting=len(waiting),
            done=sum(entry.state is JobState.DONE for entry in entries),
            parked=sum(entry.state is JobState.PARKED for entry in entries),
            oldest_at=min(waiting, default=None),
        )

    async def parked_judge_jobs(self, owner: str, *, limit: int) -> list[ParkedJudgeJob]:
        """See `JudgeStore.parked_judge_jobs`."""
        parked = [(key, entry) for key, entry in self._own_jobs(owner) if entry.state is JobState.PARKED]
        parked.sort(key=lambda item: item[1].number)
        return [ParkedJudgeJob(key, entry.attempts, entry.reason) for key, entry in parked[:limit]]

    async def verdicts(self, owner: str, memory_id: str) -> list[StoredVerdict]:
        """See `JudgeStore.verdicts`."""
        found = [
            stored for key, stored in self._tables.verdicts.items() if (key.owner, key.memory_id) == (owner, memory_id)
        ]
        found.sort(key=lambda stored: (stored.key.client, stored.key.session))
        return sorted(found, key=lambda stored: stored.shown_at, reverse=True)

    async def drop_judged_texts(self, *, quiet_since: datetime, now: datetime) -> int:
        """See `JudgeStore.drop_judged_texts`."""
        sessions: dict[tuple[str, str, str], list[ThreadEntry]] = {}
        for thread in self._tables.threads.values():
            sessions.setdefault((thread.owner, thread.thread.client, thread.thread.session), []).append(thread)
        dropped = 0
        for session, threads in sessions.items():
            jobs = [e for k, e in self._tables.judge_jobs.items() if (k.owner, k.client, k.session) == session]
            read_last = max(thread.read_at for thread in threads)
            is_settled = read_last <= quiet_since and bool(jobs) and all(e.state is JobState.DONE for e in jobs)
            if not any(thread.slices for thread in threads) or not (is_settled or read_last < now - WAITING_LIFE):
                continue
            for thread in threads:
                thread.slices.clear()
            for entry in jobs:
                entry.state, entry.has_lost_text, entry.leased_until = JobState.DONE, True, None
                entry.revision += 1
            dropped += 1
        return dropped

    # --- parts ---

    def _own_jobs(self, owner: str) -> list[tuple[JobKey, JudgeEntry]]:
        return [(key, entry) for key, entry in self._tables.judge_jobs.items() if key.owner == owner]

    def _is_due(self, key: JobKey, entry: JudgeEntry, rule: DueRule, now: datetime) -> bool:
        if entry.state is not JobState.WAITING:
            return False
        if any(moment is not None and moment > now for moment in (entry.next_try_at, entry.leased_until)):
            return False
        threads = self._threads_of(key)
        has_ended = bool(threads) and max(thread.ended_at for thread in threads) >= (
            max(thread.last_seen_at for thread in threads) - CLOCK_SKEW
        )
        idle = min(rule.idle, rule.ended_idle) if has_ended else rule.idle
        return all(thread.read_at <= now - idle for thread in threads) or any(
            thread.gathered_bytes > JOB_BYTES for thread in threads
        )

    def _threads_of(self, key: JobKey) -> list[ThreadEntry]:
        session = (key.owner, key.client, key.session)
        return [
            entry
            for entry in self._tables.threads.values()
            if (entry.owner, entry.thread.client, entry.thread.session) == session
        ]

    def _judged_memory(self, key: JobKey) -> Memory | None:
        memory = self._tables.find(key.owner, key.memory_id)
        return None if memory is None or memory.state is MemoryState.FORGOTTEN else memory

    def _first_shown(self, key: JobKey) -> datetime | None:
        moments = [
            at
            for entry in self._threads_of(key)
            for (memory_id, _), (at, _) in entry.shown.items()
            if memory_id == key.memory_id
        ]
        return min(moments, default=None)

    def _texts(self, key: JobKey) -> tuple[tuple[TranscriptPiece, ...], tuple[TranscriptPiece, ...]]:
        sides: tuple[list[tuple[datetime, int, TranscriptPiece]], ...] = ([], [])
        for entry in self._threads_of(key):
            showings = [moment for (memory_id, _), moment in entry.shown.items() if memory_id == key.memory_id]
            for seq, piece in entry.slices if showings else ():
                if not piece.awaited_call:
                    side = sides[(piece.at, seq) > min(showings)]
                    side.append((piece.at, seq, TranscriptPiece(piece.kind, piece.text)))
        before, after = (tuple(piece for _, _, piece in sorted(side, key=lambda row: row[:2])) for side in sides)
        return before, after

    def _others(self, key: JobKey) -> tuple[str, ...]:
        first: dict[str, datetime] = {}
        for entry in self._threads_of(key):
            for (memory_id, _), (at, _) in entry.shown.items():
                first[memory_id] = min(first.get(memory_id, at), at)
        in_order = sorted((at, memory_id) for memory_id, at in first.items() if memory_id != key.memory_id)
        memories = (self._tables.find(key.owner, memory_id) for _, memory_id in in_order)
        living = (memory for memory in memories if memory is not None and memory.state is not MemoryState.FORGOTTEN)
        return tuple(memory.content for memory in living)[:MAX_OTHERS]

    def _save(self, job: JudgeJob, verdict: Verdict, *, judge: str, now: datetime) -> StoredVerdict | None:
        key = job.key
        entry = self._tables.judge_jobs.get(key)
        if entry is None or self._judged_memory(key) is None:
            self._tables.judge_jobs.pop(key, None)
            return None
        earlier = self._tables.verdicts.get(key)
        if entry.has_lost_text and earlier is not None:
            verdict = renewed(earlier.verdict, verdict)
        stored = StoredVerdict(key, judge, verdict, shown_at=min(self._first_shown(key) or now, now), judged_at=now)
        self._tables.verdicts[key] = stored
        rows = InMemoryLedgerRows(self._tables, key.owner)
        rows.withdraw_judged(key.memory_id, occasion=key.occasion)
        for event in verdict_events(stored):
            rows.add_use(event, occasion=key.occasion)
        recompute(rows, key.memory_id, at=now)
        self._end(job)
        return stored

    def _end(self, job: JudgeJob) -> None:
        entry = self._tables.judge_jobs.get(job.key)
        if entry is not None:
            entry.state = JobState.DONE if entry.revision == job.revision else JobState.WAITING
            entry.attempts, entry.reason = 0, ""
            entry.next_try_at = entry.leased_until = None
