"""Runs reads on a few threads, each with its own connection that cannot write. Never waits for the writer."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import apsw

from sidecar.adapters.sqlite.connection import STORAGE_FAULTS, open_reader, storage_error
from sidecar.errors import ShuttingDownError

T = TypeVar("T")

READER_COUNT: Final = 3
LONGEST_READ_AT_CLOSE_S: Final = 5.0
"""Figures over years of use may take longer; nobody waits for them any more when the sidecar stops."""

_INTERRUPTS_EVERY_S: Final = 0.1


class Readers:
    """A pool of read-only connections. Every read is one short transaction, so it sees one state."""

    def __init__(self, path: Path, *, count: int = READER_COUNT) -> None:
        self._path = path
        self._local = threading.local()
        self._open: set[apsw.Connection] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="sqlite-reader")

    async def run(self, read: Callable[[apsw.Connection], T]) -> T:
        """Run a read and return its result.

        Raises:
            StorageError: Or a leaf, if the database cannot be read. ShuttingDownError: After `close`.
        """
        if self._is_closed:
            raise ShuttingDownError
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, read)

    async def close(self) -> None:
        """Wait for running reads, interrupt those that take too long, and close every connection."""
        self._is_closed = True
        ending = asyncio.ensure_future(asyncio.to_thread(self._pool.shutdown, wait=True))
        await asyncio.wait({ending}, timeout=LONGEST_READ_AT_CLOSE_S)
        while not ending.done():
            with self._lock:
                for connection in self._open:
                    connection.interrupt()
            # Again, as one that had just begun would not notice.
            await asyncio.wait({ending}, timeout=_INTERRUPTS_EVERY_S)
        await ending
        with self._lock:
            while self._open:
                self._open.pop().close()

    def _read(self, read: Callable[[apsw.Connection], T]) -> T:
        if self._is_closed:
            # It was still queued.
            raise ShuttingDownError
        connection: apsw.Connection | None = None
        try:
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except apsw.InterruptError as error:
            raise ShuttingDownError from error
        except STORAGE_FAULTS as error:
            # After such an error a fresh connection is the only one to trust; the next read makes it.
            system_errno = connection.system_errno if connection else 0
            self._let_go(connection)
            raise storage_error(error, self._path, system_errno=system_errno) from error

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = open_reader(self._path)
            self._local.connection = connection
            with self._lock:
                self._open.add(connection)
        return connection

    def _let_go(self, connection: apsw.Connection | None) -> None:
        self._local.connection = None
        if connection is not None:
            with self._lock:
                self._open.discard(connection)
            connection.close(force=True)
