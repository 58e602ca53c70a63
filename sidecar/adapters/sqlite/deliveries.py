"""Rows of what was delivered, by recalls and in briefings: each request once, and a session once where wished."""

from dataclasses import replace
from datetime import datetime

import apsw

from sidecar.adapters.sqlite import recorded_recalls
from sidecar.adapters.sqlite.connection import fetch_one, fetch_value
from sidecar.adapters.sqlite.remembering import REQUEST_KEY_LIFE
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import insert_event
from sidecar.adapters.sqlite.values import to_us
from sidecar.domain.store_values import RecallRecord, RequestKey
from sidecar.errors import RequestKeyReusedError


def kept_recall(connection: apsw.Connection, owner: str, request: RequestKey, *, now: datetime) -> str:
    """See `MemoryStore.kept_recall`."""
    row = fetch_one(
        connection,
        "SELECT digest, recall_id FROM recall_requests WHERE owner = ? AND request_key = ? AND created_at >= ?",
        (owner, request.key, to_us(now - REQUEST_KEY_LIFE)),
    )
    if row is None:
        return ""
    if row[0] != request.digest:
        raise RequestKeyReusedError(request.key)
    return str(row[1])


def record_recall(transaction: Transaction, record: RecallRecord) -> str:
    """See `MemoryStore.record_recall`; ids of no memory are left out. Return the id that it counts as."""
    connection = transaction.connection
    record = _as_first(connection, record)
    memory_ids = tuple(dict.fromkeys(record.memory_ids))
    connection.execute(
        "INSERT OR IGNORE INTO recalls (recall_id, owner, client, session, project, at, memory_count, is_degraded, "
        "channel, context_kind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            record.recall_id,
            record.owner,
            record.client,
            record.session,
            record.project,
            to_us(record.at),
            len(memory_ids),
            int(record.is_degraded),
            record.channel,
            record.context_kind or "",
        ),
    )
    is_repeated = not connection.changes()
    if record.candidates and not is_repeated:
        recorded_recalls.record(connection, record)
    added = [memory_id for memory_id in memory_ids if _deliver(connection, record, memory_id)]
    if is_repeated and added:
        connection.execute(
            "UPDATE recalls SET memory_count = memory_count + ? WHERE recall_id = ?", (len(added), record.recall_id)
        )
    return record.recall_id


def claim_briefing(transaction: Transaction, record: RecallRecord) -> str:
    """See `MemoryStore.claim_briefing`."""
    connection = transaction.connection
    is_repeated = record.request is not None and kept_recall(connection, record.owner, record.request, now=record.at)
    if not is_repeated and _was_briefed(connection, record):
        return ""
    return record_recall(transaction, record)


def _as_first(connection: apsw.Connection, record: RecallRecord) -> RecallRecord:
    """Return the record under the id of the first request with its key."""
    if record.request is None:
        return record
    connection.execute("DELETE FROM recall_requests WHERE created_at < ?", (to_us(record.at - REQUEST_KEY_LIFE),))
    kept_id = kept_recall(connection, record.owner, record.request, now=record.at)
    if kept_id:
        return replace(record, recall_id=kept_id)
    connection.execute(
        "INSERT INTO recall_requests VALUES (?, ?, ?, ?, ?)",
        (record.owner, record.request.key, record.request.digest, record.recall_id, to_us(record.at)),
    )
    return record


def _deliver(connection: apsw.Connection, record: RecallRecord, memory_id: str) -> bool:
    """Note one delivered memory unless it is noted already, and tell whether it was new."""
    key = fetch_value(connection, "SELECT key FROM memories WHERE id = ? AND owner = ?", (memory_id, record.owner))
    if key is None or not insert_event(connection, record.event_of(memory_id), occasion=record.occasion):
        return False
    if record.moves_access:
        connection.execute(
            "UPDATE memories SET access_count = access_count + 1, accessed_at = max(accessed_at, ?) WHERE key = ?",
            (to_us(record.at), key),
        )
    return True


def was_briefed(connection: apsw.Connection, *, owner: str, client: str, session: str, kind: str) -> bool:
    """See `MemoryStore.was_briefed`."""
    found = fetch_value(
        connection,
        "SELECT EXISTS (SELECT 1 FROM recalls WHERE channel = 'briefing' AND owner = ? AND client = ? AND session = ? "
        "AND context_kind = ? AND memory_count > 0)",
        (owner, client, session, kind),
    )
    return bool(found)


def _was_briefed(connection: apsw.Connection, record: RecallRecord) -> bool:
    kind = record.context_kind or ""
    return was_briefed(connection, owner=record.owner, client=record.client, session=record.session, kind=kind)
