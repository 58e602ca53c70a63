"""Rows of judge jobs and verdicts. What a verdict comes to is decided in the domain."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import apsw

from sidecar.adapters.sqlite import reading
from sidecar.adapters.sqlite.connection import Row, fetch_all, fetch_one
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import SqliteConfirmationRows
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.domain.confirmation import CLOCK_SKEW, recompute
from sidecar.domain.judge_jobs import (
    DueRule,
    JobKey,
    JobState,
    JudgeJob,
    JudgeJobCounts,
    ParkedJudgeJob,
    StoredVerdict,
    renewed,
    verdict_events,
)
from sidecar.domain.judgement import Verdict
from sidecar.domain.ledger import JOB_BYTES
from sidecar.domain.memory import MemoryState

_SAME_JOB: Final = "owner = ? AND client = ? AND session = ? AND memory_id = ?"
_VERDICT_COLUMNS: Final = "owner, client, session, memory_id, judge, used, relevant, misled, shown_at, judged_at"
_OF_SESSION: Final = "e.owner = j.owner AND e.client = j.client AND e.session = j.session"
_READ_LAST: Final = f"(SELECT max(e.read_at) FROM evidence_sessions e WHERE {_OF_SESSION})"
_JOBS: Final = "SELECT 1 FROM judge_jobs o WHERE o.owner = j.owner AND o.client = j.client AND o.session = j.session"
_DUE: Final = (
    "SELECT j.owner, j.client, j.session, j.memory_id, j.revision, j.attempts FROM judge_jobs j "
    "WHERE j.state = 'waiting' AND j.next_try_at <= ?1 AND j.leased_until <= ?1 AND ("
    f"NOT EXISTS (SELECT 1 FROM evidence_sessions e WHERE {_OF_SESSION} AND e.read_at > ?2) "
    # Or it said that it ended, and all that was seen of it is from before.
    "OR (SELECT max(e.ended_at) > 0 AND max(e.ended_at) + ?6 >= max(e.last_seen_at) AND max(e.read_at) <= ?5 "
    f"FROM evidence_sessions e WHERE {_OF_SESSION}) "
    # Beyond this nothing more is kept, so that there is nothing to wait for.
    f"OR EXISTS (SELECT 1 FROM evidence_sessions e WHERE {_OF_SESSION} AND e.gathered_bytes > ?3)) "
    "ORDER BY j.next_try_at, j.id LIMIT ?4"
)


def are_any_due(connection: apsw.Connection, *, rule: DueRule, now: datetime) -> bool:
    """Tell whether there is a job to claim; changes nothing."""
    return bool(_due(connection, rule, now=now, limit=1))


def claim(transaction: Transaction, rule: DueRule, *, now: datetime, limit: int) -> list[JudgeJob]:
    """See `JudgeStore.claim_judge_jobs`."""
    connection = transaction.connection
    rows = _due(connection, rule, now=now, limit=limit)
    claimed = []
    for row in rows:
        job = JudgeJob(JobKey(*row[:4]), revision=row[4], attempts=row[5])
        if not _can_be_judged(connection, job.key):
            connection.execute(f"DELETE FROM judge_jobs WHERE {_SAME_JOB}", _values(job.key))
            continue
        connection.execute(
            f"UPDATE judge_jobs SET leased_until = ? WHERE {_SAME_JOB}", (to_us(now + rule.lease), *_values(job.key))
        )
        claimed.append(job)
    return claimed


def save_verdicts(
    transaction: Transaction, verdicts: Sequence[tuple[JudgeJob, Verdict]], *, judge: str, now: datetime
) -> list[StoredVerdict]:
    """See `JudgeStore.save_verdicts`."""
    saved = (_save(transaction.connection, job, verdict, judge=judge, now=now) for job, verdict in verdicts)
    return [stored for stored in saved if stored is not None]


def end(transaction: Transaction, jobs: Sequence[JudgeJob]) -> None:
    """See `JudgeStore.end_judge_jobs`."""
    for job in jobs:
        _end(transaction.connection, job)


def release(transaction: Transaction, jobs: Sequence[JudgeJob], *, next_try_at: datetime) -> None:
    """See `JudgeStore.release_judge_jobs`."""
    transaction.connection.executemany(
        f"UPDATE judge_jobs SET leased_until = 0, next_try_at = ? WHERE {_SAME_JOB}",
        [(to_us(next_try_at), *_values(job.key)) for job in jobs],
    )


def fail(transaction: Transaction, job: JudgeJob, *, reason: str, next_try_at: datetime | None) -> None:
    """See `JudgeStore.fail_judge_job`."""
    state = JobState.PARKED if next_try_at is None else JobState.WAITING
    transaction.connection.execute(
        f"UPDATE judge_jobs SET state = ?, attempts = ?, reason = ?, leased_until = 0, next_try_at = ? "
        f"WHERE {_SAME_JOB}",
        (state, job.attempts + 1, reason, to_us(next_try_at) if next_try_at else 0, *_values(job.key)),
    )


def retry_parked(transaction: Transaction, owner: str) -> int:
    """See `JudgeStore.retry_parked_judge_jobs`."""
    transaction.connection.execute(
        "UPDATE judge_jobs SET state = 'waiting', attempts = 0, reason = '', next_try_at = 0, leased_until = 0 "
        "WHERE owner = ? AND state = 'parked'",
        (owner,),
    )
    return transaction.connection.changes()


def counts(connection: apsw.Connection, owner: str) -> JudgeJobCounts:
    """See `JudgeStore.judge_job_counts`."""
    rows = fetch_all(
        connection, "SELECT state, count(*), min(created_at) FROM judge_jobs WHERE owner = ? GROUP BY state", (owner,)
    )
    by_state = {JobState(state): count for state, count, _ in rows}
    oldest = next((from_us(at) for state, _, at in rows if state == JobState.WAITING), None)
    return JudgeJobCounts(
        waiting=by_state.get(JobState.WAITING, 0),
        done=by_state.get(JobState.DONE, 0),
        parked=by_state.get(JobState.PARKED, 0),
        oldest_at=oldest,
    )


def parked(connection: apsw.Connection, owner: str, *, limit: int) -> list[ParkedJudgeJob]:
    """See `JudgeStore.parked_judge_jobs`."""
    rows = fetch_all(
        connection,
        "SELECT owner, client, session, memory_id, attempts, reason FROM judge_jobs "
        "WHERE owner = ? AND state = 'parked' ORDER BY id LIMIT ?",
        (owner, limit),
    )
    return [ParkedJudgeJob(JobKey(*row[:4]), row[4], row[5]) for row in rows]


def verdicts(connection: apsw.Connection, owner: str, memory_id: str) -> list[StoredVerdict]:
    """See `JudgeStore.verdicts`."""
    rows = fetch_all(
        connection,
        f"SELECT {_VERDICT_COLUMNS} FROM verdicts WHERE owner = ? AND memory_id = ? "
        "ORDER BY shown_at DESC, client, session",
        (owner, memory_id),
    )
    return [_verdict_from_row(row) for row in rows]


def drop_texts(
    transaction: Transaction, *, quiet_since: datetime, abandoned_since: datetime, empty_journal: Callable[[], None]
) -> int:
    """See `JudgeStore.drop_judged_texts`; what was not judged by `abandoned_since` goes in any case."""
    connection = transaction.connection
    sessions = fetch_all(
        connection,
        "SELECT DISTINCT j.owner, j.client, j.session FROM evidence_sessions j WHERE j.slice_bytes > 0 AND ("
        f"{_READ_LAST} < ?2 OR ({_READ_LAST} <= ?1 AND EXISTS ({_JOBS}) "
        f"AND NOT EXISTS ({_JOBS} AND o.state <> 'done')))",
        (to_us(quiet_since), to_us(abandoned_since)),
    )
    for session in sessions:
        of_session = "owner = ? AND client = ? AND session = ?"
        connection.execute(
            f"DELETE FROM slices WHERE thread IN (SELECT id FROM evidence_sessions WHERE {of_session})", session
        )
        connection.execute(
            f"UPDATE judge_jobs SET state = 'done', has_lost_text = 1, leased_until = 0, revision = revision + 1 "
            f"WHERE {of_session}",
            session,
        )
    if sessions:
        transaction.after_commit(empty_journal)
    return len(sessions)


def note_lost_text(connection: apsw.Connection, threads: Sequence[int]) -> None:
    """Note that texts of these threads went before their sessions were over: a new verdict cannot know of them."""
    connection.executemany(
        "UPDATE judge_jobs SET has_lost_text = 1 WHERE (owner, client, session) = "
        "(SELECT owner, client, session FROM evidence_sessions WHERE id = ?)",
        [(thread,) for thread in threads],
    )


def reopen(connection: apsw.Connection, thread: int) -> None:
    """Have the memories that a thread was shown judged anew: something was said in it."""
    connection.execute(
        "UPDATE judge_jobs SET state = iif(state = 'parked', state, 'waiting'), revision = revision + 1, "
        "next_try_at = iif(state = 'done', 0, next_try_at) "
        "WHERE (state = 'done' OR leased_until > 0) AND (owner, client, session) = "
        "(SELECT owner, client, session FROM evidence_sessions WHERE id = ?1) "
        "AND memory_id IN (SELECT memory_id FROM shown WHERE thread = ?1)",
        (thread,),
    )


def _due(connection: apsw.Connection, rule: DueRule, *, now: datetime, limit: int) -> list[Row]:
    return fetch_all(
        connection,
        _DUE,
        (
            to_us(now),
            to_us(now - rule.idle),
            JOB_BYTES,
            limit,
            to_us(now - min(rule.idle, rule.ended_idle)),
            CLOCK_SKEW // timedelta(microseconds=1),
        ),
    )


def _save(
    connection: apsw.Connection, job: JudgeJob, verdict: Verdict, *, judge: str, now: datetime
) -> StoredVerdict | None:
    key = job.key
    known = fetch_one(connection, f"SELECT has_lost_text FROM judge_jobs WHERE {_SAME_JOB}", _values(key))
    if known is None or not _can_be_judged(connection, key):
        connection.execute(f"DELETE FROM judge_jobs WHERE {_SAME_JOB}", _values(key))
        return None
    earlier = fetch_one(connection, f"SELECT {_VERDICT_COLUMNS} FROM verdicts WHERE {_SAME_JOB}", _values(key))
    if known[0] and earlier is not None:
        verdict = renewed(_verdict_from_row(earlier).verdict, verdict)
    shown_at = from_us(_first_shown(connection, key) or to_us(now))
    stored = StoredVerdict(key, judge, verdict, shown_at=min(shown_at, now), judged_at=now)
    connection.execute(
        f"INSERT OR REPLACE INTO verdicts ({_VERDICT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *_values(key),
            judge,
            verdict.used,
            verdict.relevant,
            verdict.misled,
            to_us(stored.shown_at),
            to_us(now),
        ),
    )
    rows = SqliteConfirmationRows(connection, key.owner)
    rows.withdraw_judged(key.memory_id, occasion=key.occasion)
    for event in verdict_events(stored):
        rows.add_use(event, occasion=key.occasion)
    recompute(rows, key.memory_id, at=now)
    _end(connection, job)
    return stored


def _end(connection: apsw.Connection, job: JudgeJob) -> None:
    connection.execute(
        "UPDATE judge_jobs SET state = iif(revision = ?, 'done', 'waiting'), attempts = 0, reason = '', "
        f"next_try_at = 0, leased_until = 0 WHERE {_SAME_JOB}",
        (job.revision, *_values(job.key)),
    )


def _can_be_judged(connection: apsw.Connection, key: JobKey) -> bool:
    memory = reading.find(connection, key.owner, key.memory_id)
    return memory is not None and memory.state is not MemoryState.FORGOTTEN


def _first_shown(connection: apsw.Connection, key: JobKey) -> int | None:
    row = fetch_one(
        connection,
        "SELECT min(s.at) FROM shown s JOIN evidence_sessions e ON e.id = s.thread "
        "WHERE e.owner = ? AND e.client = ? AND e.session = ? AND s.memory_id = ?",
        _values(key),
    )
    return None if row is None else row[0]


def _values(key: JobKey) -> tuple[str, str, str, str]:
    return key.owner, key.client, key.session, key.memory_id


def _verdict_from_row(row: Row) -> StoredVerdict:
    return StoredVerdict(
        key=JobKey(*row[:4]),
        judge=row[4],
        verdict=Verdict(row[3], used=row[5], relevant=row[6], misled=row[7]),
        shown_at=from_us(row[8]),
        judged_at=from_us(row[9]),
    )
