"""The pool of readers at its end: nothing keeps a sidecar from stopping, and nothing is left open."""

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from sidecar.adapters.sqlite import readers
from sidecar.adapters.sqlite.connection import fetch_value, open_writer
from sidecar.adapters.sqlite.migration import migrate, shipped_migrations
from sidecar.adapters.sqlite.readers import READER_COUNT, Readers
from sidecar.errors import ShuttingDownError

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    connection = open_writer(path)
    migrate(connection, path, migrations=shipped_migrations(), now_us=1)
    connection.close()
    return path


async def test_read_without_end_does_not_keep_the_sidecar_from_stopping(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is interrupted, and so told apart from a disk that fails; what waited behind it is not begun."""
    monkeypatch.setattr(readers, "LONGEST_READ_AT_CLOSE_S", 0.1)
    pool = Readers(path)

    def count(connection: apsw.Connection) -> int:
        return int(fetch_value(connection, ENDLESS))

    reads = [asyncio.create_task(pool.run(count)) for _ in range(READER_COUNT + 2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await pool.close()
    outcomes = await asyncio.gather(*reads, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ShuttingDownError] * len(reads)
    with pytest.raises(ShuttingDownError):
        await pool.run(count)


async def test_read_that_ends_in_time_is_answered(path: Path) -> None:
    """Closing waits for it."""
    pool, has_begun, may_end = Readers(path), threading.Event(), threading.Event()

    def read(connection: apsw.Connection) -> int:
        has_begun.set()
        may_end.wait()
        return int(fetch_value(connection, "SELECT 7"))

    reading = asyncio.create_task(pool.run(read))
    await asyncio.to_thread(has_begun.wait)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)
    may_end.set()
    await closing
    assert await reading == 7
