"""Writes a checked copy of the database while it is in use. Blocks; reads on a connection of its own."""

import os
from pathlib import Path
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import FILE_MODE, fetch_value, open_reader, storage_error
from sidecar.adapters.sqlite.upkeep import find_faults
from sidecar.domain.maintenance import BackUp
from sidecar.errors import InvalidInputError, StorageError

_JOURNALS: Final = ("-journal", "-wal", "-shm")


def back_up(database: Path, target: Path) -> BackUp:
    """See `MaintenanceStore.back_up`."""
    if not target.is_absolute() or not target.parent.is_dir():
        raise InvalidInputError("path", str(target), "an absolute path in a folder that is there")
    # Written under another name: a copy that was cut short must not pass for a backup. The name asked for is taken
    # first, so that nobody else's file is ever replaced.
    partial = target.with_name(f"{target.name}.partial")
    _take(target, target)
    try:
        _take(partial, target)
        try:
            memory_count = _copy(database, partial)
            size_bytes = partial.stat().st_size
            partial.replace(target)
            _sync(target.parent)
        except BaseException:
            _remove(partial)
            raise
    except BaseException:
        _remove(target)
        raise
    return BackUp(size_bytes, memory_count)


def _take(path: Path, target: Path) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
    except FileExistsError:
        raise InvalidInputError("path", str(target), f"a file that does not exist yet; {path} does") from None
    except OSError as error:
        raise storage_error(error, path) from error


def _copy(database: Path, partial: Path) -> int:
    """Write the copy, check it, and return how many memories it has."""
    try:
        _write_copy(database, partial)
        with partial.open("rb+") as copy:
            os.fsync(copy.fileno())
        faults = find_faults(partial)
        if faults:
            raise StorageError(
                f"the copy of {database} is not sound and was removed: {faults[0]}; run `sidecar doctor`",
                path=str(database),
            )
        reader = open_reader(partial)
        try:
            return int(fetch_value(reader, "SELECT count(*) FROM memories"))
        finally:
            reader.close()
    except (apsw.Error, OSError) as error:
        raise storage_error(error, partial) from error


def _write_copy(database: Path, partial: Path) -> None:
    connection = open_reader(database)
    try:
        # The file stays opened for reading only; with this on, the engine would not write the other one either.
        connection.execute("PRAGMA query_only = OFF").fetchall()
        connection.execute("VACUUM INTO ?", (str(partial),))
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise storage_error(error, database) from error
    except apsw.Error as error:
        # Said of the copy: the database itself may lie on another disk.
        raise storage_error(error, partial, system_errno=connection.system_errno) from error
    finally:
        connection.close()


def _remove(path: Path) -> None:
    for name in (path.name, *(path.name + journal for journal in _JOURNALS)):
        path.with_name(name).unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make the new name durable; there is nothing to sync in a folder on Windows."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
