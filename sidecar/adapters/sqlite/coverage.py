"""Reads what is known of sessions and clients: their coverage, and the slices gathered for the judge."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

import apsw

from sidecar.adapters.sqlite import evidence
from sidecar.adapters.sqlite.connection import Row, fetch_all, fetch_one, fetch_value
from sidecar.adapters.sqlite.values import from_us
from sidecar.domain.coverage import HOOK_SUFFIX, CallTally, ClientCoverage, summarise_coverage
from sidecar.domain.evidence import (
    SessionCoverage,
    SessionRecall,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    UnknownReason,
    Valence,
)
from sidecar.domain.ledger import CallKind

_THREAD_COLUMNS = "e.id, e.client, e.session, e.agent_id, e.project, e.client_version, e.first_seen_at, e.last_seen_at"


def sessions(connection: apsw.Connection, owner: str, *, limit: int) -> list[SessionCoverage]:
    """See `EvidenceStore.sessions`; one for each thread, sub-agents' own included."""
    rows = fetch_all(
        connection,
        f"SELECT {_THREAD_COLUMNS} FROM evidence_sessions e WHERE e.owner = ? "
        "ORDER BY e.last_seen_at DESC, e.id DESC LIMIT ?",
        (owner, limit),
    )
    return [_coverage(connection, owner, row) for row in rows]


def clients(connection: apsw.Connection, owner: str, client: str) -> list[ClientCoverage]:
    """See `EvidenceStore.coverage`."""
    rows = fetch_all(
        connection,
        "SELECT e.client, e.client_version, c.state, c.reason, count(*), "
        # Ids stand with one space between them.
        "sum(iif(c.memory_ids = '', 0, 1 + length(c.memory_ids) - length(replace(c.memory_ids, ' ', '')))) "
        "FROM evidence_sessions e JOIN evidence_calls c ON c.thread = e.id "
        "WHERE e.owner = ?1 AND (?2 = '' OR e.client IN (?2, ?3)) AND c.kind = ?4 GROUP BY 1, 2, 3, 4",
        (owner, client, client + HOOK_SUFFIX, CallKind.RECALL),
    )
    calls = [
        CallTally(
            client=row[0],
            client_version=row[1],
            state=ShownState(row[2]),
            reason=UnknownReason(row[3]) if row[3] else None,
            count=row[4],
            shown=row[5],
        )
        for row in rows
    ]
    names = (client, client + HOOK_SUFFIX) if client else ("",)
    return summarise_coverage(calls, [one for name in names for one in evidence.cursors(connection, owner, name)])


def session_recalls(connection: apsw.Connection, owner: str, client: str, session: str) -> list[SessionRecall]:
    """See `EvidenceStore.session_recalls`."""
    used = {
        row[0]
        for row in fetch_all(
            connection,
            "SELECT DISTINCT u.memory_id FROM evidence_sessions e JOIN shown s ON s.thread = e.id "
            "JOIN usage_events u ON u.owner = s.owner AND u.memory_id = s.memory_id "
            "WHERE e.owner = ?1 AND e.client = ?2 AND e.session = ?3 AND u.client = ?2 AND u.session = ?3 "
            "AND u.valence = ?4",
            (owner, client, session, Valence.USEFUL),
        )
    }
    rows = fetch_all(
        connection,
        "SELECT c.call_id, c.tool, e.agent_id, c.at, c.state, c.memory_ids, c.reason FROM evidence_sessions e "
        "JOIN evidence_calls c ON c.thread = e.id "
        "WHERE e.owner = ? AND e.client = ? AND e.session = ? AND c.kind = ? ORDER BY c.id",
        (owner, client, session, CallKind.RECALL),
    )
    return [_session_recall(row, used) for row in rows]


def slices(
    connection: apsw.Connection, owner: str, thread: SessionThread, memory_id: str
) -> list[tuple[SliceKind, str]]:
    """See `EvidenceStore.slices`; ordered by time, then as read."""
    row = fetch_one(
        connection,
        "SELECT s.thread, s.at, s.slice_seq FROM shown s JOIN evidence_sessions e ON e.id = s.thread "
        "WHERE s.owner = ? AND e.client = ? AND e.session = ? AND e.agent_id = ? AND s.memory_id = ? "
        "ORDER BY s.at, s.slice_seq LIMIT 1",
        (owner, thread.client, thread.session, thread.agent_id, memory_id),
    )
    if row is None:
        return []
    rows = fetch_all(
        connection,
        "SELECT kind, text FROM slices WHERE thread = ? AND (at, seq) > (?, ?) AND awaited_call = '' ORDER BY at, seq",
        row,
    )
    return [(SliceKind(kind), text) for kind, text in rows]


def losses(connection: apsw.Connection) -> tuple[int, int]:
    """Return how many shown ids no memory of their owner had, and how many texts were dropped for want of room."""
    row = fetch_one(connection, "SELECT sum(missing_ids), sum(dropped_slices) FROM evidence_sessions") or (0, 0)
    return int(row[0] or 0), int(row[1] or 0)


def _session_recall(row: Row, used: set[str]) -> SessionRecall:
    memory_ids = tuple(row[5].split())
    return SessionRecall(
        call_id=row[0],
        tool=row[1],
        agent_id=row[2],
        at=from_us(row[3]),
        shown=Shown(ShownState(row[4]), memory_ids, UnknownReason(row[6]) if row[6] else None),
        used_memory_ids=tuple(memory_id for memory_id in memory_ids if memory_id in used),
    )


def _coverage(connection: apsw.Connection, owner: str, row: Row) -> SessionCoverage:
    thread_id, client, session = row[:3]
    calls = fetch_all(
        connection,
        "SELECT state, reason, count(*) FROM evidence_calls WHERE thread = ? AND kind = ? GROUP BY 1, 2 ORDER BY 2",
        (thread_id, CallKind.RECALL),
    )
    by_state = dict.fromkeys(ShownState, 0)
    for state, _, count in calls:
        by_state[ShownState(state)] += count
    return SessionCoverage(
        thread=SessionThread(client, session, *row[3:6]),
        first_seen_at=from_us(row[6]),
        last_seen_at=from_us(row[7]),
        recalls=sum(by_state.values()),
        shown=int(
            fetch_value(connection, "SELECT count(DISTINCT memory_id) FROM shown WHERE thread = ?", (thread_id,))
        ),
        nothing_shown=by_state[ShownState.NOTHING],
        cannot_record=by_state[ShownState.CANNOT_RECORD],
        unknown=tuple((reason, count) for state, reason, count in calls if state == ShownState.UNKNOWN),
        used=_used(connection, owner, row),
        waiting_jobs=int(
            fetch_value(
                connection, "SELECT count(*) FROM judge_jobs WHERE thread = ? AND state = 'waiting'", (thread_id,)
            )
        ),
    )


def _used(connection: apsw.Connection, owner: str, row: Row) -> int:
    """Return how many of the memories that this thread was shown its session used."""
    used = fetch_value(
        connection,
        "SELECT count(DISTINCT u.memory_id) FROM shown s JOIN usage_events u ON u.owner = s.owner "
        "AND u.memory_id = s.memory_id WHERE s.thread = ? AND u.owner = ? AND u.valence = ? "
        "AND u.client = ? AND u.session = ?",
        (row[0], owner, Valence.USEFUL, row[1], row[2]),
    )
    return int(used)
