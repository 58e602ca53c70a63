"""Rows of reports about memories, and the confidence and type that they move. The rule is in `domain.confidence`."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

import json
from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from sidecar.adapters.sqlite import reading
from sidecar.adapters.sqlite.connection import Row, Value, fetch_all, fetch_value
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import SqliteConfirmationRows
from sidecar.adapters.sqlite.values import catalog_of, from_us, to_us
from sidecar.domain.confidence import ConfidenceChange, Standing, ValidationKind, ValidationSummary, validate
from sidecar.domain.confirmation import recompute
from sidecar.domain.memory import Memory, MemoryType
from sidecar.domain.validation import Report, ValidationEvent, ValidationOutcome, outcome_event

_EVENT_COLUMNS: Final = "v.id, v.uid, v.kind, v.is_direct, v.client, v.session, v.context, v.error, v.at"


def record_validation(transaction: Transaction, owner: str, report: Report, *, uid: str) -> ValidationOutcome:
    """See `ValidationStore.record_validation`."""
    connection = transaction.connection
    memory = reading.get(connection, owner, report.memory_id)
    change = None if report.kind is ValidationKind.APPLIED else _move_confidence(connection, memory, report)
    connection.execute(
        "INSERT INTO validation_events (uid, owner, key, kind, is_direct, client, session, context, error, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            uid,
            owner,
            memory.key,
            report.kind,
            int(report.is_direct),
            report.client,
            report.session,
            report.context,
            report.error,
            to_us(report.at),
        ),
    )
    event = ValidationEvent(
        id=connection.last_insert_rowid(),
        uid=uid,
        memory_id=memory.id,
        kind=report.kind,
        is_direct=report.is_direct,
        client=report.client,
        session=report.session,
        context=report.context,
        error=report.error,
        at=report.at,
    )
    _note_use(connection, owner, event)
    is_other_type = change is not None and change.new.type is not change.old.type
    changed = (catalog_of(reading.of_key(connection, memory.key)),) if is_other_type else ()
    return ValidationOutcome(event, change, changed)


def validation_events(
    connection: apsw.Connection, owner: str, memory_id: str, *, kind: ValidationKind | None, limit: int
) -> tuple[list[ValidationEvent], ValidationSummary]:
    """See `ValidationStore.validation_events`."""
    key = reading.get(connection, owner, memory_id).key
    condition, arguments = ("v.key = ? AND v.kind = ?", [key, kind]) if kind else ("v.key = ?", [key])
    bound: list[Value] = [*arguments, limit]
    rows = fetch_all(
        connection,
        f"SELECT {_EVENT_COLUMNS} FROM validation_events v WHERE {condition} ORDER BY v.at DESC, v.id DESC LIMIT ?",
        bound,
    )
    counts = fetch_all(connection, "SELECT kind, count(*) FROM validation_events WHERE key = ? GROUP BY 1", (key,))
    return [event_from_row(memory_id, row) for row in rows], _summary(counts)


def validation_summaries(
    connection: apsw.Connection, owner: str, memory_ids: Sequence[str]
) -> dict[str, ValidationSummary]:
    """See `ValidationStore.validation_summaries`."""
    rows = fetch_all(
        connection,
        "SELECT m.id, v.kind, count(*) FROM memories m JOIN validation_events v ON v.key = m.key "
        "WHERE m.owner = ? AND m.id IN (SELECT value FROM json_each(?)) GROUP BY 1, 2",
        (owner, json.dumps(list(memory_ids))),
    )
    by_memory: dict[str, list[Row]] = {}
    for memory_id, *count in rows:
        by_memory.setdefault(memory_id, []).append(tuple(count))
    return {memory_id: _summary(counts) for memory_id, counts in by_memory.items()}


def event_from_row(memory_id: str, row: Row) -> ValidationEvent:
    """Return an event from its columns, that of the memory left out."""
    return ValidationEvent(
        id=row[0],
        uid=row[1],
        memory_id=memory_id,
        kind=ValidationKind(row[2]),
        is_direct=bool(row[3]),
        client=row[4],
        session=row[5],
        context=row[6],
        error=row[7],
        at=from_us(row[8]),
    )


def _move_confidence(connection: apsw.Connection, memory: Memory, report: Report) -> ConfidenceChange:
    before = fetch_value(connection, "SELECT earlier_type FROM memories WHERE key = ?", (memory.key,))
    change = validate(
        Standing(memory.type, memory.confidence, MemoryType(before) if before else None),
        is_success=report.kind is ValidationKind.SUCCEEDED,
        provenance=memory.provenance,
        adjustment=report.adjustment,
        rules=report.rules,
    )
    connection.execute(
        "UPDATE memories SET confidence = ?, type = ?, earlier_type = ? WHERE key = ?",
        (change.new.confidence, change.new.type, change.new.type_before or "", memory.key),
    )
    return change


def _note_use(connection: apsw.Connection, owner: str, event: ValidationEvent) -> None:
    use = outcome_event(owner, event)
    if use is None:
        return
    rows = SqliteConfirmationRows(connection, owner)
    if rows.add_use(use[0], occasion=use[1]):
        recompute(rows, event.memory_id, at=event.at)


def _summary(counts: Iterable[Row]) -> ValidationSummary:
    return ValidationSummary(**{ValidationKind(kind).value: count for kind, count in counts})
