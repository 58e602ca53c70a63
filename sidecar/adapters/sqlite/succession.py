"""Rows that tell which memories stand aside for which. The rules are in sidecar.domain.succession."""

from collections.abc import Iterable, Sequence

import apsw

from sidecar.adapters.sqlite import reading
from sidecar.adapters.sqlite.connection import fetch_all, fetch_value
from sidecar.adapters.sqlite.values import catalog_of
from sidecar.domain.memory import Memory, Relation
from sidecar.domain.store_values import CatalogRow
from sidecar.domain.succession import settle_states


class SqliteSuccessionRows:
    """See `SuccessionRows`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def memory(self, key: int) -> Memory:
        """See `SuccessionRows.memory`."""
        return reading.of_key(self._connection, key)

    def successors(self, key: int) -> Sequence[Memory]:
        """See `SuccessionRows.successors`."""
        rows = fetch_all(
            self._connection,
            "SELECT source_key FROM edges WHERE target_key = ? AND relation = ? ORDER BY id DESC",
            (key, Relation.SUPERSEDES),
        )
        return [self.memory(row[0]) for row in rows]

    def replaced(self, memory: Memory) -> Sequence[int]:
        """See `SuccessionRows.replaced`."""
        rows = fetch_all(
            self._connection,
            "SELECT target_key FROM edges WHERE source_key = ? AND relation = ? "
            "UNION SELECT key FROM memories WHERE superseded_by = ? AND superseded_by <> ''",
            (memory.key, Relation.SUPERSEDES, memory.id),
        )
        return [int(row[0]) for row in rows]

    def active_twin(self, memory: Memory) -> str:
        """See `SuccessionRows.active_twin`."""
        return find_active(self._connection, memory) or ""

    def named_twin(self, key: int) -> str:
        """See `SuccessionRows.named_twin`."""
        found: str | None = fetch_value(
            self._connection,
            "SELECT twin.id FROM memories m JOIN memories twin ON twin.id = m.superseded_by WHERE m.key = ? "
            "AND twin.namespace = m.namespace AND twin.content_hash = m.content_hash AND twin.state <> 'forgotten'",
            (key,),
        )
        return found or ""

    def save_state(self, memory: Memory) -> None:
        """See `SuccessionRows.save_state`."""
        self._connection.execute(
            "UPDATE memories SET state = ?, previous_state = ?, superseded_by = ? WHERE key = ?",
            (memory.state, memory.previous_state, memory.superseded_by, memory.key),
        )


def settle(connection: apsw.Connection, keys: Iterable[int]) -> list[CatalogRow]:
    """Settle the states of these memories, and return the catalog fields of those whose state is another now."""
    return [catalog_of(memory) for memory in settle_states(SqliteSuccessionRows(connection), keys)]


def find_active(connection: apsw.Connection, memory: Memory) -> str | None:
    """Return the id of the active memory that says the same in the same namespace."""
    found: str | None = fetch_value(
        connection,
        "SELECT id FROM memories WHERE owner = ? AND namespace = ? AND content_hash = ? AND state = 'active'",
        (memory.owner, memory.namespace, memory.content_hash),
    )
    return found
