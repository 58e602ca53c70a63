"""Puts a backup in the place of the database. Blocks; nothing may have the database open meanwhile.

The backup itself is only read: it is copied first, and the copy is checked and becomes the database.
"""

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import FILE_MODE, fetch_all, fetch_value, open_reader, storage_error
from sidecar.adapters.sqlite.migration import find_version, shipped_migrations
from sidecar.adapters.sqlite.upkeep import find_faults
from sidecar.errors import InvalidInputError

_JOURNALS: Final = ("-journal", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put in place.

    Attributes:
        memory_count: Memories in it, forgotten ones included.
        schema: Its schema; an older one is migrated at the next start.
        aside: Where the database that was there before is now; None if there was none.
    """

    memory_count: int
    schema: int
    aside: Path | None


def restore_backup(backup: Path, database: Path, *, aside: Path) -> Restored:
    """Replace the database by a copy of the backup, and keep the present one.

    Args:
        backup: A file that `sidecar backup` wrote, or one that this function set aside.
        database: Need not be there.
        aside: Where the present one goes; MUST NOT exist.

    Raises:
        InvalidInputError: The backup is no regular file, no database of ours, or not sound; nothing was changed.
        SchemaTooNewError: A newer version made it; nothing was changed.
        StorageError: The disk refuses. The present database is then where it was, or at `aside`.
    """
    if not backup.is_file() or backup.stat().st_size == 0:
        raise InvalidInputError("FILE", str(backup), "a file that `sidecar backup` wrote")
    copy = database.with_name(f"{database.name}.restoring")
    try:
        _remove(copy)
        _copy(backup, copy)
        schema, memory_count = _checked(copy, backup)
        _sync(copy)
        had_one = database.exists()
        if had_one:
            _set_aside(database, aside)
        _remove_journals(copy)
        copy.replace(database)
        _sync_folder(database.parent)
    except OSError as error:
        raise storage_error(error, database) from error
    finally:
        with contextlib.suppress(OSError):
            _remove(copy)
    return Restored(memory_count, schema, aside if had_one else None)


def _copy(backup: Path, copy: Path) -> None:
    """Copy the file, and the journal that one which was set aside may have: its last writes are in there."""
    for suffix in ("", "-wal"):
        source = backup.with_name(backup.name + suffix)
        if not source.exists():
            continue
        descriptor = os.open(copy.with_name(copy.name + suffix), os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with source.open("rb") as reading, os.fdopen(descriptor, "wb") as writing:
            shutil.copyfileobj(reading, writing, 1024 * 1024)


def _checked(copy: Path, backup: Path) -> tuple[int, int]:
    """Return schema and number of memories of the copy, whose journal is written back into it."""
    newest = len(shipped_migrations())
    try:
        _write_back(copy)
        schema = find_version(copy, supported=newest)
        if schema == 0:
            raise InvalidInputError("FILE", str(backup), "a file that `sidecar backup` wrote; it is another database")
        # What the invariants of today name need not be there in an older schema.
        faults = find_faults(copy) if schema == newest else _basic_faults(copy)
        if faults:
            raise InvalidInputError("FILE", str(backup), f"a sound backup; this one is not: {faults[0]}")
        reader = open_reader(copy)
        try:
            return schema, int(fetch_value(reader, "SELECT count(*) FROM memories"))
        finally:
            reader.close()
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise InvalidInputError("FILE", str(backup), f"a sound database; this one is not: {error}") from error
    except apsw.Error as error:
        raise storage_error(error, copy) from error


def _write_back(path: Path) -> None:
    """Leave everything in the one file, so that it can be moved by itself."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        fetch_all(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _basic_faults(path: Path) -> tuple[str, ...]:
    reader = open_reader(path)
    try:
        return tuple(str(row[0]) for row in fetch_all(reader, "PRAGMA integrity_check") if row[0] != "ok")
    finally:
        reader.close()


def _set_aside(database: Path, aside: Path) -> None:
    # One that is too damaged to be written back, which may be why a backup is wanted, keeps its journal beside it.
    with contextlib.suppress(apsw.Error):
        _write_back(database)
    # The journal must never meet another database than its own, so it goes first.
    for suffix in _JOURNALS:
        journal = database.with_name(database.name + suffix)
        if journal.exists():
            journal.replace(aside.with_name(aside.name + suffix))
    try:
        # With a second name there is a database at every moment.
        os.link(database, aside)
    except OSError:
        database.replace(aside)


def _remove_journals(path: Path) -> None:
    for suffix in _JOURNALS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    _remove_journals(path)
    path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the new names durable; there is nothing to sync in a folder on Windows."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
