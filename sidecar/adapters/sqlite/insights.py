"""Counts use, from the views of the schema. Reads only."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Final

import apsw

from sidecar.adapters.sqlite import recorded_recalls, usage
from sidecar.adapters.sqlite.connection import fetch_all, fetch_value
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.domain.disputes import Resolution
from sidecar.domain.metrics import ClientCounts, MetricCounts, SeriesName, Window
from sidecar.domain.replay import RecordedRecall, UseHistory

_EPOCH: Final = date(1970, 1, 1)
_IN_WINDOW: Final = "owner = ?1 AND at >= ?2 AND at < ?3"

_SURFACED: Final = f"SELECT count(DISTINCT memory_id) FROM deliveries WHERE {_IN_WINDOW}"
_USED: Final = (
    f"SELECT count(*) FROM (SELECT memory_id FROM deliveries WHERE {_IN_WINDOW} "
    f"INTERSECT SELECT memory_id FROM counted_uses WHERE {_IN_WINDOW})"
)
_RECURRING: Final = (
    f"SELECT count(*) FROM (SELECT memory_id FROM deliveries WHERE {_IN_WINDOW} "
    "GROUP BY memory_id HAVING count(DISTINCT recall_id) >= 2)"
)
_JUDGED: Final = f"SELECT count(DISTINCT memory_id) FROM judged_memories WHERE {_IN_WINDOW}"
_RELEVANT: Final = f"{_JUDGED} AND is_relevant"
_VERDICTS: Final = f"SELECT count(*) FROM judged_memories WHERE {_IN_WINDOW}"
_SESSION_RECALLS: Final = (
    f"SELECT count(*) FROM (SELECT DISTINCT client, session, call FROM session_recalls s WHERE {_IN_WINDOW})"
)
# Whenever in its session the memory was used: a use may be told after the window's last day. The uses are looked up
# once: asked for each delivery, they took half a minute for a hundred thousand of them.
_USEFUL_RECALLS: Final = (
    f"SELECT count(*) FROM (SELECT DISTINCT client, session, call FROM session_recalls s WHERE {_IN_WINDOW} "
    "AND (client, session, memory_id) IN (SELECT client, session, memory_id FROM counted_uses WHERE owner = ?1))"
)
_SERIES: Final = {
    SeriesName.RECALLS: f"SELECT day, count(*) FROM asked_recalls WHERE {_IN_WINDOW} GROUP BY day",
    SeriesName.EMPTY_RECALLS: (
        f"SELECT day, count(*) FROM asked_recalls WHERE {_IN_WINDOW} AND memory_count = 0 GROUP BY day"
    ),
    SeriesName.SURFACED: f"SELECT day, count(*) FROM deliveries WHERE {_IN_WINDOW} GROUP BY day",
    SeriesName.JUDGED: f"SELECT day, count(*) FROM judged_memories WHERE {_IN_WINDOW} GROUP BY day",
    SeriesName.RELEVANT: f"SELECT day, count(*) FROM judged_memories WHERE {_IN_WINDOW} AND is_relevant GROUP BY day",
    SeriesName.USED: (
        f"SELECT day, count(*) FROM (SELECT DISTINCT day, client, session, memory_id FROM counted_uses "
        f"WHERE {_IN_WINDOW}) GROUP BY day"
    ),
    SeriesName.CAPTURED: (
        "SELECT created_at / 86400000000, count(*) FROM memories "
        "WHERE owner = ?1 AND created_at >= ?2 AND created_at < ?3 GROUP BY 1"
    ),
}
_CLIENT_COUNTS: Final = {
    "answered": f"SELECT client, count(*) FROM asked_recalls WHERE {_IN_WINDOW} GROUP BY client",
    "recalls": "SELECT client, count(*) FROM evidence_calls WHERE {recalls} GROUP BY client",
    "known": "SELECT client, count(*) FROM evidence_calls WHERE {recalls} AND state IN ('ids', 'nothing') GROUP BY 1",
    "cannot_record": (
        "SELECT client, count(*) FROM evidence_calls WHERE {recalls} AND state = 'cannot_record' GROUP BY 1"
    ),
    "unknown": "SELECT client, count(*) FROM evidence_calls WHERE {recalls} AND state = 'unknown' GROUP BY 1",
    "shown": (
        "SELECT client, count(*) FROM (SELECT DISTINCT e.client, e.session, s.memory_id FROM shown s "
        "JOIN evidence_sessions e ON e.id = s.thread WHERE s.owner = ?1 AND s.at >= ?2 AND s.at < ?3) GROUP BY client"
    ),
    "judged": f"SELECT client, count(*) FROM judged_memories WHERE {_IN_WINDOW} GROUP BY client",
    "used": (
        "SELECT client, count(*) FROM (SELECT DISTINCT client, session, memory_id FROM counted_uses "
        f"WHERE {_IN_WINDOW}) GROUP BY client"
    ),
}
# Any session that had a recall in the window; when it was found to have used something does not matter.
_USED_IN_SESSIONS: Final = (
    "SELECT DISTINCT c.client, c.session, c.memory_id FROM counted_uses c WHERE c.owner = ?1 AND (c.client, c.session) "
    "IN (SELECT r.client, r.session FROM asked_recalls r WHERE r.owner = ?1 AND r.at >= ?2 AND r.at < ?3)"
)
_RECORDED: Final = (
    "SELECT r.recall_id, r.client, r.session, r.at, c.delivered, c.is_unreinforced, c.candidates "
    "FROM asked_recalls r JOIN recall_candidates c ON c.recall_id = r.recall_id "
    "WHERE r.owner = ?1 AND r.at >= ?2 AND r.at < ?3 ORDER BY r.at, r.recall_id"
)
_CLEARINGS: Final = (
    "SELECT m.id, d.resolved_at FROM disputes d JOIN memories m ON m.key = d.key "
    f"WHERE d.owner = ?1 AND d.resolution = '{Resolution.KEEP}' ORDER BY d.resolved_at"
)
_RECALLS_IN_TRANSCRIPTS: Final = f"{_IN_WINDOW} AND kind = 'recall'"


def metric_counts(connection: apsw.Connection, owner: str, window: Window) -> MetricCounts:
    """See `InsightsStore.metric_counts`."""
    bound = (owner, to_us(window.since), to_us(window.until))
    return MetricCounts(
        surfaced=int(fetch_value(connection, _SURFACED, bound)),
        used=int(fetch_value(connection, _USED, bound)),
        recurring=int(fetch_value(connection, _RECURRING, bound)),
        judged=int(fetch_value(connection, _JUDGED, bound)),
        relevant=int(fetch_value(connection, _RELEVANT, bound)),
        verdicts=int(fetch_value(connection, _VERDICTS, bound)),
        session_recalls=int(fetch_value(connection, _SESSION_RECALLS, bound)),
        useful_recalls=int(fetch_value(connection, _USEFUL_RECALLS, bound)),
        series={name: _by_day(connection, sql, bound) for name, sql in _SERIES.items()},
        clients=_clients(connection, bound),
    )


def recorded(
    connection: apsw.Connection, owner: str, window: Window
) -> tuple[list[RecordedRecall], dict[str, UseHistory]]:
    """See `InsightsStore.recorded_recalls`."""
    bound = (owner, to_us(window.since), to_us(window.until))
    used: dict[tuple[str, str], set[str]] = {}
    for client, session, memory_id in fetch_all(connection, _USED_IN_SESSIONS, bound):
        used.setdefault((client, session), set()).add(memory_id)
    recalls = [
        RecordedRecall(
            recall_id=row[0],
            client=row[1],
            session=row[2],
            at=from_us(row[3]),
            delivered=row[4],
            is_unreinforced=bool(row[5]),
            candidates=recorded_recalls.candidates_from(row[6]),
            used_ids=frozenset(used.get((row[1], row[2]), ())) if row[2] else frozenset(),
        )
        for row in fetch_all(connection, _RECORDED, bound)
    ]
    memory_ids = {candidate.memory_id for recall in recalls for candidate in recall.candidates}
    cleared: dict[str, list[datetime]] = {}
    for memory_id, at in fetch_all(connection, _CLEARINGS, (owner,)):
        cleared.setdefault(memory_id, []).append(from_us(at))
    votes = usage.votes(connection, owner, sorted(memory_ids))
    return recalls, {
        memory_id: UseHistory(tuple(events), tuple(cleared.get(memory_id, ()))) for memory_id, events in votes.items()
    }


def _by_day(connection: apsw.Connection, sql: str, bound: tuple[str, int, int]) -> Mapping[date, int]:
    return {_EPOCH + timedelta(days=day): count for day, count in fetch_all(connection, sql, bound)}


def _clients(connection: apsw.Connection, bound: tuple[str, int, int]) -> tuple[ClientCounts, ...]:
    clients: dict[str, ClientCounts] = {}
    for name, sql in _CLIENT_COUNTS.items():
        for client, count in fetch_all(connection, sql.format(recalls=_RECALLS_IN_TRANSCRIPTS), bound):
            known = clients.get(client, ClientCounts(client))
            clients[client] = replace(known, **{name: count})
    return tuple(clients.values())
