"""The writer: groups, failures that stay apart, and what happens when the disk or the caller goes away."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest

from sidecar.adapters.sqlite.connection import fetch_value, open_reader, open_writer
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.writer import Writer
from sidecar.errors import MemoryNotFoundError, ShuttingDownError, StorageError, StorageFullError, TooManyRequestsError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.db"


@pytest.fixture
async def writer(path: Path) -> AsyncIterator[Writer]:
    opened = Writer(path, prepared(path), max_queued=100)
    yield opened
    await opened.close()


def prepared(path: Path) -> apsw.Connection:
    connection = open_writer(path)
    connection.execute("CREATE TABLE IF NOT EXISTS notes (text TEXT UNIQUE) STRICT")
    return connection


@dataclass(frozen=True)
class Insert:
    """Stores a note and returns it."""

    text: str

    def __call__(self, transaction: Transaction) -> str:
        transaction.connection.execute("INSERT INTO notes VALUES (?)", (self.text,))
        return self.text


@dataclass(frozen=True)
class LimitPages:
    """Lets the database grow to so many pages."""

    pages: int

    def __call__(self, transaction: Transaction) -> None:
        transaction.connection.execute(f"PRAGMA max_page_count = {self.pages}").fetchall()


def fails() -> None:
    raise IndexError("a fault of ours")


def stored(path: Path) -> list[str]:
    reader = open_reader(path)
    try:
        return [str(row[0]) for row in reader.execute("SELECT text FROM notes ORDER BY rowid")]
    finally:
        reader.close()


class Gate:
    """An operation that holds the writer until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, transaction: Transaction) -> None:
        self.entered.set()
        assert self.open.wait(timeout=30)


async def hold(writer: Writer) -> tuple[Gate, asyncio.Task[None]]:
    gate = Gate()
    task = asyncio.create_task(writer.run(gate))
    assert await asyncio.to_thread(gate.entered.wait, 30)
    return gate, task


async def test_writes_that_queue_up_share_a_commit(writer: Writer, path: Path) -> None:
    """One fsync for many callers is what makes full durability affordable."""
    gate, holding = await hold(writer)
    tasks = [asyncio.create_task(writer.run(Insert(str(number)))) for number in range(64)]
    await asyncio.sleep(0)
    gate.open.set()
    assert await asyncio.gather(*tasks) == [str(number) for number in range(64)]
    await holding
    assert writer.health().counters["commits"] == 2
    assert stored(path) == [str(number) for number in range(64)]


async def test_failing_operation_does_not_take_its_group_along(writer: Writer, path: Path) -> None:
    """Each caller gets their own outcome, and nothing of a failed operation stays."""

    def fails_late(transaction: Transaction) -> None:
        Insert("half")(transaction)
        transaction.before_commit(lambda: pytest.fail("a step of a failed operation ran"))
        raise MemoryNotFoundError("mem_x")

    gate, holding = await hold(writer)
    calls = [writer.run(Insert("a")), writer.run(fails_late), writer.run(Insert("a")), writer.run(Insert("b"))]
    gathering = asyncio.gather(*calls, return_exceptions=True)
    await asyncio.sleep(0)
    gate.open.set()
    outcomes = await gathering
    await holding
    assert outcomes[0] == "a"
    assert isinstance(outcomes[1], MemoryNotFoundError)
    assert isinstance(outcomes[2], apsw.ConstraintError)
    assert outcomes[3] == "b"
    assert stored(path) == ["a", "b"]


async def test_steps_run_at_the_end_and_after_the_commit(writer: Writer, path: Path) -> None:
    """The index is written once a group, and statistics count only what is durable."""
    seen: list[object] = []

    def operation(transaction: Transaction) -> None:
        transaction.before_commit(
            lambda: seen.append(fetch_value(transaction.connection, "SELECT count(*) FROM notes"))
        )
        transaction.after_commit(lambda: seen.append(stored(path)))
        Insert("a")(transaction)

    await writer.run(operation)
    assert seen == [1, ["a"]]


async def test_caller_who_stops_waiting_does_not_stop_the_write(writer: Writer, path: Path) -> None:
    """A deadline at the client must not undo what others see already."""
    gate, holding = await hold(writer)
    task = asyncio.create_task(writer.run(Insert("kept")))
    await asyncio.sleep(0)
    task.cancel()
    gate.open.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await holding
    await writer.run(Insert("after"))
    assert stored(path) == ["kept", "after"]


async def test_full_queue_refuses_at_once(writer: Writer) -> None:
    """Better a clear no than memory that grows without bound."""
    gate, holding = await hold(writer)
    tasks = [asyncio.create_task(writer.run(Insert(str(number)))) for number in range(100)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequestsError):
        await writer.run(Insert("too many"))
    writer.submit_nowait(Insert("dropped"), what="note")
    gate.open.set()
    await asyncio.gather(holding, *tasks)
    assert writer.health().counters["note_failed"] == 1


async def test_failure_nobody_waits_for_is_counted(writer: Writer, path: Path) -> None:
    """Fire and forget must not mean fail and forget."""
    for _ in range(2):
        writer.submit_nowait(Insert("same"), what="note")
    await writer.run(Insert("other"))
    assert writer.health().counters["note_failed"] == 1
    assert stored(path) == ["same", "other"]


