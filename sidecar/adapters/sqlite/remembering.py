"""Stores a memory with all that belongs to it, and restores forgotten ones. Operations of the writer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import apsw

from sidecar.adapters.sqlite import embeddings, graph, reading
from sidecar.adapters.sqlite.connection import fetch_one
from sidecar.adapters.sqlite.succession import SqliteSuccessionRows, find_active
from sidecar.adapters.sqlite.succession import settle as settle_states
from sidecar.adapters.sqlite.term_statistics import TermStatistics
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import SqliteConfirmationRows
from sidecar.adapters.sqlite.values import catalog_of, metadata_text, to_us
from sidecar.adapters.sqlite.words import add_words
from sidecar.domain.confirmation import make_claims, settle
from sidecar.domain.memory import Link, Memory, MemoryState, Relation
from sidecar.domain.store_values import AddOutcome, CatalogRow, NewMemory
from sidecar.errors import (
    DuplicateMemoryError,
    InvalidInputError,
    MemoryNotForgottenError,
    MemoryNotFoundError,
    RequestKeyReusedError,
)

REQUEST_KEY_LIFE: Final = timedelta(hours=24)
DECLARED: Final = "declared"
"""Origin of an edge that the caller named."""

_INSERT_MEMORY: Final = (
    "INSERT INTO memories (id, owner, namespace, type, state, previous_state, importance, confidence, created_at, "
    "accessed_at, first_accessed_at, access_count, provenance, client, session, superseded_by, content_hash, "
    "metadata, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class AddMemory:
    """Stores one memory. See `MemoryStore.add`."""

    new: NewMemory
    statistics: TermStatistics
    now: datetime

    def __call__(self, transaction: Transaction) -> AddOutcome:
        """Run as an operation of the writer."""
        connection = transaction.connection
        repeated = self._repeated(connection)
        if repeated is not None:
            return repeated
        targets = self._link_targets(connection)
        existing_id = find_active(connection, self.new.memory)
        if existing_id is None:
            outcome = self._store(transaction, targets)
        else:
            outcome = self._add_to(connection, existing_id, targets)
        self._keep_request_key(connection, outcome)
        return outcome

    def _repeated(self, connection: apsw.Connection) -> AddOutcome | None:
        """Return the outcome of the first request with this key."""
        if not self.new.request_key:
            return None
        oldest = to_us(self.now - REQUEST_KEY_LIFE)
        connection.execute("DELETE FROM request_keys WHERE created_at < ?", (oldest,))
        row = fetch_one(
            connection,
            "SELECT digest, memory_id, content_hash, is_deduplicated, used_memory_ids FROM request_keys "
            "WHERE owner = ? AND request_key = ?",
            (self.new.memory.owner, self.new.request_key),
        )
        if row is None:
            return None
        if row[0] != self.new.request_digest:
            raise RequestKeyReusedError(self.new.request_key)
        is_indexed = embeddings.is_indexed(connection, row[1])
        return AddOutcome(row[1], row[2], bool(row[3]), is_indexed, used_memory_ids=tuple(row[4].split()))

    def _keep_request_key(self, connection: apsw.Connection, outcome: AddOutcome) -> None:
        if not self.new.request_key:
            return
        connection.execute(
            "INSERT INTO request_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.new.memory.owner,
                self.new.request_key,
                self.new.request_digest,
                outcome.memory_id,
                outcome.content_hash,
                int(outcome.is_deduplicated),
                " ".join(outcome.used_memory_ids),
                to_us(self.now),
            ),
        )

    def _add_to(
        self, connection: apsw.Connection, existing_id: str, targets: Sequence[tuple[Link, Memory]]
    ) -> AddOutcome:
        """Give the memory that says the same the links that are new."""
        if any(target.id == existing_id for _, target in targets):
            raise InvalidInputError("links", existing_id, "ids of other memories: this one says what you remember")
        existing = reading.get(connection, self.new.memory.owner, existing_id)
        superseded = self._link(connection, existing.key, targets)
        used = self._settle_claims(connection, existing_id)
        return AddOutcome(
            memory_id=existing_id,
            content_hash=self.new.memory.content_hash,
            is_deduplicated=True,
            is_indexed=embeddings.is_indexed(connection, existing_id),
            changed=tuple(superseded),
            used_memory_ids=tuple(used),
        )

    def _store(self, transaction: Transaction, targets: Sequence[tuple[Link, Memory]]) -> AddOutcome:
        connection = transaction.connection
        key = self._insert(connection)
        add_words(transaction, self.statistics, key, self.new.tokens)
        embeddings.queue_job(connection, key, now=self.now)
        if self.new.link_wish is not None:
            graph.keep_link_wish(connection, key, self.new.link_wish)
        superseded = self._link(connection, key, targets)
        used = self._settle_claims(connection, self.new.memory.id)
        added = CatalogRow(
            key=key,
            owner=self.new.memory.owner,
            namespace=self.new.memory.namespace,
            type=self.new.memory.type,
            importance=self.new.memory.importance,
            state=MemoryState.ACTIVE,
            created_at=self.new.memory.created_at,
            session=self.new.memory.session,
        )
        return AddOutcome(
            memory_id=self.new.memory.id,
            content_hash=self.new.memory.content_hash,
            is_deduplicated=False,
            is_indexed=False,
            changed=(added, *superseded),
            used_memory_ids=tuple(used),
        )

    def _link_targets(self, connection: apsw.Connection) -> list[tuple[Link, Memory]]:
        targets = []
        for link in dict.fromkeys(self.new.links):
            target = reading.find(connection, self.new.memory.owner, link.memory_id)
            if target is None or target.state is MemoryState.FORGOTTEN:
                raise MemoryNotFoundError(link.memory_id)
            targets.append((link, target))
        return targets

    def _insert(self, connection: apsw.Connection) -> int:
        memory = self.new.memory
        connection.execute(
            _INSERT_MEMORY,
            (
                memory.id,
                memory.owner,
                memory.namespace,
                memory.type,
                MemoryState.ACTIVE,
                MemoryState.ACTIVE,
                memory.importance,
                memory.confidence,
                to_us(memory.created_at),
                to_us(memory.accessed_at),
                to_us(memory.accessed_at),
                memory.access_count,
                memory.provenance,
                memory.client,
                memory.session,
                "",
                memory.content_hash,
                metadata_text(memory),
                memory.content,
            ),
        )
        return connection.last_insert_rowid()

    def _link(self, connection: apsw.Connection, key: int, targets: Sequence[tuple[Link, Memory]]) -> list[CatalogRow]:
        """Store the edges that are new, and return the catalog fields of what they superseded."""
        superseded = []
        for link, target in targets:
            connection.execute(
                "INSERT OR IGNORE INTO edges (owner, source_key, target_key, relation, weight, origin, created_at) "
                "VALUES (?, ?, ?, ?, 1.0, ?, ?)",
                (self.new.memory.owner, key, target.key, link.relation, DECLARED, to_us(self.now)),
            )
            if link.relation is Relation.SUPERSEDES and connection.changes():
                superseded.append(target.key)
        return settle_states(connection, superseded)

    def _settle_claims(self, connection: apsw.Connection, source_id: str) -> list[str]:
        memory = self.new.memory
        claims = make_claims(self.new.links, remembered=memory, source_id=source_id, project=self.new.project)
        rows = SqliteConfirmationRows(connection, memory.owner)
        return [claim.target_id for claim in claims if settle(rows, claim, at=self.now)]


@dataclass(frozen=True, slots=True)
class RestoreMemory:
    """Gives a forgotten memory its previous state back. See `MemoryStore.restore`."""

    owner: str
    memory_id: str

    def __call__(self, transaction: Transaction) -> tuple[Memory, tuple[CatalogRow, ...]]:
        """Run as an operation of the writer."""
        connection = transaction.connection
        memory = reading.get(connection, self.owner, self.memory_id)
        if memory.state is not MemoryState.FORGOTTEN:
            raise MemoryNotForgottenError(self.memory_id)
        if memory.previous_state is MemoryState.ACTIVE:
            existing_id = find_active(connection, memory)
            if existing_id is not None:
                raise DuplicateMemoryError(self.memory_id, existing_id)
        connection.execute(
            "UPDATE memories SET state = previous_state, previous_state = 'active' WHERE key = ?", (memory.key,)
        )
        restored = reading.get(connection, self.owner, self.memory_id)
        replaced = SqliteSuccessionRows(connection).replaced(restored)
        return restored, (catalog_of(restored), *settle_states(connection, replaced))
