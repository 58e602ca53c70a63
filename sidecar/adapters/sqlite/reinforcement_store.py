"""The reinforcement store on SQLite: leases, multipliers in step with the evidence, and what they rest on."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

import apsw

from sidecar.adapters.sqlite import reading
from sidecar.adapters.sqlite.connection import fetch_all, fetch_value
from sidecar.adapters.sqlite.readers import Readers
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import SqliteConfirmationRows
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.adapters.sqlite.writer import Writer
from sidecar.domain.confirmation import recompute
from sidecar.domain.evidence import Valence
from sidecar.domain.hygiene import WINDOW, EvidencePlace, MemoryEvidence, ReviewItem, by_urgency, review_item
from sidecar.domain.weighing import weigh_events

_PLACES: Final = (
    "SELECT m.key, m.owner, m.id FROM memories m WHERE m.key > ?1 AND ("
    "EXISTS (SELECT 1 FROM multipliers x WHERE x.key = m.key) OR EXISTS (SELECT 1 FROM usage_events u "
    "WHERE u.credited_id = m.id AND u.owner = m.owner AND u.valence IN ('useful', 'misled'))) "
    "ORDER BY m.key LIMIT ?2"
)


class SqliteReinforcement:
    """Implements `ReinforcementStore`; a part of `SqliteStore`, which opens what it works with."""

    _writer: Writer
    _readers: Readers

    async def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """See `ReinforcementStore.take_lease`."""
        return await self._writer.run(partial(_take_lease, name=name, holder=holder, now=now, until=until))

    async def release_lease(self, name: str, holder: str) -> None:
        """See `ReinforcementStore.release_lease`."""
        await self._writer.run(partial(_release_lease, name=name, holder=holder))

    async def evidence_places(self, *, after_key: int, limit: int) -> list[EvidencePlace]:
        """See `ReinforcementStore.evidence_places`."""
        return await self._readers.run(partial(_places, after_key=after_key, limit=limit))

    async def recompute_multipliers(self, places: Sequence[EvidencePlace], *, at: datetime) -> int:
        """See `ReinforcementStore.recompute_multipliers`."""
        return await self._writer.run(partial(_recompute, places=places, at=at))

    async def memory_evidence(self, owner: str, memory_id: str, *, at: datetime) -> MemoryEvidence:
        """See `ReinforcementStore.memory_evidence`."""
        return await self._readers.run(partial(_memory_evidence, owner=owner, memory_id=memory_id, at=at))

    async def review_items(self, owner: str, *, at: datetime, limit: int) -> list[ReviewItem]:
        """See `ReinforcementStore.review_items`."""
        return await self._readers.run(partial(_review_items, owner=owner, at=at, limit=limit))


def _take_lease(transaction: Transaction, *, name: str, holder: str, now: datetime, until: datetime) -> bool:
    transaction.connection.execute(
        "INSERT INTO leases VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?3 "
        "WHERE until <= ?4 OR holder = ?2",
        (name, holder, to_us(until), to_us(now)),
    )
    return bool(transaction.connection.changes())


def _release_lease(transaction: Transaction, *, name: str, holder: str) -> None:
    transaction.connection.execute("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))


def _places(connection: apsw.Connection, *, after_key: int, limit: int) -> list[EvidencePlace]:
    return [EvidencePlace(*row) for row in fetch_all(connection, _PLACES, (after_key, limit))]


def _recompute(transaction: Transaction, *, places: Sequence[EvidencePlace], at: datetime) -> int:
    connection = transaction.connection
    return sum(recompute(SqliteConfirmationRows(connection, place.owner), place.memory_id, at=at) for place in places)


def _memory_evidence(connection: apsw.Connection, *, owner: str, memory_id: str, at: datetime) -> MemoryEvidence:
    memory = reading.get(connection, owner, memory_id)
    rows = SqliteConfirmationRows(connection, owner)
    events = sorted(rows.credits(memory_id, since=at - WINDOW), key=lambda event: event.at, reverse=True)
    surfaced = fetch_value(
        connection,
        "SELECT count(*) FROM usage_events WHERE owner = ? AND memory_id = ? AND valence = ? AND at >= ?",
        (owner, memory_id, Valence.SURFACED, to_us(at - WINDOW)),
    )
    return MemoryEvidence(
        multiplier=rows.multiplier_in_use(memory_id)[0],
        weighed=tuple(weigh_events(events, memory_id, cleared_at=rows.cleared_at(memory_id))),
        surfaced=int(surfaced),
        is_disputed=bool(_open_disputes(connection, memory.key)),
        is_standing_rule=bool(fetch_value(connection, "SELECT 1 FROM standing_rules WHERE key = ?", (memory.key,))),
    )


def _review_items(connection: apsw.Connection, *, owner: str, at: datetime, limit: int) -> list[ReviewItem]:
    suspects = fetch_all(
        connection,
        "SELECT DISTINCT m.key, m.id FROM usage_events u JOIN memories m ON m.id = u.credited_id AND m.owner = u.owner "
        "WHERE u.owner = ? AND u.valence = 'misled' AND u.at >= ? AND m.state = 'active'",
        (owner, to_us(at - WINDOW)),
    )
    rows = SqliteConfirmationRows(connection, owner)
    items = (
        review_item(
            rows.credits(memory_id, since=at - WINDOW),
            memory_id,
            cleared_at=rows.cleared_at(memory_id),
            settled_at=_settled_at(connection, key),
            dispute_ids=_open_disputes(connection, key),
        )
        for key, memory_id in suspects
    )
    return by_urgency(item for item in items if item is not None)[:limit]


def _settled_at(connection: apsw.Connection, key: int) -> datetime | None:
    at = fetch_value(connection, "SELECT max(resolved_at) FROM disputes WHERE key = ? AND resolution <> ''", (key,))
    return None if at is None else from_us(at)


def _open_disputes(connection: apsw.Connection, key: int) -> list[int]:
    rows = fetch_all(connection, "SELECT id FROM disputes WHERE key = ? AND resolution = '' ORDER BY id", (key,))
    return [row[0] for row in rows]
