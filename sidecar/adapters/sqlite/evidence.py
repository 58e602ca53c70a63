"""Rows of the ledger: threads, calls, what was shown, slices, judge jobs, cursors. The rules are in the domain."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import apsw

from sidecar.adapters.sqlite import judging
from sidecar.adapters.sqlite.connection import Row, fetch_all, fetch_one, fetch_value, placeholders
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import SqliteConfirmationRows
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.domain.evidence import (
    BatchOutcome,
    EvidenceBatch,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TranscriptCursor,
    UnknownReason,
)
from sidecar.domain.ledger import IDLE_LIFE, Call, CallKind, LedgerRows, Slice, Thread, is_older_cursor, take_events

_CURSOR_COLUMNS = (
    "client, path, file_id, offset_bytes, line_hash, generation, parser_version, lines_read, skipped, reader_state"
)


def apply_batch(transaction: Transaction, owner: str, batch: EvidenceBatch, *, at: datetime) -> BatchOutcome:
    """See `EvidenceStore.apply_batch`."""
    rows: LedgerRows = SqliteLedgerRows(transaction.connection, owner, read_at=at)
    outcome = take_events(rows, batch.events, at=at)
    _save_cursor(transaction.connection, owner, batch.cursor)
    return outcome


def cursors(connection: apsw.Connection, owner: str, client: str) -> list[TranscriptCursor]:
    """See `EvidenceStore.cursors`; ordered by client and path."""
    rows = fetch_all(
        connection,
        f"SELECT {_CURSOR_COLUMNS} FROM cursors WHERE owner = ?1 AND (?2 = '' OR client = ?2) ORDER BY client, path",
        (owner, client),
    )
    return [_cursor_from_row(row) for row in rows]


def forget_idle_slices(transaction: Transaction, *, now: datetime) -> bool:
    """Delete texts that no judge waits for, of sessions read last a day ago; tell whether there were any."""
    transaction.connection.execute(
        "DELETE FROM slices WHERE thread IN (SELECT e.id FROM evidence_sessions e "
        "WHERE e.slice_bytes > 0 AND e.read_at < ? AND NOT EXISTS (SELECT 1 FROM judge_jobs j "
        "WHERE j.owner = e.owner AND j.client = e.client AND j.session = e.session AND j.state <> 'done'))",
        (to_us(now - IDLE_LIFE),),
    )
    return bool(transaction.connection.changes())


def end_session(connection: apsw.Connection, owner: str, client: str, session: str, *, at: datetime) -> bool:
    """See `EvidenceStore.end_session`."""
    connection.execute(
        "UPDATE evidence_sessions SET ended_at = max(ended_at, ?) WHERE owner = ? AND client = ? AND session = ?",
        (to_us(at), owner, client, session),
    )
    return bool(connection.changes())


def _save_cursor(connection: apsw.Connection, owner: str, cursor: TranscriptCursor) -> None:
    row = fetch_one(
        connection,
        f"SELECT {_CURSOR_COLUMNS} FROM cursors WHERE owner = ? AND client = ? AND path = ?",
        (owner, cursor.client, cursor.path),
    )
    if row is not None and is_older_cursor(cursor, _cursor_from_row(row)):
        return
    connection.execute(
        f"INSERT OR REPLACE INTO cursors (owner, {_CURSOR_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            owner,
            cursor.client,
            cursor.path,
            cursor.file_id,
            cursor.offset,
            cursor.line_hash,
            cursor.generation,
            cursor.parser_version,
            cursor.lines_read,
            json.dumps(cursor.skipped),
            cursor.reader_state,
        ),
    )


def _cursor_from_row(row: Row) -> TranscriptCursor:
    return TranscriptCursor(
        client=row[0],
        path=row[1],
        file_id=row[2],
        offset=row[3],
        line_hash=row[4],
        generation=row[5],
        parser_version=row[6],
        lines_read=row[7],
        skipped=tuple((str(reason), int(count)) for reason, count in json.loads(row[8])),
        reader_state=row[9],
    )


class SqliteLedgerRows(SqliteConfirmationRows):
    """See `LedgerRows`."""

    def __init__(self, connection: apsw.Connection, owner: str, *, read_at: datetime) -> None:
        super().__init__(connection, owner)
        self._read_at = read_at

    def mark_seen(self, digest: bytes) -> bool:
        """See `LedgerRows.mark_seen`."""
        self._connection.execute("INSERT OR IGNORE INTO evidence_events (digest) VALUES (?)", (digest,))
        return bool(self._connection.changes())

    def thread(self, thread: SessionThread, *, at: datetime) -> Thread:
        """See `LedgerRows.thread`; project and version are those it was last seen with."""
        thread_id = fetch_value(
            self._connection,
            "INSERT INTO evidence_sessions (owner, client, session, agent_id, project, client_version, "
            "first_seen_at, last_seen_at, read_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8) "
            "ON CONFLICT (owner, client, session, agent_id) DO UPDATE SET "
            "first_seen_at = min(first_seen_at, excluded.first_seen_at), "
            "last_seen_at = max(last_seen_at, excluded.last_seen_at), "
            "read_at = max(read_at, excluded.read_at), "
            "project = iif(excluded.project = '', project, excluded.project), "
            "client_version = iif(excluded.client_version = '', client_version, excluded.client_version) "
            "RETURNING id",
            (
                self._owner,
                thread.client,
                thread.session,
                thread.agent_id,
                thread.project,
                thread.client_version,
                to_us(at),
                to_us(self._read_at),
            ),
        )
        return self.thread_by_id(int(thread_id))

    def thread_by_id(self, thread_id: int) -> Thread:
        """See `LedgerRows.thread_by_id`."""
        row = fetch_one(
            self._connection,
            "SELECT id, client, session, has_shown, gathered_bytes FROM evidence_sessions WHERE id = ?",
            (thread_id,),
        )
        assert row is not None, "a call names a thread that the foreign key should have kept"
        return Thread(row[0], row[1], row[2], bool(row[3]), row[4])

    def note_end(self, thread: Thread, *, at: datetime) -> None:
        """See `LedgerRows.note_end`."""
        end_session(self._connection, self._owner, thread.client, thread.session, at=at)

    def call(self, client: str, call_id: str) -> Call | None:
        """See `LedgerRows.call`."""
        row = fetch_one(
            self._connection,
            "SELECT call_id, thread, kind, state, reason, memory_ids, is_answered, at, tool FROM evidence_calls "
            "WHERE owner = ? AND client = ? AND call_id = ?",
            (self._owner, client, call_id),
        )
        if row is None:
            return None
        shown = Shown(ShownState(row[3]), tuple(row[5].split()), UnknownReason(row[4]) if row[4] else None)
        return Call(row[0], row[1], CallKind(row[2]), shown, bool(row[6]), from_us(row[7]), row[8])

    def save_call(self, client: str, call: Call) -> None:
        """See `LedgerRows.save_call`."""
        self._connection.execute(
            "INSERT INTO evidence_calls (owner, client, call_id, thread, kind, tool, state, reason, memory_ids, "
            "is_answered, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (owner, client, call_id) DO UPDATE SET thread = excluded.thread, kind = excluded.kind, "
            "tool = excluded.tool, state = excluded.state, reason = excluded.reason, "
            "memory_ids = excluded.memory_ids, is_answered = excluded.is_answered, at = excluded.at",
            (
                self._owner,
                client,
                call.call_id,
                call.thread_id,
                call.kind,
                call.tool,
                call.shown.state,
                call.shown.reason or "",
                " ".join(call.shown.memory_ids),
                int(call.is_answered),
                to_us(call.at),
            ),
        )

    def existing(self, memory_ids: Sequence[str]) -> list[str]:
        """See `LedgerRows.existing`."""
        rows = fetch_all(
            self._connection,
            f"SELECT id FROM memories WHERE id IN ({placeholders(len(memory_ids))}) AND owner = ?",
            (*memory_ids, self._owner),
        )
        found = {row[0] for row in rows}
        return [memory_id for memory_id in memory_ids if memory_id in found]

    def count_missing(self, thread_id: int, count: int) -> None:
        """See `LedgerRows.count_missing`."""
        self._connection.execute(
            "UPDATE evidence_sessions SET missing_ids = missing_ids + ? WHERE id = ?", (count, thread_id)
        )

    def add_shown(self, thread: Thread, memory_id: str, call: Call, *, at: datetime) -> bool:
        """See `LedgerRows.add_shown`."""
        last_seq = fetch_value(self._connection, "SELECT coalesce(max(seq), 0) FROM slices")
        self._connection.execute(
            "INSERT OR IGNORE INTO shown (owner, thread, memory_id, call_id, at, slice_seq) VALUES (?, ?, ?, ?, ?, ?)",
            (self._owner, thread.id, memory_id, call.call_id, to_us(at), last_seq),
        )
        if not self._connection.changes():
            return False
        self._connection.execute(
            "INSERT OR IGNORE INTO judge_jobs (owner, client, session, memory_id, thread, first_slice_seq, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._owner, thread.client, thread.session, memory_id, thread.id, last_seq + 1, to_us(at)),
        )
        self._connection.execute(
            "UPDATE evidence_sessions SET has_shown = 1, gathered_bytes = 0 WHERE id = ?", (thread.id,)
        )
        self._connection.execute(
            "UPDATE slices SET is_context = 0 WHERE thread = ? AND is_context = 1 AND at >= ?", (thread.id, to_us(at))
        )
        judging.reopen(self._connection, thread.id)
        return True

    def add_slice(self, thread: Thread, piece: Slice) -> None:
        """See `LedgerRows.add_slice`."""
        self._connection.execute(
            "INSERT INTO slices (owner, thread, kind, text, size_bytes, at, is_context, awaited_call) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._owner,
                thread.id,
                piece.kind,
                piece.text,
                piece.size_bytes,
                to_us(piece.at),
                int(piece.is_context),
                piece.awaited_call,
            ),
        )
        if not piece.is_context and not piece.awaited_call:
            judging.reopen(self._connection, thread.id)

    def take_awaiting(self, client: str, call_id: str) -> Slice | None:
        """See `LedgerRows.take_awaiting`."""
        row = fetch_one(
            self._connection,
            "SELECT s.seq, s.kind, s.text, s.size_bytes, s.at FROM slices s "
            "JOIN evidence_sessions e ON e.id = s.thread "
            "WHERE s.owner = ? AND s.awaited_call = ? AND s.awaited_call <> '' AND e.client = ?",
            (self._owner, call_id, client),
        )
        if row is None:
            return None
        self._connection.execute("DELETE FROM slices WHERE seq = ?", (row[0],))
        return Slice(SliceKind(row[1]), row[2], row[3], from_us(row[4]))

    def keep_newest_slices(self, *, size_bytes: int) -> None:
        """See `LedgerRows.keep_newest_slices`; a sixteenth more goes, so that not every text costs a deletion."""
        total = (
            fetch_value(self._connection, "SELECT size_bytes FROM slice_totals WHERE owner = ?", (self._owner,)) or 0
        )
        if total <= size_bytes:
            return
        dropped: Counter[int] = Counter()
        last_seq = 0
        oldest = self._connection.execute(
            "SELECT seq, thread, size_bytes FROM slices WHERE owner = ? ORDER BY seq", (self._owner,)
        )
        for seq, thread, size in oldest:
            total -= size
            last_seq = seq
            dropped[thread] += 1
            if total <= size_bytes - size_bytes // 16:
                break
        oldest.close(force=True)
        self._connection.execute("DELETE FROM slices WHERE owner = ? AND seq <= ?", (self._owner, last_seq))
        self._connection.executemany(
            "UPDATE evidence_sessions SET dropped_slices = dropped_slices + ? WHERE id = ?",
            [(count, thread) for thread, count in dropped.items()],
        )
        judging.note_lost_text(self._connection, list(dropped))

    def keep_last_context(self, thread_id: int, *, count: int, size_bytes: int) -> None:
        """See `LedgerRows.keep_last_context`."""
        self._connection.execute(
            "DELETE FROM slices WHERE seq IN (SELECT seq FROM (SELECT seq, "
            "row_number() OVER newest AS place, sum(size_bytes) OVER newest AS total FROM slices "
            "WHERE thread = ?1 AND is_context = 1 "
            "WINDOW newest AS (ORDER BY seq DESC)) WHERE place > 1 AND (place > ?2 OR total > ?3))",
            (thread_id, count, size_bytes),
        )
