"""Rows of disputes and promotions: opened, listed, resolved. What they do to ranking is decided in the domain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import apsw

from sidecar.adapters.sqlite import graph, reading
from sidecar.adapters.sqlite.connection import Row, Value, fetch_all, fetch_one, key_list
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import SqliteConfirmationRows
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.domain.confirmation import recompute
from sidecar.domain.disputes import Challenge, Dispute, Resolution, ResolvedDispute, Verdict, misled_event
from sidecar.domain.edges import NewEdge
from sidecar.domain.memory import Relation
from sidecar.domain.store_values import CatalogRow, Forgetting
from sidecar.errors import DisputeNotFoundError, DisputeResolvedError

_AT_ONCE: Final = 512
_DISPUTES: Final = (
    "SELECT d.id, d.uid, m.id, d.reason, d.evidence, d.client, d.session, d.at, d.resolution, d.successor_id, "
    "d.resolved_at FROM disputes d JOIN memories m ON m.key = d.key "
)


def open_dispute(transaction: Transaction, owner: str, challenge: Challenge, *, uid: str) -> tuple[Dispute, bool]:
    """See `ValidationStore.open_dispute`."""
    connection = transaction.connection
    memory = reading.get(connection, owner, challenge.memory_id)
    row = fetch_one(
        connection,
        f"{_DISPUTES} WHERE d.key = ? AND d.resolution = '' AND d.reason = ? AND d.evidence = ? ORDER BY d.id",
        (memory.key, challenge.reason, challenge.evidence),
    )
    if row is not None:
        return _dispute_from_row(row), True
    connection.execute(
        "INSERT INTO disputes (uid, owner, key, reason, evidence, client, session, at, resolution, successor_id, "
        "resolved_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', '', 0)",
        (
            uid,
            owner,
            memory.key,
            challenge.reason,
            challenge.evidence,
            challenge.client,
            challenge.session,
            to_us(challenge.at),
        ),
    )
    dispute = _of_id(connection, owner, connection.last_insert_rowid())
    event, occasion = misled_event(owner, dispute)
    rows = SqliteConfirmationRows(connection, owner)
    if rows.add_use(event, occasion=occasion):
        recompute(rows, memory.id, at=challenge.at)
    return dispute, False


def disputes(
    connection: apsw.Connection, owner: str, *, memory_id: str, is_including_resolved: bool, limit: int
) -> list[Dispute]:
    """See `ValidationStore.disputes`."""
    condition = "d.owner = ?"
    arguments: list[Value] = [owner]
    if memory_id:
        condition += " AND d.key = ?"
        arguments.append(reading.get(connection, owner, memory_id).key)
    if not is_including_resolved:
        condition += " AND d.resolution = ''"
    rows = fetch_all(
        connection, f"{_DISPUTES} WHERE {condition} ORDER BY d.at DESC, d.id DESC LIMIT ?", [*arguments, limit]
    )
    return [_dispute_from_row(row) for row in rows]


@dataclass(frozen=True, slots=True)
class ResolveDispute:
    """Ends a dispute. See `ValidationStore.resolve_dispute`.

    Attributes:
        forget: Forgets one memory, a golden rule too, in the same transaction.
    """

    owner: str
    dispute_id: int
    verdict: Verdict
    at: datetime
    forget: Callable[[Transaction, str], Forgetting]

    def __call__(self, transaction: Transaction) -> ResolvedDispute:
        """Run as an operation of the writer."""
        connection = transaction.connection
        dispute = _of_id(connection, self.owner, self.dispute_id)
        if dispute.resolution is not None:
            if Verdict(dispute.resolution, dispute.successor_id) != self.verdict:
                raise DisputeResolvedError(dispute.id, dispute.resolution)
            return ResolvedDispute(dispute)
        changed = self._apply(transaction, dispute)
        connection.execute(
            "UPDATE disputes SET resolution = ?, successor_id = ?, resolved_at = ? WHERE id = ?",
            (self.verdict.resolution, self.verdict.successor_id, to_us(self.at), dispute.id),
        )
        recompute(SqliteConfirmationRows(connection, self.owner), dispute.memory_id, at=self.at)
        return ResolvedDispute(_of_id(connection, self.owner, dispute.id), changed)

    def _apply(self, transaction: Transaction, dispute: Dispute) -> tuple[CatalogRow, ...]:
        match self.verdict.resolution:
            case Resolution.KEEP:
                return ()
            case Resolution.RETIRE:
                return self.forget(transaction, dispute.memory_id).changed
            case Resolution.SUPERSEDE:
                edge = NewEdge(self.verdict.successor_id, dispute.memory_id, Relation.SUPERSEDES)
                return graph.put_edge(transaction, self.owner, edge, now=self.at).changed


def disputed_keys(connection: apsw.Connection, keys: Sequence[int]) -> frozenset[int]:
    """See `ValidationStore.disputed_keys`."""
    return _keys_in(connection, "SELECT key FROM disputes WHERE resolution = '' AND key IN ({})", keys)


def promote(transaction: Transaction, owner: str, memory_id: str, *, at: datetime) -> bool:
    """See `ValidationStore.promote`."""
    connection = transaction.connection
    memory = reading.get(connection, owner, memory_id)
    connection.execute("INSERT OR IGNORE INTO standing_rules VALUES (?, ?)", (memory.key, to_us(at)))
    return not connection.changes()


def demote(transaction: Transaction, owner: str, memory_id: str) -> bool:
    """See `ValidationStore.demote`."""
    connection = transaction.connection
    memory = reading.get(connection, owner, memory_id)
    connection.execute("DELETE FROM standing_rules WHERE key = ?", (memory.key,))
    return bool(connection.changes())


def standing_rule_keys(connection: apsw.Connection, keys: Sequence[int]) -> frozenset[int]:
    """See `ValidationStore.standing_rule_keys`."""
    return _keys_in(connection, "SELECT key FROM standing_rules WHERE key IN ({})", keys)


def _keys_in(connection: apsw.Connection, sql: str, keys: Sequence[int]) -> frozenset[int]:
    found: set[int] = set()
    for start in range(0, len(keys), _AT_ONCE):
        listed, asked = key_list(keys[start : start + _AT_ONCE])
        found.update(row[0] for row in fetch_all(connection, sql.format(listed), asked))
    return frozenset(found)


def _of_id(connection: apsw.Connection, owner: str, dispute_id: int) -> Dispute:
    row = fetch_one(connection, f"{_DISPUTES} WHERE d.id = ? AND d.owner = ?", (dispute_id, owner))
    if row is None:
        raise DisputeNotFoundError(dispute_id)
    return _dispute_from_row(row)


def _dispute_from_row(row: Row) -> Dispute:
    return Dispute(
        id=row[0],
        uid=row[1],
        memory_id=row[2],
        reason=row[3],
        evidence=row[4],
        client=row[5],
        session=row[6],
        at=from_us(row[7]),
        resolution=Resolution(row[8]) if row[8] else None,
        successor_id=row[9],
        resolved_at=from_us(row[10]) if row[8] else None,
    )
