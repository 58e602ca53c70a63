"""Brings a database to the newest schema, and refuses one that is newer still. Knows no table but its own.

All that are missing are one transaction together with `user_version`: whoever is killed in between leaves the old
schema, which the version before can work with, and the copy of it that was made first.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import FILE_MODE, fetch_value, open_reader, storage_error
from sidecar.errors import SchemaTooNewError

_SUFFIX: Final = ".sql"
_BOOKKEEPING: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One change of the schema. `version` counts from 1 without gaps."""

    version: int
    name: str
    script: str

    def statements(self) -> list[str]:
        """Return the script's statements one by one: run as a whole, it would be committed behind our back."""
        found: list[str] = []
        pending = ""
        for line in self.script.splitlines(keepends=True):
            pending += line
            if apsw.complete(pending):
                found.append(pending.strip())
                pending = ""
        if any(line.strip() and not line.lstrip().startswith("--") for line in pending.splitlines()):
            raise ValueError(f"migration {self.name} ends in the middle of a statement")
        return found


def shipped_migrations() -> list[Migration]:
    """Return the migrations that this version knows, in order."""
    folder = resources.files("sidecar.adapters.sqlite.migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(_SUFFIX))
    migrations = [
        Migration(int(name.split("_")[0]), name.removesuffix(_SUFFIX), folder.joinpath(name).read_text("utf-8"))
        for name in names
    ]
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise ValueError(f"migrations are not numbered 1 to {len(migrations)}: {', '.join(names)}")
    return migrations


def find_version(path: Path, *, supported: int) -> int:
    """Return the schema version of a database file, 0 for a new one, without changing a byte of it.

    Raises:
        SchemaTooNewError: If it is above `supported`.
        StorageCorruptError: If it is no database. StorageError: If it cannot be read.
    """
    if not path.exists() or path.stat().st_size == 0:
        return 0
    try:
        version = _read_version(path)
    except apsw.Error as error:
        raise storage_error(error, path) from error
    if version > supported:
        raise SchemaTooNewError(version, supported)
    return version


def _read_version(path: Path) -> int:
    try:
        connection = open_reader(path)
    except apsw.ReadOnlyError:
        # Power failed in the middle of a change that the engine must undo before anyone can read.
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        version = int(fetch_value(connection, "PRAGMA user_version"))
        # Reads the schema, which a file with a good header but damaged pages does not survive.
        fetch_value(connection, "SELECT count(*) FROM sqlite_schema")
    finally:
        connection.close()
    return version


def migrate(
    connection: apsw.Connection, path: Path, *, migrations: Sequence[Migration], now_us: int
) -> tuple[Migration, ...]:
    """Apply what is missing, and return it. An existing database is copied to `<path>.before-<version>` first.

    Raises:
        StorageError: Or a leaf of it; the schema is then the old one.
    """
    version = int(fetch_value(connection, "PRAGMA user_version"))
    missing = [migration for migration in migrations if migration.version > version]
    if not missing:
        return ()
    try:
        if version > 0:
            _back_up(connection, path.with_name(f"{path.name}.before-{missing[-1].version}"))
        with _transaction(connection):
            for migration in missing:
                _apply(connection, migration, now_us=now_us)
    except (apsw.Error, OSError) as error:
        raise storage_error(error, path, system_errno=connection.system_errno) from error
    return tuple(missing)


def _apply(connection: apsw.Connection, migration: Migration, *, now_us: int) -> None:
    connection.execute(_BOOKKEEPING)
    for statement in migration.statements():
        connection.execute(statement)
    connection.execute(
        "INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)",
        (migration.version, migration.name, now_us),
    )
    connection.execute(f"PRAGMA user_version = {migration.version}")


@contextlib.contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _back_up(connection: apsw.Connection, target: Path) -> None:
    # Written under another name first: a copy that was cut short must not pass for a backup.
    partial = target.with_name(target.name + ".partial")
    for left_over in (partial, partial.with_name(f"{partial.name}-journal")):
        left_over.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
    connection.execute("VACUUM INTO ?", (str(partial),))
    with partial.open("rb+") as copy:
        os.fsync(copy.fileno())
    partial.replace(target)
