"""The one place that writes: a thread with its own connection that commits what has queued up in groups.

An operation is acknowledged after the commit that holds it, never before. It does not know SQL of our tables.
"""

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import apsw

from sidecar.adapters.sqlite.connection import BUSY_TIMEOUT_MS, STORAGE_FAULTS, open_writer, storage_error
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.errors import ShuttingDownError, SidecarError, StorageError, TooManyRequestsError

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_GROUP: Final = 256
MAX_QUEUED: Final = 8_192
IDLE_S: Final = 0.25
"""Without work for this long, the writer looks whether the journal wants emptying."""
CHORE_INTERVAL_S: Final = 3_600.0
"""So often, and first of all, an idle writer does its chore."""
LINGER_S: Final = 0.05
"""So long a group of operations that nobody waits for stays open for more of them."""

IDLE_CHECKPOINT_PAGES: Final = 256
TRUNCATE_PAGES: Final = 1_024
"""Below 4 MiB the journal's file is kept for reuse: a file that need not grow is synced faster."""

BUSY_CHECKPOINT_PAGES: Final = 4_096
"""16 MiB of journal: then it is written back even under load."""

EMPTYING_WAIT_MS: Final = 2_000
LOG_INTERVAL_S: Final = 10.0


@dataclass(slots=True)
class _Work(Generic[T]):
    run: Callable[[Transaction], T]
    loop: asyncio.AbstractEventLoop | None = None
    waiter: asyncio.Future[T] | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


@dataclass(frozen=True, slots=True)
class WriterHealth:
    """How writing goes. `problem` is empty while the last group was committed."""

    problem: str
    failing_since_s: float
    queued: int
    counters: dict[str, int]


