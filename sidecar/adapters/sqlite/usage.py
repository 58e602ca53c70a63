"""Rows of use: claims, events and multipliers. The rules are in sidecar.domain.confirmation."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

from collections.abc import Sequence
from datetime import datetime

import apsw

from sidecar.adapters.sqlite.connection import Row, fetch_all, fetch_one, fetch_value, placeholders
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.domain.confirmation import Citation, Claim, Standing
from sidecar.domain.disputes import Resolution
from sidecar.domain.evidence import DELIVERED, UsageEvent, UsageSource, Valence
from sidecar.domain.memory import Relation
from sidecar.domain.reinforcement import NEUTRAL, Evidence

_EVENT_COLUMNS = (
    "owner, memory_id, credited_id, source, valence, weight, client, session, at, recall_id, is_weak, occasion, "
    "known_at"
)
_CLAIM_COLUMNS = "remember_id, source_id, target_id, relation, client, session, project, at, standing"

_DELIVERED = tuple(DELIVERED.values())
_IS_DELIVERED = f"valence IN ({placeholders(len(_DELIVERED))})"
_SAME_EVENT = "owner = ? AND memory_id = ? AND occasion = ? AND valence = ? AND source = ?"


def insert_event(connection: apsw.Connection, event: UsageEvent, *, occasion: str) -> bool:
    """Store an event unless its occasion has it already, and tell whether it was new."""
    connection.execute(
        f"INSERT OR IGNORE INTO usage_events ({_EVENT_COLUMNS}) VALUES ({placeholders(13)})",
        (
            event.owner,
            event.memory_id,
            event.credited_id,
            event.source or "",
            event.valence,
            event.weight,
            event.client,
            event.session,
            to_us(event.at),
            event.recall_id,
            int(event.is_weak),
            occasion,
            None if event.known_at is None else to_us(event.known_at),
        ),
    )
    return bool(connection.changes())


def events_about(connection: apsw.Connection, owner: str, memory_id: str) -> list[UsageEvent]:
    """See `EvidenceStore.usage_events`."""
    rows = fetch_all(
        connection,
        f"SELECT {_EVENT_COLUMNS} FROM usage_events WHERE id IN ("
        "SELECT id FROM usage_events WHERE owner = ?1 AND memory_id = ?2 "
        "UNION SELECT id FROM usage_events WHERE credited_id = ?2 AND owner = ?1) ORDER BY at DESC, id DESC",
        (owner, memory_id),
    )
    return [_event_from_row(row) for row in rows]


def votes(connection: apsw.Connection, owner: str, memory_ids: Sequence[str]) -> dict[str, list[UsageEvent]]:
    """Return what was said for and against these memories or credited to them, by memory, the oldest first."""
    found: dict[str, list[UsageEvent]] = {}
    for memory_id in memory_ids:
        rows = fetch_all(
            connection,
            f"SELECT {_EVENT_COLUMNS} FROM usage_events WHERE id IN ("
            "SELECT id FROM usage_events WHERE owner = ?1 AND memory_id = ?2 AND valence IN ('useful', 'misled') "
            "UNION SELECT id FROM usage_events WHERE credited_id = ?2 AND owner = ?1 "
            "AND valence IN ('useful', 'misled')) ORDER BY at, id",
            (owner, memory_id),
        )
        if rows:
            found[memory_id] = [_event_from_row(row) for row in rows]
    return found


def _event_from_row(row: Row) -> UsageEvent:
    return UsageEvent(
        owner=row[0],
        memory_id=row[1],
        credited_id=row[2],
        source=UsageSource(row[3]) if row[3] else None,
        valence=Valence(row[4]),
        weight=row[5],
        client=row[6],
        session=row[7],
        at=from_us(row[8]),
        recall_id=row[9],
        is_weak=bool(row[10]),
        known_at=None if row[12] is None else from_us(row[12]),
    )


def _claim_from_row(row: Row) -> Claim:
    return Claim(
        remember_id=row[0],
        source_id=row[1],
        target_id=row[2],
        relation=Relation(row[3]),
        client=row[4],
        session=row[5],
        project=row[6],
        at=from_us(row[7]),
        standing=Standing(row[8]),
    )


def _identity(event: UsageEvent, occasion: str) -> tuple[str, ...]:
    return event.owner, event.memory_id, occasion, event.valence, event.source or ""


class SqliteConfirmationRows:
    """See `ConfirmationRows`."""

    def __init__(self, connection: apsw.Connection, owner: str) -> None:
        self._connection = connection
        self._owner = owner

    @property
    def owner(self) -> str:
        """See `ConfirmationRows.owner`."""
        return self._owner

    def was_shown(self, client: str, session: str, memory_id: str, *, until: datetime) -> bool:
        """See `ConfirmationRows.was_shown`."""
        found = fetch_value(
            self._connection,
            "SELECT EXISTS (SELECT 1 FROM shown s JOIN evidence_sessions e ON e.id = s.thread "
            "WHERE s.owner = ?1 AND s.memory_id = ?4 AND e.client = ?2 AND e.session = ?3 AND s.at <= ?5) "
            "OR EXISTS (SELECT 1 FROM usage_events WHERE owner = ?1 AND memory_id = ?4 "
            f"AND client = ?2 AND session = ?3 AND at <= ?5 AND {_IS_DELIVERED})",
            (self._owner, client, session, memory_id, to_us(until), *_DELIVERED),
        )
        return bool(found)

    def was_delivered(self, client: str, project: str, memory_id: str, *, since: datetime, until: datetime) -> bool:
        """See `ConfirmationRows.was_delivered`."""
        found = fetch_value(
            self._connection,
            "SELECT EXISTS (SELECT 1 FROM usage_events u JOIN recalls r ON r.recall_id = u.recall_id "
            f"WHERE u.owner = ? AND u.memory_id = ? AND u.{_IS_DELIVERED} AND r.client = ? AND r.project = ? "
            "AND r.at BETWEEN ? AND ?)",
            (self._owner, memory_id, *_DELIVERED, client, project, to_us(since), to_us(until)),
        )
        return bool(found)

    def save_claim(self, claim: Claim) -> None:
        """See `ConfirmationRows.save_claim`."""
        self._connection.execute(
            f"INSERT INTO claims (owner, {_CLAIM_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (owner, remember_id, target_id, relation) DO UPDATE SET client = excluded.client, "
            "session = excluded.session, project = excluded.project, standing = excluded.standing",
            (
                self._owner,
                claim.remember_id,
                claim.source_id,
                claim.target_id,
                claim.relation,
                claim.client,
                claim.session,
                claim.project,
                to_us(claim.at),
                claim.standing,
            ),
        )

    def claims_of(self, source_id: str) -> Sequence[Claim]:
        """See `ConfirmationRows.claims_of`."""
        rows = fetch_all(
            self._connection,
            f"SELECT {_CLAIM_COLUMNS} FROM claims WHERE owner = ? AND source_id = ? ORDER BY at, id",
            (self._owner, source_id),
        )
        return [_claim_from_row(row) for row in rows]

    def claims_on(self, client: str, session: str, target_id: str) -> Sequence[Claim]:
        """See `ConfirmationRows.claims_on`."""
        rows = fetch_all(
            self._connection,
            f"SELECT {_CLAIM_COLUMNS} FROM claims WHERE owner = ? AND target_id = ? AND client = ? AND session = ? "
            "ORDER BY at, id",
            (self._owner, target_id, client, session),
        )
        return [_claim_from_row(row) for row in rows]

    def save_citation(self, citation: Citation) -> None:
        """See `ConfirmationRows.save_citation`."""
        self._connection.execute(
            "INSERT INTO citations (owner, client, session, memory_id, at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
            (self._owner, citation.client, citation.session, citation.memory_id, to_us(citation.at)),
        )

    def citation(self, client: str, session: str, memory_id: str) -> Citation | None:
        """See `ConfirmationRows.citation`."""
        at = fetch_value(
            self._connection,
            "SELECT at FROM citations WHERE owner = ? AND client = ? AND session = ? AND memory_id = ?",
            (self._owner, client, session, memory_id),
        )
        return None if at is None else Citation(client, session, memory_id, from_us(at))

    def add_use(self, event: UsageEvent, *, occasion: str) -> bool:
        """See `ConfirmationRows.add_use`."""
        return insert_event(self._connection, event, occasion=occasion)

    def withdraw_use(self, event: UsageEvent, *, occasion: str) -> str:
        """See `ConfirmationRows.withdraw_use`."""
        credited_id = self._credited_id(event, occasion)
        self._connection.execute(f"DELETE FROM usage_events WHERE {_SAME_EVENT}", _identity(event, occasion))
        return credited_id

    def withdraw_judged(self, memory_id: str, *, occasion: str) -> None:
        """See `ConfirmationRows.withdraw_judged`."""
        self._connection.execute(
            "DELETE FROM usage_events WHERE owner = ? AND memory_id = ? AND occasion = ? AND source = ?",
            (self._owner, memory_id, occasion, UsageSource.JUDGE),
        )

    def pass_credit(self, event: UsageEvent, *, occasion: str) -> str:
        """See `ConfirmationRows.pass_credit`."""
        before = self._credited_id(event, occasion)
        self._connection.execute(
            f"UPDATE usage_events SET credited_id = ?, known_at = ? WHERE {_SAME_EVENT}",
            (
                event.credited_id,
                None if event.known_at is None else to_us(event.known_at),
                *_identity(event, occasion),
            ),
        )
        return before

    def passed_credits(self, memory_id: str) -> Sequence[tuple[UsageEvent, str]]:
        """See `ConfirmationRows.passed_credits`."""
        rows = fetch_all(
            self._connection,
            f"SELECT {_EVENT_COLUMNS} FROM usage_events WHERE credited_id = ?1 AND owner = ?2 AND memory_id <> ?1 "
            "ORDER BY id",
            (memory_id, self._owner),
        )
        return [(_event_from_row(row), row[11]) for row in rows]

    def _credited_id(self, event: UsageEvent, occasion: str) -> str:
        found = fetch_value(
            self._connection,
            f"SELECT credited_id FROM usage_events WHERE {_SAME_EVENT}",
            _identity(event, occasion),
        )
        return str(found or "")

    def credits(self, memory_id: str, *, since: datetime) -> Sequence[UsageEvent]:
        """See `ConfirmationRows.credits`."""
        rows = fetch_all(
            self._connection,
            f"SELECT {_EVENT_COLUMNS} FROM usage_events WHERE id IN ("
            "SELECT id FROM usage_events WHERE credited_id = ? AND at >= ? AND owner = ? "
            "UNION SELECT id FROM usage_events WHERE owner = ? AND memory_id = ? AND at >= ?) "
            f"AND NOT {_IS_DELIVERED} ORDER BY id",
            (memory_id, to_us(since), self._owner, self._owner, memory_id, to_us(since), *_DELIVERED),
        )
        return [_event_from_row(row) for row in rows]

    def cleared_at(self, memory_id: str) -> datetime | None:
        """See `ConfirmationRows.cleared_at`."""
        at = fetch_value(
            self._connection,
            "SELECT max(d.resolved_at) FROM disputes d JOIN memories m ON m.key = d.key "
            "WHERE m.id = ? AND m.owner = ? AND d.resolution = ?",
            (memory_id, self._owner, Resolution.KEEP),
        )
        return None if at is None else from_us(at)

    def multiplier_in_use(self, memory_id: str) -> tuple[float, Evidence]:
        """See `ConfirmationRows.multiplier_in_use`."""
        row = fetch_one(
            self._connection,
            "SELECT x.value, x.useful, x.misled FROM multipliers x JOIN memories m ON m.key = x.key "
            "WHERE m.id = ? AND m.owner = ?",
            (memory_id, self._owner),
        )
        return (NEUTRAL, Evidence()) if row is None else (row[0], Evidence(row[1], row[2]))

    def save_multiplier(self, memory_id: str, value: float, evidence: Evidence, *, at: datetime) -> None:
        """See `ConfirmationRows.save_multiplier`; for a memory that is gone nothing is stored, nor without evidence."""
        if evidence == Evidence():
            self._connection.execute(
                "DELETE FROM multipliers WHERE key = (SELECT key FROM memories WHERE id = ? AND owner = ?)",
                (memory_id, self._owner),
            )
            return
        self._connection.execute(
            "INSERT OR REPLACE INTO multipliers (key, value, useful, misled, computed_at) "
            "SELECT key, ?, ?, ?, ? FROM memories WHERE id = ? AND owner = ?",
            (value, evidence.useful, evidence.misled, to_us(at), memory_id, self._owner),
        )
