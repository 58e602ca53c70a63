"""The lock around FAISS: readers together, a writer alone, and no writer waits for ever."""

import threading
from collections.abc import Callable

from sidecar.adapters.faiss.rwlock import ReadersWriterLock

WAIT_S = 10.0
SHORT_S = 0.05


def started(job: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=job, daemon=True)
    thread.start()
    return thread


def test_two_readers_hold_it_at_once() -> None:
    """Each waits inside for the other, which only works if both are in."""
    lock, meeting = ReadersWriterLock(), threading.Barrier(2)

    def read() -> None:
        with lock.reading():
            meeting.wait(WAIT_S)

    threads = [started(read), started(read)]
    for thread in threads:
        thread.join(WAIT_S)
    assert not meeting.broken
    assert not any(thread.is_alive() for thread in threads)


def test_writer_is_alone() -> None:
    """While a reader is in, a writer is not, and while a writer is in, nobody else is."""
    lock, wrote, read = ReadersWriterLock(), threading.Event(), threading.Event()
    release = threading.Event()

    def write() -> None:
        with lock.writing():
            wrote.set()
            release.wait(WAIT_S)

    def read_once() -> None:
        with lock.reading():
            read.set()

    with lock.reading():
        writer = started(write)
        assert not wrote.wait(SHORT_S)
    assert wrote.wait(WAIT_S)
    reader = started(read_once)
    assert not read.wait(SHORT_S)
    release.set()
    assert read.wait(WAIT_S)
    for thread in (writer, reader):
        thread.join(WAIT_S)


def test_waiting_writer_goes_before_new_readers() -> None:
    """A steady stream of searches must not keep a memory from being indexed."""
    lock, order = ReadersWriterLock(), list[str]()
    writer_waits = threading.Event()

    def write() -> None:
        writer_waits.set()
        with lock.writing():
            order.append("writer")

    def read() -> None:
        with lock.reading():
            order.append("reader")

    with lock.reading():
        writer = started(write)
        assert writer_waits.wait(WAIT_S)
        while not lock.has_waiting_writer:
            assert writer.is_alive()
        reader = started(read)
        reader.join(SHORT_S)
        assert order == []
    for thread in (writer, reader):
        thread.join(WAIT_S)
    assert order == ["writer", "reader"]


def test_lock_is_free_after_an_error_inside() -> None:
    """An exception inside leaves nothing locked."""
    lock = ReadersWriterLock()
    for hold in (lock.writing, lock.reading, lock.writing):
        try:
            with hold():
                raise ValueError
        except ValueError:
            continue
    assert not lock.has_waiting_writer
