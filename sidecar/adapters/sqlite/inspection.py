"""Looks at a database file that no sidecar has open. Reads only; what it finds is for a person."""

from pathlib import Path
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import fetch_all, open_reader, storage_error

_FAULTS_SHOWN: Final = 5


def find_damage(path: Path) -> tuple[str, ...]:
    """Return what is wrong with the structure of the file, up to five faults; nothing if it is sound. Blocks.

    Raises:
        StorageError: It cannot be read, which says nothing of its content.
    """
    try:
        connection = open_reader(path)
        try:
            rows = fetch_all(connection, f"PRAGMA quick_check({_FAULTS_SHOWN})")
        finally:
            connection.close()
    except apsw.NotADBError:
        return ("it is no SQLite database",)
    except apsw.CorruptError as error:
        return (str(error),)
    except apsw.Error as error:
        raise storage_error(error, path) from error
    # One row may hold several faults, each on a line of its own.
    return tuple(line for (text,) in rows for line in str(text).splitlines() if line != "ok")[:_FAULTS_SHOWN]
