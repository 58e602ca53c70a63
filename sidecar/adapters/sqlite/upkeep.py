"""Tells how the database is: sizes, problems in words, and faults of its contents. Reads only."""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import (
    fetch_all,
    fetch_value,
    open_reader,
    sqlite_version,
    storage_error,
)
from sidecar.adapters.sqlite.coverage import losses
from sidecar.adapters.sqlite.writer import WriterHealth
from sidecar.domain.store_values import StoreHealth

LARGE_JOURNAL_BYTES: Final = 64 * 1024 * 1024
LOW_SPACE_BYTES: Final = 64 * 1024 * 1024

_UNEMBEDDED: Final = (
    "SELECT count(*) FROM memories WHERE key NOT IN (SELECT key FROM embed_jobs) AND key NOT IN "
    "(SELECT key FROM embeddings WHERE model = coalesce((SELECT id FROM models WHERE is_current = 1), model))"
)
_WORDLESS: Final = "SELECT count(*) FROM memories WHERE key NOT IN (SELECT key FROM memory_words)"
_LOST_SUCCESSORS: Final = (
    "SELECT count(*) FROM memories WHERE state = 'superseded' AND superseded_by NOT IN (SELECT id FROM memories)"
)
_TERM_DIFFERENCE: Final = (
    "SELECT abs(coalesce((SELECT sum(length(terms)) / 8 FROM memory_words), 0) "
    "- coalesce((SELECT sum(doc) FROM words_vocabulary), 0))"
)
_SLICE_SIZES: Final = (
    "SELECT count(*) FROM evidence_sessions WHERE slice_bytes <> "
    "(SELECT coalesce(sum(s.size_bytes), 0) FROM slices s WHERE s.thread = evidence_sessions.id)"
)
_INVARIANTS: Final = (
    ("memories without terms for word search", _WORDLESS),
    ("memories that are neither embedded nor waiting for it", _UNEMBEDDED),
    ("superseded memories whose successor is not there", _LOST_SUCCESSORS),
    ("sessions that hold more or fewer bytes of texts than they say", _SLICE_SIZES),
    ("terms that the word index has more or fewer of than the memories", _TERM_DIFFERENCE),
)


@dataclass(frozen=True, slots=True)
class DatabaseFigures:
    """What only the database itself can tell."""

    schema: int
    missing_shown_ids: int
    dropped_slices: int


def read_figures(connection: apsw.Connection) -> DatabaseFigures:
    """Return the database's own figures."""
    return DatabaseFigures(int(fetch_value(connection, "PRAGMA user_version")), *losses(connection))


def health_of(path: Path, writing: WriterHealth, figures: DatabaseFigures | None, *, problem: str = "") -> StoreHealth:
    """Return the store's health.

    Args:
        figures: None if the database could not be read; `problem` then says why.
    """
    journal_bytes = _size(path.with_name(f"{path.name}-wal"))
    free_bytes = shutil.disk_usage(path.parent).free
    problems = [problem] if problem else []
    if writing.problem:
        since = datetime.fromtimestamp(writing.failing_since_s, UTC).isoformat(timespec="seconds")
        problems.append(f"writes fail since {since}: {writing.problem}")
    if journal_bytes > LARGE_JOURNAL_BYTES:
        problems.append(
            f"the journal has {journal_bytes} bytes; something reads for so long that it cannot be written back"
        )
    if free_bytes < LOW_SPACE_BYTES:
        problems.append(f"only {free_bytes} bytes are free where {path} lies; free some space")
    counters = dict(writing.counters)
    counters["writes_queued"] = writing.queued
    if figures is not None:
        counters["shown_ids_not_in_store"] = figures.missing_shown_ids
        counters["slices_dropped"] = figures.dropped_slices
    return StoreHealth(
        schema=figures.schema if figures else 0,
        engine=sqlite_version(),
        database_bytes=_size(path),
        wal_bytes=journal_bytes,
        free_bytes=free_bytes,
        problems=tuple(problems),
        counters=counters,
    )


def find_faults(path: Path) -> tuple[str, ...]:
    """See `MemoryStore.check_integrity`; blocks."""
    try:
        # A connection of its own: FTS5's check trusts the structure that a connection has cached, and on one that
        # searched before others wrote it reports damage where there is none (seen with SQLite 3.54.1).
        connection = open_reader(path)
        try:
            return _faults(connection)
        finally:
            connection.close()
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return (f"the database is damaged: {error}",)
    except apsw.Error as error:
        raise storage_error(error, path) from error


def _faults(connection: apsw.Connection) -> tuple[str, ...]:
    # SQLite checks the word index along with the rest.
    faults = [str(row[0]) for row in fetch_all(connection, "PRAGMA integrity_check") if row[0] != "ok"]
    for table, *_ in fetch_all(connection, "PRAGMA foreign_key_check"):
        faults.append(f"a row of {table} points to a row that is not there")
    for name, sql in _INVARIANTS:
        count = int(fetch_value(connection, sql))
        if count:
            faults.append(f"{count} {name}")
    return tuple(faults)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