class Writer:
    """Runs write operations on its own thread, up to 256 of them in one transaction.

    Args:
        chore: What an idle writer does now and then; it tells whether it removed something that must leave the journal
            too. A failure is counted and logged.
    """

    def __init__(
        self,
        path: Path,
        connection: apsw.Connection,
        *,
        max_queued: int = MAX_QUEUED,
        chore: Callable[[Transaction], bool] | None = None,
        chore_interval_s: float = CHORE_INTERVAL_S,
    ) -> None:
        self._path = path
        self._connection: apsw.Connection | None = connection
        self._max_queued = max_queued
        self._chore = chore
        self._chore_interval_s = chore_interval_s
        self._chore_due_s = 0.0
        self._queue: queue.SimpleQueue[_Work[Any] | None] = queue.SimpleQueue()
        self._counters: Counter[str] = Counter()
        self._problem = ""
        self._failing_since_s = 0.0
        self._last_log_s = 0.0
        self._journal_pages = 0
        self._must_empty = False
        self._closing = threading.Lock()
        self._is_closed = False
        self._end: StorageError | None = None
        self._ended: Future[None] = Future()
        self._watch_journal(connection)
        self._thread = threading.Thread(target=self._work, name="sqlite-writer", daemon=True)
        self._thread.start()

    async def run(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation and return its result once it is durable.

        Who stops waiting does not stop the write.

        Raises:
            StorageError: Or a leaf, if the group could not be committed, nothing of it was stored then; or if the
                writer has ended by a fault.
            TooManyRequestsError: If the queue is full. ShuttingDownError: After `close`.
            SidecarError: What the operation raised; nothing of it was stored then.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()
        self._put(_Work(operation, loop, waiter))
        return await waiter

    def submit_nowait(self, operation: Callable[[Transaction], object], *, what: str) -> None:
        """Run an operation some time soon; a failure is counted under `<what>_failed` and logged, never raised."""
        try:
            self._put(_Work(operation, what=what))
        except (TooManyRequestsError, ShuttingDownError, StorageError) as error:
            self._count_failure(what, error)

    def empty_journal(self) -> None:
        """Empty the journal after the present group, so that no byte of what was removed is left in it.

        Only for operations, which run on the writer's thread.
        """
        self._must_empty = True

    def health(self) -> WriterHealth:
        """Tell how writing goes."""
        return WriterHealth(self._problem, self._failing_since_s, self._queue.qsize(), dict(self._counters))

    async def close(self) -> None:
        """Finish what was queued, write the journal back and close; calling it again waits for the same."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        await asyncio.wrap_future(self._ended)

    def _put(self, work: _Work[Any]) -> None:
        if self._queue.qsize() >= self._max_queued:
            raise TooManyRequestsError("writes")
        # Under the lock, so that nothing is queued behind the end mark and waits for ever.
        with self._closing:
            if self._is_closed:
                raise self._end or ShuttingDownError()
            self._queue.put(work)

    # --- on the writer's thread ---

    def _work(self) -> None:
        group: list[_Work[Any]] = []
        try:
            is_last = False
            while not is_last:
                group, is_last = self._next_group()
                if group:
                    self._run_group(group)
                elif self._chore is not None and time.monotonic() >= self._chore_due_s:
                    self._chore_due_s = time.monotonic() + self._chore_interval_s
                    self._run_group([_Work(self._run_chore, what="chore")])
                self._care_for_journal(is_idle=not group or is_last)
        except Exception as error:
            # Whatever ends this thread, nobody may wait for it for ever, and it must be seen.
            log.exception("the writer has ended")
            self._end_by(error, group)
        finally:
            self._disconnect()
            self._ended.set_result(None)

    def _end_by(self, error: Exception, group: list[_Work[Any]]) -> None:
        """Take no more work, and fail all that waits."""
        failure = StorageError(
            f"writing to {self._path} has ended by a fault ({type(error).__name__}: {error}); run `sidecar restart`",
            path=str(self._path),
        )
        self._note_problem(failure)
        with self._closing:
            self._is_closed, self._end = True, failure
        waiting = list(group)
        with contextlib.suppress(queue.Empty):
            while True:
                work = self._queue.get_nowait()
                waiting += [work] if work is not None else []
        self._deliver(waiting, [_Failed(failure) for _ in waiting])

    def _run_chore(self, transaction: Transaction) -> None:
        if self._chore is not None and self._chore(transaction):
            self.empty_journal()

    def _idle_wait_s(self) -> float | None:
        """Return how long to wait for work before there is something to do without it; None for ever."""
        waits = []
        if self._must_empty or self._journal_pages > IDLE_CHECKPOINT_PAGES:
            waits.append(IDLE_S)
        if self._chore is not None:
            waits.append(max(self._chore_due_s - time.monotonic(), 0.0))
        return min(waits, default=None)

    def _next_group(self) -> tuple[list[_Work[Any]], bool]:
        """Wait for work and return it, and whether the end mark was among it; no work after idle time."""
        group: list[_Work[Any]] = []
        timeout_s = self._idle_wait_s()
        is_awaited = False
        lingers_until = 0.0
        with contextlib.suppress(queue.Empty):
            while len(group) < MAX_GROUP:
                # What nobody waits for lingers, so that a run of recalls is noted with one sync instead of many.
                work = self._queue.get(block=not is_awaited, timeout=timeout_s)
                if work is None:
                    return group, True
                if not group:
                    lingers_until = time.monotonic() + LINGER_S
                group.append(work)
                is_awaited = is_awaited or work.waiter is not None
                timeout_s = max(lingers_until - time.monotonic(), 0.0)
        return group, False

    def _run_group(self, group: list[_Work[Any]]) -> None:
        outcomes: list[Any]
        try:
            connection = self._connected()
            transaction = Transaction(connection)
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._run_one(transaction, work) for work in group]
            transaction.run_before_commit()
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - a step at the end of the group may fail in any way
            outcomes = [_Failed(self._recover(error)) for _ in group]
        else:
            self._problem = ""
            self._counters["commits"] += 1
            for fault in transaction.run_after_commit():
                self._count_failure("step_after_commit", fault)
            if self._must_empty:
                self._empty_journal()
        self._deliver(group, outcomes)

    def _run_one(self, transaction: Transaction, work: _Work[T]) -> T | _Failed:
        connection = transaction.connection
        mark = transaction.mark()
        connection.execute("SAVEPOINT operation")
        try:
            result = work.run(transaction)
        except STORAGE_FAULTS:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits for this operation
            connection.execute("ROLLBACK TO operation")
            connection.execute("RELEASE operation")
            transaction.fall_back(mark)
            return _Failed(error)
        connection.execute("RELEASE operation")
        return result

    def _deliver(self, group: list[_Work[Any]], outcomes: list[Any]) -> None:
        """Hand out a group's outcomes with one wake-up for each event loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for work, outcome in zip(group, outcomes, strict=True):
            if work.loop is not None and work.waiter is not None:
                by_loop.setdefault(work.loop, []).append((work.waiter, outcome))
            elif isinstance(outcome, _Failed):
                self._count_failure(work.what, outcome.error)
        for loop, pairs in by_loop.items():
            try:
                loop.call_soon_threadsafe(_resolve, pairs)
            except RuntimeError:
                # The loop was closed: nobody waits any more, and what was written stays written.
                self._counters["answers_undelivered"] += len(pairs)

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = open_writer(self._path)
            self._watch_journal(self._connection)
            self._counters["reconnects"] += 1
        return self._connection

    def _recover(self, error: Exception) -> StorageError:
        """Undo the group, and let go of a connection that can't be trusted to know what is on the disk."""
        connection = self._connection
        failure = storage_error(error, self._path, system_errno=connection.system_errno if connection else 0)
        if connection is not None:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            except apsw.Error:
                self._counters["rollbacks_failed"] += 1
                self._disconnect()
            if not isinstance(error, apsw.FullError):
                self._disconnect()
        self._note_problem(failure)
        self._counters["groups_failed"] += 1
        self._log_rarely("a group of writes failed", failure)
        return failure

    def _note_problem(self, failure: StorageError) -> None:
        if not self._problem:
            self._failing_since_s = time.time()
        self._problem = failure.message

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except apsw.Error as error:
                self._count_failure("closing", error)

    def _count_failure(self, what: str, error: BaseException) -> None:
        self._counters[f"{what}_failed"] += 1
        self._log_rarely(f"{what} failed", error)

    def _log_rarely(self, message: str, error: BaseException) -> None:
        # A full disk fails every write; its log lines must not fill what is left.
        now_s = time.monotonic()
        if now_s - self._last_log_s >= LOG_INTERVAL_S or not self._last_log_s:
            self._last_log_s = now_s
            reason = error.reason if isinstance(error, SidecarError) else type(error).__name__
            log.warning(message, extra={"reason": reason})

    # --- the journal ---

    def _watch_journal(self, connection: apsw.Connection) -> None:
        connection.set_wal_hook(self._note_journal)

    def _note_journal(self, connection: apsw.Connection, name: str, pages: int) -> int:  # noqa: ARG002 - a callback
        self._journal_pages = pages
        return apsw.SQLITE_OK

    def _care_for_journal(self, *, is_idle: bool) -> None:
        if self._connection is None:
            return
        wants_emptying = self._must_empty or self._journal_pages > TRUNCATE_PAGES
        if is_idle and wants_emptying:
            self._checkpoint(self._connection, apsw.SQLITE_CHECKPOINT_TRUNCATE, wait_ms=0)
        elif (is_idle and self._journal_pages > IDLE_CHECKPOINT_PAGES) or self._journal_pages > BUSY_CHECKPOINT_PAGES:
            self._checkpoint(self._connection, apsw.SQLITE_CHECKPOINT_PASSIVE, wait_ms=0)

    def _empty_journal(self) -> None:
        if self._connection is not None:
            self._checkpoint(self._connection, apsw.SQLITE_CHECKPOINT_TRUNCATE, wait_ms=EMPTYING_WAIT_MS)

    def _checkpoint(self, connection: apsw.Connection, mode: int, *, wait_ms: int) -> None:
        connection.set_busy_timeout(wait_ms)
        try:
            pages, written_back = connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            # A reader still needs the journal; the next idle moment tries again.
            self._counters["checkpoints_busy"] += 1
        except apsw.Error as error:
            self._recover(error)
            return
        else:
            # Once all is written back, the next write starts the journal anew.
            self._journal_pages = pages - written_back
            self._must_empty = self._must_empty and mode != apsw.SQLITE_CHECKPOINT_TRUNCATE
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)


def _resolve(pairs: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for waiter, outcome in pairs:
        if waiter.done():
            continue
        if isinstance(outcome, _Failed):
            waiter.set_exception(outcome.error)
        else:
            waiter.set_result(outcome)
