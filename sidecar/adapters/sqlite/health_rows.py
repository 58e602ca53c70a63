"""Reads what an analysis of health looks at, page by page, each a short read of its own."""

from collections.abc import Sequence
from typing import Final, Protocol

import apsw

from sidecar.adapters.sqlite.connection import Row, Value, fetch_all, placeholders
from sidecar.adapters.sqlite.values import from_us
from sidecar.domain.health_report import ContradictionRow, EmbedJobRow, MemoryRow
from sidecar.domain.maintenance import HealthRow
from sidecar.domain.memory import MemoryType
from sidecar.domain.namespace import NamespaceScope

PAGE_ROWS: Final = 5_000

HealthPage = tuple[list[HealthRow], int]
"""Rows, and the place of the last one looked at; 0 if there are no more."""


class ReadPage(Protocol):
    """Reads one page of one kind of row."""

    def __call__(self, connection: apsw.Connection, owner: str, scope: NamespaceScope, after: int) -> HealthPage:
        """Return the rows behind a place, 0 being the beginning."""
        ...


# Left to itself, the engine finds all rows of the owner by an index and sorts them, for each page anew.
_MEMORIES: Final = (
    "SELECT m.key, m.id, m.confidence, m.type, m.created_at FROM memories m NOT INDEXED "
    "WHERE m.key > ? AND m.owner = ? AND m.state = 'active' AND {} ORDER BY m.key LIMIT ?"
)
_LAST_OUTCOMES: Final = (
    "SELECT key, max(at) FROM validation_events WHERE key BETWEEN ? AND ? AND kind IN ('succeeded', 'failed') "
    "GROUP BY key"
)
# A person who ended a dispute about one of the two, after they were found to contradict, has looked at it.
_CONTRADICTIONS: Final = (
    "SELECT e.id, s.id, t.id, e.created_at, s.state = 'active' AND t.state = 'active', "
    "EXISTS (SELECT 1 FROM edges x WHERE x.relation = 'supersedes' AND ("
    "x.source_key = e.source_key AND x.target_key = e.target_key OR "
    "x.source_key = e.target_key AND x.target_key = e.source_key)), "
    "EXISTS (SELECT 1 FROM disputes d WHERE d.key IN (e.source_key, e.target_key) AND d.resolution <> '' "
    "AND d.resolved_at >= e.created_at) "
    "FROM edges e JOIN memories s ON s.key = e.source_key JOIN memories t ON t.key = e.target_key "
    "WHERE e.id > ? AND e.owner = ? AND e.relation = 'contradicts' AND ({} OR {}) ORDER BY e.id LIMIT ?"
)
_JOBS: Final = (
    "SELECT j.key, m.id, j.is_parked, j.queued_at FROM embed_jobs j CROSS JOIN memories m ON m.key = j.key "
    "WHERE j.key > ? AND m.owner = ? AND m.state = 'active' AND {} ORDER BY j.key LIMIT ?"
)


def memory_rows(connection: apsw.Connection, owner: str, scope: NamespaceScope, after: int) -> HealthPage:
    """Return active memories with a key above that."""
    condition, names = _in_scope("m", scope)
    rows = fetch_all(connection, _MEMORIES.format(condition), [after, owner, *names, PAGE_ROWS])
    if not rows:
        return [], 0
    outcomes: dict[int, int] = dict(fetch_all(connection, _LAST_OUTCOMES, (rows[0][0], rows[-1][0])))
    return [_memory_row(row, outcomes.get(row[0])) for row in rows], _last(rows)


def contradiction_rows(connection: apsw.Connection, owner: str, scope: NamespaceScope, after: int) -> HealthPage:
    """Return `contradicts` edges with an id above that."""
    of_source, names = _in_scope("s", scope)
    of_target, _ = _in_scope("t", scope)
    arguments: list[Value] = [after, owner, *names, *names, PAGE_ROWS]
    rows = fetch_all(connection, _CONTRADICTIONS.format(of_source, of_target), arguments)
    found: list[HealthRow] = [
        ContradictionRow(row[1], row[2], from_us(row[3]), bool(row[4]), bool(row[5]), bool(row[6])) for row in rows
    ]
    return found, _last(rows)


def job_rows(connection: apsw.Connection, owner: str, scope: NamespaceScope, after: int) -> HealthPage:
    """Return embed jobs of active memories with a key above that."""
    condition, names = _in_scope("m", scope)
    rows = fetch_all(connection, _JOBS.format(condition), [after, owner, *names, PAGE_ROWS])
    return [EmbedJobRow(row[1], bool(row[2]), from_us(row[3])) for row in rows], _last(rows)


HEALTH_PAGES: Final[tuple[ReadPage, ...]] = (memory_rows, contradiction_rows, job_rows)


def _memory_row(row: Row, last_outcome_at: int | None) -> MemoryRow:
    _, memory_id, confidence, memory_type, created_at = row
    confirmed_at = None if last_outcome_at is None else from_us(last_outcome_at)
    # By position: names cost a quarter more, a hundred thousand times.
    return MemoryRow(memory_id, confidence, memory_type == MemoryType.GOLDEN_RULE, from_us(created_at), confirmed_at)


def _in_scope(table: str, scope: NamespaceScope) -> tuple[str, Sequence[str]]:
    if scope.covers_everything:
        return "1", ()
    return f"{table}.namespace IN ({placeholders(len(scope.names))})", scope.names


def _last(rows: Sequence[Row]) -> int:
    return int(rows[-1][0]) if len(rows) == PAGE_ROWS else 0
