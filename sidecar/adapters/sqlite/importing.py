"""Stores export records: what is there already stays as it is, and what cannot be stored is refused by itself."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import apsw

from sidecar.adapters.sqlite import embeddings, reading
from sidecar.adapters.sqlite.connection import Value, fetch_all, fetch_value
from sidecar.adapters.sqlite.succession import SqliteSuccessionRows, find_active, settle
from sidecar.adapters.sqlite.term_statistics import TermStatistics
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import insert_event
from sidecar.adapters.sqlite.values import catalog_of, metadata_text, to_us
from sidecar.adapters.sqlite.words import add_words
from sidecar.domain.edges import closes_circle
from sidecar.domain.exchange import (
    ClaimRecord,
    DeliveryRecord,
    DisputeRecord,
    EdgeRecord,
    ExportRecord,
    FileRecord,
    Imported,
    MemoryRecord,
    MultiplierRecord,
    ReportRecord,
    UseRecord,
    VerdictRecord,
    memory_of,
    use_of,
)
from sidecar.domain.memory import Memory, MemoryState, Relation
from sidecar.domain.store_values import CatalogRow
from sidecar.errors import InvalidInputError, NotFoundError, StateConflictError, SupersessionCircleError


@dataclass(frozen=True, slots=True)
class ImportRecords:
    """Stores records in the order given. See `MaintenanceStore.import_records`.

    Attributes:
        tokens: Terms of each memory's text by its id, made before: the writer's thread has better things to do.
    """

    owner: str
    records: Sequence[ExportRecord]
    tokens: Mapping[str, tuple[str, ...]]
    statistics: TermStatistics
    now: datetime

    def __call__(self, transaction: Transaction) -> Imported:
        """Run as an operation of the writer."""
        imported = 0
        refused: list[tuple[int, str]] = []
        changed: dict[int, CatalogRow] = {}
        for place, record in enumerate(self.records):
            try:
                is_new, rows = self._store(transaction, record)
            except (InvalidInputError, NotFoundError, StateConflictError) as error:
                refused.append((place, error.message))
                continue
            imported += is_new
            changed.update((row.key, row) for row in rows)
        unchanged = len(self.records) - imported - len(refused)
        return Imported(imported, unchanged, tuple(refused), tuple(changed.values()))

    def _store(self, transaction: Transaction, record: ExportRecord) -> tuple[bool, Sequence[CatalogRow]]:
        """Store one record; return whether it was new, and what it changed. It is refused before anything is."""
        connection = transaction.connection
        if isinstance(record, MemoryRecord):
            return self._store_memory(transaction, record)
        if isinstance(record, EdgeRecord):
            return self._store_edge(connection, record)
        store: Mapping[type[ExportRecord], Callable[..., bool]] = {
            ReportRecord: _store_report,
            DisputeRecord: _store_dispute,
            DeliveryRecord: _store_delivery,
            UseRecord: _store_use,
            VerdictRecord: _store_verdict,
            ClaimRecord: _store_claim,
            MultiplierRecord: _store_multiplier,
            FileRecord: _store_file,
        }
        return store[type(record)](connection, self.owner, record), ()

    def _store_memory(self, transaction: Transaction, record: MemoryRecord) -> tuple[bool, Sequence[CatalogRow]]:
        connection = transaction.connection
        owner = fetch_value(connection, "SELECT owner FROM memories WHERE id = ?", (record.id,))
        if owner is not None and owner != self.owner:
            raise InvalidInputError("id", record.id, "an id that no other owner's memory has")
        if owner is not None:
            return False, ()
        memory = memory_of(record, owner=self.owner)
        twin_id = find_active(connection, memory) if memory.state is MemoryState.ACTIVE else None
        if twin_id is not None:
            # Two active memories must not say the same.
            memory = replace(memory, state=MemoryState.SUPERSEDED, superseded_by=twin_id)
        key = _insert_memory(connection, memory, record)
        add_words(transaction, self.statistics, key, self.tokens[record.id])
        embeddings.queue_job(connection, key, now=self.now)
        return True, (catalog_of(replace(memory, key=key)),)

    def _store_edge(self, connection: apsw.Connection, record: EdgeRecord) -> tuple[bool, Sequence[CatalogRow]]:
        source = reading.get(connection, self.owner, record.source_id)
        target = reading.get(connection, self.owner, record.target_id)
        ends = (source.key, target.key)
        is_known = fetch_value(
            connection,
            "SELECT EXISTS (SELECT 1 FROM edges WHERE source_key = ? AND target_key = ? AND relation = ?)",
            (*ends, record.relation),
        )
        if is_known:
            return False, ()
        if source.key == target.key:
            raise InvalidInputError("target_id", record.target_id, "another memory than the source")
        is_superseding = record.relation is Relation.SUPERSEDES
        if is_superseding and closes_circle(SqliteSuccessionRows(connection), *ends):
            raise SupersessionCircleError(source.id, target.id)
        connection.execute(
            "INSERT INTO edges (owner, source_key, target_key, relation, weight, origin, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self.owner, *ends, record.relation, record.weight, record.origin, to_us(record.created_at)),
        )
        return True, settle(connection, [target.key]) if is_superseding else ()


def finish_import(transaction: Transaction, owner: str) -> tuple[CatalogRow, ...]:
    """See `MaintenanceStore.finish_import`."""
    connection = transaction.connection
    rows = fetch_all(
        connection,
        "SELECT key FROM memories WHERE owner = ? AND (state = 'superseded' OR "
        "(state = 'forgotten' AND previous_state = 'superseded')) AND superseded_by NOT IN (SELECT id FROM memories)",
        (owner,),
    )
    return tuple(settle(connection, [row[0] for row in rows]))


def _insert_memory(connection: apsw.Connection, memory: Memory, record: MemoryRecord) -> int:
    columns: Mapping[str, Value] = {
        "id": memory.id,
        "owner": memory.owner,
        "namespace": memory.namespace,
        "type": memory.type,
        "state": memory.state,
        "previous_state": memory.previous_state,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "created_at": to_us(memory.created_at),
        "accessed_at": to_us(memory.accessed_at),
        "first_accessed_at": to_us(record.first_accessed_at),
        "access_count": memory.access_count,
        "provenance": memory.provenance,
        "client": memory.client,
        "session": memory.session,
        "superseded_by": memory.superseded_by,
        "content_hash": memory.content_hash,
        "metadata": metadata_text(memory),
        "content": memory.content,
        "earlier_type": record.type_before or "",
    }
    _insert(connection, "memories", columns)
    key = connection.last_insert_rowid()
    if record.promoted_at is not None:
        connection.execute("INSERT INTO standing_rules VALUES (?, ?)", (key, to_us(record.promoted_at)))
    return key


def _store_report(connection: apsw.Connection, owner: str, record: ReportRecord) -> bool:
    return _insert(
        connection,
        "validation_events",
        {
            "uid": record.uid,
            "owner": owner,
            "key": reading.get(connection, owner, record.memory_id).key,
            "kind": record.kind,
            "is_direct": int(record.is_direct),
            "client": record.client,
            "session": record.session,
            "context": record.context,
            "error": record.error,
            "at": to_us(record.at),
        },
    )


def _store_dispute(connection: apsw.Connection, owner: str, record: DisputeRecord) -> bool:
    return _insert(
        connection,
        "disputes",
        {
            "uid": record.uid,
            "owner": owner,
            "key": reading.get(connection, owner, record.memory_id).key,
            "reason": record.reason,
            "evidence": record.evidence,
            "client": record.client,
            "session": record.session,
            "at": to_us(record.at),
            "resolution": record.resolution or "",
            "successor_id": record.successor_id,
            "resolved_at": to_us(record.resolved_at) if record.resolved_at else 0,
        },
    )


def _store_delivery(connection: apsw.Connection, owner: str, record: DeliveryRecord) -> bool:
    return _insert(
        connection,
        "recalls",
        {
            "recall_id": record.recall_id,
            "owner": owner,
            "client": record.client,
            "session": record.session,
            "project": record.project,
            "at": to_us(record.at),
            "memory_count": record.memory_count,
            "is_degraded": int(record.is_degraded),
            "channel": record.channel,
            "context_kind": record.context_kind or "",
        },
    )


def _store_use(connection: apsw.Connection, owner: str, record: UseRecord) -> bool:
    return insert_event(connection, use_of(record, owner=owner), occasion=record.occasion)


def _store_verdict(connection: apsw.Connection, owner: str, record: VerdictRecord) -> bool:
    return _insert(
        connection,
        "verdicts",
        {
            "owner": owner,
            "client": record.client,
            "session": record.session,
            "memory_id": record.memory_id,
            "judge": record.judge,
            "used": record.used,
            "relevant": record.relevant,
            "misled": record.misled,
            "shown_at": to_us(record.shown_at),
            "judged_at": to_us(record.judged_at),
        },
    )


def _store_claim(connection: apsw.Connection, owner: str, record: ClaimRecord) -> bool:
    return _insert(
        connection,
        "claims",
        {
            "owner": owner,
            "remember_id": record.remember_id,
            "source_id": record.source_id,
            "target_id": record.target_id,
            "relation": record.relation,
            "client": record.client,
            "session": record.session,
            "project": record.project,
            "at": to_us(record.at),
            "standing": record.standing,
        },
    )


def _store_multiplier(connection: apsw.Connection, owner: str, record: MultiplierRecord) -> bool:
    return _insert(
        connection,
        "multipliers",
        {
            "key": reading.get(connection, owner, record.memory_id).key,
            "value": record.value,
            "useful": record.useful,
            "misled": record.misled,
            "computed_at": to_us(record.computed_at),
        },
    )


def _store_file(connection: apsw.Connection, owner: str, record: FileRecord) -> bool:
    return _insert(
        connection,
        "file_activity",
        {
            "uid": record.uid,
            "owner": owner,
            "project": record.project,
            "path": record.path,
            "action": record.action,
            "client": record.client,
            "session": record.session,
            "metadata": json.dumps(dict(record.metadata), ensure_ascii=False, separators=(",", ":")),
            "at": to_us(record.at),
        },
    )


def _insert(connection: apsw.Connection, table: str, columns: Mapping[str, Value]) -> bool:
    """Insert a row unless one with the same unique columns is there, and tell whether it was new."""
    names, holders = ", ".join(columns), ", ".join("?" * len(columns))
    connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({holders})", tuple(columns.values()))  # noqa: S608
    return bool(connection.changes())
