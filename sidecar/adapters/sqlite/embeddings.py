"""Vectors and the jobs that wait for one. Vectors are stored as float16: half the disk, cosines within 1e-3."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

import json
from collections.abc import Sequence
from datetime import datetime

import apsw
import numpy as np

from sidecar.adapters.sqlite.connection import fetch_all, fetch_one, fetch_value
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.store_values import EmbedJob, JobCounts, ParkedJob
from sidecar.errors import IndexRowError
from sidecar.ports import Embedding, Keys

_STORED = np.dtype("<f2")
_CURRENT = "(SELECT id FROM models WHERE is_current = 1)"


def queue_job(connection: apsw.Connection, key: int, *, now: datetime) -> None:
    """Make a memory wait for its vector."""
    at = to_us(now)
    connection.execute("INSERT INTO embed_jobs VALUES (?, 0, ?, ?, 0, '')", (key, at, at))


def is_indexed(connection: apsw.Connection, memory_id: str) -> bool:
    """Tell whether a memory has a vector of the model in use."""
    found = fetch_value(
        connection,
        f"SELECT EXISTS (SELECT 1 FROM embeddings e JOIN memories m ON m.key = e.key "
        f"WHERE m.id = ? AND e.model = {_CURRENT})",
        (memory_id,),
    )
    return bool(found)


def set_model(transaction: Transaction, fingerprint: ModelFingerprint, *, now: datetime) -> int:
    """See `MemoryStore.set_model`; jobs of the same model keep their attempts."""
    connection = transaction.connection
    model = _model_row(connection, fingerprint.id, name=fingerprint.model, dim=fingerprint.dim)
    if fetch_value(connection, _CURRENT.strip("()")) != model:
        connection.execute("UPDATE models SET is_current = (id = ?)", (model,))
        connection.execute("DELETE FROM embed_jobs")
    at = to_us(now)
    connection.execute(
        "INSERT OR IGNORE INTO embed_jobs (key, attempts, next_try_at, queued_at, is_parked, reason) "
        "SELECT m.key, 0, ?1, ?1, 0, '' FROM memories m "
        "WHERE NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.model = ?2 AND e.key = m.key)",
        (at, model),
    )
    return int(fetch_value(connection, "SELECT count(*) FROM embed_jobs"))


def due_jobs(connection: apsw.Connection, *, now: datetime, limit: int) -> list[EmbedJob]:
    """See `MemoryStore.due_jobs`."""
    rows = fetch_all(
        connection,
        "SELECT j.key, m.id, m.content, j.attempts FROM embed_jobs j JOIN memories m ON m.key = j.key "
        "WHERE j.is_parked = 0 AND j.next_try_at <= ? ORDER BY j.key DESC LIMIT ?",
        (to_us(now), limit),
    )
    return [EmbedJob(key=row[0], memory_id=row[1], content=row[2], attempts=row[3]) for row in rows]


def save(transaction: Transaction, model_id: str, rows: Sequence[tuple[int, bytes, int, int]]) -> list[int]:
    """Store `(key, vector, windows, dim)` rows as `pack` makes them, end their jobs, and return the stored keys."""
    connection = transaction.connection
    stored = []
    for key, vector, windows, dim in rows:
        model = _model_row(connection, model_id, name=model_id.partition("@")[0], dim=dim)
        connection.execute(
            "INSERT OR REPLACE INTO embeddings (model, key, windows, vector) "
            "SELECT ?, key, ?, ? FROM memories WHERE key = ?",
            (model, windows, vector, key),
        )
        if connection.changes():
            stored.append(key)
            connection.execute(f"DELETE FROM embed_jobs WHERE key = ? AND ? = {_CURRENT}", (key, model))
    return stored


def requeue(transaction: Transaction, model_id: str, keys: Sequence[int], *, now: datetime) -> None:
    """See `MemoryStore.requeue`; of another model than the one in use only the vectors go."""
    connection = transaction.connection
    model = fetch_value(connection, "SELECT id FROM models WHERE model_id = ?", (model_id,))
    at = to_us(now)
    for key in keys:
        connection.execute("DELETE FROM embeddings WHERE model = ? AND key = ?", (model, int(key)))
        connection.execute(
            "INSERT OR REPLACE INTO embed_jobs (key, attempts, next_try_at, queued_at, is_parked, reason) "
            f"SELECT key, 0, ?1, ?1, 0, '' FROM memories WHERE key = ?2 AND ?3 = {_CURRENT}",
            (at, int(key), model),
        )


def pack(rows: Sequence[tuple[int, Embedding]]) -> list[tuple[int, bytes, int, int]]:
    """Return rows ready to be stored, so that the writer's thread need not convert them.

    Raises:
        IndexRowError: If one is not a `(windows, dim)` array of finite numbers with at least one row.
    """
    packed = []
    for key, embedding in rows:
        if embedding.ndim != 2 or not embedding.size or not np.isfinite(embedding).all():
            raise IndexRowError(f"shape {embedding.shape} or a value that is not finite, for key {key}")
        windows, dim = embedding.shape
        packed.append((int(key), embedding.astype(_STORED).tobytes(), windows, dim))
    return packed


def fail_job(transaction: Transaction, key: int, *, reason: str, next_try_at: datetime | None) -> None:
    """See `MemoryStore.fail_job`; a job that has ended meanwhile stays ended."""
    transaction.connection.execute(
        "UPDATE embed_jobs SET attempts = attempts + 1, reason = ?, is_parked = ?, next_try_at = ? WHERE key = ?",
        (reason, int(next_try_at is None), 0 if next_try_at is None else to_us(next_try_at), key),
    )


def retry_parked(transaction: Transaction, *, now: datetime) -> int:
    """See `MemoryStore.retry_parked`; attempts count anew."""
    transaction.connection.execute(
        "UPDATE embed_jobs SET is_parked = 0, attempts = 0, next_try_at = ? WHERE is_parked = 1", (to_us(now),)
    )
    return transaction.connection.changes()


def job_counts(connection: apsw.Connection) -> JobCounts:
    """See `MemoryStore.job_counts`."""
    row = fetch_one(
        connection,
        "SELECT count(*) FILTER (WHERE is_parked = 0), count(*) FILTER (WHERE is_parked = 1), "
        "min(queued_at) FILTER (WHERE is_parked = 0) FROM embed_jobs",
    )
    pending, parked, oldest = row or (0, 0, None)
    return JobCounts(pending, parked, None if oldest is None else from_us(oldest))


def parked_jobs(connection: apsw.Connection, *, limit: int) -> list[ParkedJob]:
    """See `MemoryStore.parked_jobs`."""
    rows = fetch_all(
        connection,
        "SELECT m.id, j.attempts, j.reason FROM embed_jobs j JOIN memories m ON m.key = j.key "
        "WHERE j.is_parked = 1 ORDER BY j.queued_at, j.key LIMIT ?",
        (limit,),
    )
    return [ParkedJob(*row) for row in rows]


def embedded_keys(connection: apsw.Connection, model_id: str) -> Keys:
    """See `MemoryStore.embedded_keys`."""
    rows = fetch_all(
        connection,
        "SELECT e.key FROM embeddings e JOIN models d ON d.id = e.model WHERE d.model_id = ? ORDER BY e.key",
        (model_id,),
    )
    return np.fromiter((row[0] for row in rows), np.int64, len(rows))


def load(connection: apsw.Connection, model_id: str, keys: Sequence[int]) -> list[tuple[int, Embedding]]:
    """See `MemoryStore.embeddings`."""
    rows = fetch_all(
        connection,
        "SELECT e.key, e.windows, e.vector FROM embeddings e JOIN models d ON d.id = e.model "
        "WHERE d.model_id = ? AND e.key IN (SELECT value FROM json_each(?)) ORDER BY e.key",
        (model_id, json.dumps([int(key) for key in keys])),
    )
    return [(row[0], _unpacked(row[2], row[1])) for row in rows]


def _unpacked(vector: bytes, windows: int) -> Embedding:
    embedding = np.frombuffer(vector, _STORED).astype(np.float32).reshape(windows, -1)
    # Rounding to float16 moved the length by up to 1e-3.
    lengths = np.linalg.norm(embedding, axis=1, keepdims=True)
    np.divide(embedding, lengths, out=embedding, where=lengths > 0)
    return embedding


def _model_row(connection: apsw.Connection, model_id: str, *, name: str, dim: int) -> int:
    found = fetch_value(connection, "SELECT id FROM models WHERE model_id = ?", (model_id,))
    if found is None:
        connection.execute(
            "INSERT INTO models (model_id, name, dim, is_current) VALUES (?, ?, ?, 0)", (model_id, name, dim)
        )
        found = connection.last_insert_rowid()
    return int(found)