async def test_step_that_fails_before_the_commit_fails_its_group(writer: Writer, path: Path) -> None:
    """A fault of ours is told like one of the disk's: nothing was stored, and writing goes on."""

    def operation(transaction: Transaction) -> None:
        Insert("lost")(transaction)
        transaction.before_commit(fails)

    with pytest.raises(StorageError, match="IndexError"):
        await writer.run(operation)
    assert "IndexError" in writer.health().problem
    await writer.run(Insert("after"))
    assert writer.health().problem == ""
    assert stored(path) == ["after"]


async def test_step_that_fails_after_the_commit_is_counted_and_the_write_acknowledged(
    writer: Writer, path: Path
) -> None:
    """What is durable must not be reported as lost; the other steps run."""
    seen: list[str] = []

    def operation(transaction: Transaction) -> str:
        transaction.after_commit(fails)
        transaction.after_commit(lambda: seen.append("ran"))
        return Insert("kept")(transaction)

    assert await writer.run(operation) == "kept"
    assert writer.health().counters["step_after_commit_failed"] == 1
    await writer.run(Insert("after"))
    assert (stored(path), seen) == (["kept", "after"], ["ran"])


async def test_writer_that_ends_by_a_fault_leaves_nobody_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits, who comes later and who closes is told, and so is the status."""
    writer = Writer(path, prepared(path))
    gate, holding = await hold(writer)

    def breaks(**_: object) -> None:
        raise ValueError("no such journal")

    monkeypatch.setattr(writer, "_care_for_journal", breaks)
    waiting = asyncio.create_task(writer.run(Insert("waiting")))
    await asyncio.sleep(0)
    gate.open.set()
    async with asyncio.timeout(30):
        await holding
        for task in (waiting, writer.run(Insert("late"))):
            with pytest.raises(StorageError, match="no such journal"):
                await task
        await writer.close()
    assert "no such journal" in writer.health().problem
    assert stored(path) == []


async def test_full_database_is_told_and_writing_resumes_by_itself(writer: Writer, path: Path) -> None:
    """After space is freed, no restart is needed."""

    await writer.run(LimitPages(1))
    with pytest.raises(StorageFullError):
        await writer.run(Insert("x" * 100_000))
    assert "no space left" in writer.health().problem
    await writer.run(LimitPages(1_000_000))
    await writer.run(Insert("y"))
    assert writer.health().problem == ""
    assert stored(path) == ["y"]


async def test_database_that_cannot_be_opened_again_is_told_until_it_can(writer: Writer, path: Path) -> None:
    """After an I/O error the writer reconnects before it acknowledges anything."""

    def fails(transaction: Transaction) -> None:
        raise apsw.IOError("the disk said no")

    with pytest.raises(Exception, match="the disk said no"):
        await writer.run(fails)
    assert writer.health().problem
    await writer.run(Insert("after"))
    assert writer.health().counters["reconnects"] == 1
    assert writer.health().problem == ""
    assert stored(path) == ["after"]


async def test_idle_writer_does_its_chore_again_and_again(path: Path) -> None:
    """Without being asked, after what was asked; a chore that fails is counted and does no harm."""
    done: list[str] = []
    enough = threading.Event()

    def chore(transaction: Transaction) -> bool:
        done.extend(str(row[0]) for row in transaction.connection.execute("SELECT text FROM notes"))
        if len(done) > 3:
            enough.set()
            raise MemoryNotFoundError("mem_x")
        return False

    writer = Writer(path, prepared(path), chore=chore, chore_interval_s=0.01)
    await writer.run(Insert("a"))
    assert await asyncio.to_thread(enough.wait, 30)
    await writer.close()
    assert set(done) == {"a"}
    assert writer.health().counters["chore_failed"] >= 1


async def test_close_finishes_what_was_queued(path: Path) -> None:
    """What was accepted is written, and the journal is empty afterwards."""
    writer = Writer(path, prepared(path))
    gate, holding = await hold(writer)
    tasks = [asyncio.create_task(writer.run(Insert(str(number)))) for number in range(10)]
    await asyncio.sleep(0)
    closing = asyncio.gather(writer.close(), writer.close())
    gate.open.set()
    await closing
    assert await asyncio.gather(*tasks) == [str(number) for number in range(10)]
    await holding
    with pytest.raises(ShuttingDownError):
        await writer.run(Insert("late"))
    assert not path.with_name("w.db-wal").exists()
    assert len(stored(path)) == 10


def test_event_loop_that_ended_does_not_stop_the_writer(path: Path) -> None:
    """A caller's loop may be gone before its answer."""
    writer = Writer(path, prepared(path))
    gate = Gate()

    async def ask_and_leave() -> None:
        for operation in (gate, Insert("a")):
            task = asyncio.create_task(writer.run(operation))
            await asyncio.sleep(0)
            assert not task.done()
        assert await asyncio.to_thread(gate.entered.wait, 30)

    asyncio.run(ask_and_leave())
    gate.open.set()
    asyncio.run(writer.close())
    assert stored(path) == ["a"]


async def test_long_reader_does_not_let_the_journal_grow_for_ever(writer: Writer, path: Path) -> None:
    """While someone reads, the journal waits; once they end, it is emptied without being asked."""
    await writer.run(Insert("first"))
    reader = open_reader(path)
    reader.execute("BEGIN")
    assert fetch_value(reader, "SELECT count(*) FROM notes") == 1
    for number in range(50):
        await writer.run(Insert(f"{number}" + "x" * 100_000))
    journal = path.with_name("w.db-wal")
    assert journal.stat().st_size > 5_000_000
    reader.close()
    async with asyncio.timeout(30):
        while journal.stat().st_size:
            await asyncio.sleep(0.05)
