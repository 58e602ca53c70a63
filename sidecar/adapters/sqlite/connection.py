"""Opens connections to the database, and turns the engine's errors into ours. Holds no SQL of our tables."""

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from sidecar.errors import StorageCorruptError, StorageError, StorageFullError, StorageReadOnlyError

Row = tuple[Any, ...]
Value = None | int | float | str | bytes

BUSY_TIMEOUT_MS: Final = 5_000
CACHE_KIB: Final = 16 * 1024
STATEMENTS_CACHED: Final = 200
FILE_MODE: Final = 0o600
_SHORTEST_KEY_LIST: Final = 16
_NO_KEY: Final = -1

STORAGE_FAULTS: Final = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)
"""Errors that say something of the disk or the file rather than of one statement."""

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})

# journal_mode comes first: the rest holds for the journal that is then in use.
_WRITER_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA recursive_triggers = ON",
)
_PRAGMAS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY",
    f"PRAGMA cache_size = -{CACHE_KIB}",
)


def open_writer(path: Path) -> apsw.Connection:
    """Return the one connection that writes; the file is made, readable by its owner only, if it is not there.

    Checkpoints never happen by themselves on it: the writer does them.

    Raises:
        apsw.Error: If the engine refuses; OSError if the file cannot be made.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE))
    connection = apsw.Connection(
        str(path),
        flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
        statementcachesize=STATEMENTS_CACHED,
    )
    try:
        _configure(connection, (*_WRITER_PRAGMAS, *_PRAGMAS))
        connection.wal_autocheckpoint(0)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> apsw.Connection:
    """Return a connection that cannot write.

    Raises:
        apsw.Error: If the engine refuses.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, statementcachesize=STATEMENTS_CACHED)
    try:
        _configure(connection, ("PRAGMA query_only = ON", *_PRAGMAS))
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: apsw.Connection, pragmas: Iterable[str]) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    for pragma in pragmas:
        connection.execute(pragma).fetchall()


def fetch_all(connection: apsw.Connection, sql: str, arguments: Iterable[Value] = ()) -> list[Row]:
    """Return all rows of a statement."""
    return connection.execute(sql, tuple(arguments)).fetchall()


def fetch_one(connection: apsw.Connection, sql: str, arguments: Iterable[Value] = ()) -> Row | None:
    """Return the first row of a statement, None if there is none."""
    row: Row | None = connection.execute(sql, tuple(arguments)).fetchone()
    return row


def fetch_value(connection: apsw.Connection, sql: str, arguments: Iterable[Value] = ()) -> Any:
    """Return the first column of the first row, None if there is no row."""
    return connection.execute(sql, tuple(arguments)).get


def placeholders(count: int) -> str:
    """Return `?, ?, ...` for an IN list."""
    return ", ".join("?" * count)


def key_list(keys: Sequence[int]) -> tuple[str, list[Value]]:
    """Return place holders for an IN list of keys, and what to bind to them.

    Filled up to one of a few lengths with a key that no row has: a statement of a new length is compiled anew, which
    takes as long as running it.
    """
    length = max(_SHORTEST_KEY_LIST, 1 << max(len(keys) - 1, 0).bit_length())
    return placeholders(length), [*(int(key) for key in keys), *[_NO_KEY] * (length - len(keys))]


def storage_error(error: Exception, path: Path, *, system_errno: int = 0) -> StorageError:
    """Return our error for one of the engine's or the operating system's."""
    name = str(path)
    if isinstance(error, OSError):
        system_errno = error.errno or 0
    if isinstance(error, apsw.FullError) or system_errno in _NO_SPACE:
        return StorageFullError(name)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StorageCorruptError(name)
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError) or system_errno in (errno.EROFS, errno.EACCES):
        return StorageReadOnlyError(name)
    return StorageError(
        f"the database {name} refused ({type(error).__name__}: {error}); nothing was stored, try again", path=name
    )


def sqlite_version() -> str:
    """Return the engine and its version, for a person."""
    return f"SQLite {apsw.sqlite_lib_version()}"
