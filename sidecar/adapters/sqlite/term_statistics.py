"""Knows how many memories hold each term. Kept in memory: asking the index itself costs as much as a term is common.

Built from `memory_words` when the store is opened, in the background, then kept up to date by the writer.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import numpy as np
import numpy.typing as npt

from sidecar.adapters.sqlite.connection import fetch_value, open_reader, storage_error
from sidecar.domain.word_selection import WeighedTerm, term_hash
from sidecar.errors import StorageError

log = logging.getLogger(__name__)

PackedTerms = npt.NDArray[np.uint64]
"""One number for each different term of a memory: its hash above, its count in the low 16 bits."""

COUNT_BITS: Final = np.uint64(16)
MAX_TERM_COUNT: Final = (1 << 16) - 1
_ROWS_AT_ONCE: Final = 20_000
_MERGE_AT: Final = 50_000
_COUNT_AT: Final = 64


@dataclass(frozen=True, slots=True)
class WordTotals:
    """Figures of the whole store that BM25 asks for."""

    memory_count: int
    mean_length: float


class TermStatistics:
    """Counts of memories by term. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hashes: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._counts: npt.NDArray[np.int64] = np.empty(0, np.int64)
        # Changes since the arrays were built: a few thousand entries rather than one for every term there is.
        self._changes: dict[int, int] = {}
        # What nobody asked about yet: the writer, for whom a caller waits, leaves the counting to who asks.
        self._uncounted: list[tuple[PackedTerms, int]] = []
        self._memory_count = 0
        self._total_length = 0

    def load(self, connection: apsw.Connection, *, is_stopped: Callable[[], bool]) -> None:
        """Add what the transaction of this connection sees; changes made since then may be in already."""
        hashes, counts = np.empty(0, np.uint64), np.empty(0, np.int64)
        memory_count = total_length = pending_terms = 0
        pending: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]] = []
        cursor = connection.execute("SELECT length, terms FROM memory_words")
        while rows := [row for _, row in zip(range(_ROWS_AT_ONCE), cursor, strict=False)]:
            if is_stopped():
                return
            memory_count += len(rows)
            total_length += sum(row[0] for row in rows)
            packed = np.frombuffer(b"".join(row[1] for row in rows), "<u8")
            found, times = np.unique(packed >> COUNT_BITS, return_counts=True)
            pending.append((found, times))
            pending_terms += len(found)
            # Only once there is as much to add as there is: each merge goes through all of it.
            if pending_terms > len(hashes):
                hashes, counts = _merged(hashes, counts, *_joined(pending))
                pending, pending_terms = [], 0
        hashes, counts = _merged(hashes, counts, *_joined(pending))
        with self._lock:
            self._hashes, self._counts = _merged(self._hashes, self._counts, hashes, counts)
            self._memory_count += memory_count
            self._total_length += total_length

    def add(self, packed: PackedTerms, *, length: int, step: int = 1) -> None:
        """Count a memory in, or with `step` -1 out again."""
        with self._lock:
            self._uncounted.append((packed, step))
            self._memory_count += step
            self._total_length += step * length
            if len(self._uncounted) > _COUNT_AT:
                self._count_changes()

    def totals(self) -> WordTotals:
        """Return the store's figures; a mean length of 0 for an empty store."""
        with self._lock:
            mean_length = self._total_length / self._memory_count if self._memory_count else 0.0
            return WordTotals(self._memory_count, mean_length)

    def weigh(self, terms: Iterable[str]) -> list[WeighedTerm]:
        """Return those terms that any memory holds, each once, with how many do."""
        asked = list(dict.fromkeys(terms))
        with self._lock:
            self._count_changes()
            counts = self._count([term_hash(term) for term in asked])
        return [WeighedTerm(term, count) for term, count in zip(asked, counts, strict=True) if count > 0]

    def _count(self, hashes: Sequence[int]) -> list[int]:
        changes = [self._changes.get(term, 0) for term in hashes]
        if not len(self._hashes) or not hashes:
            return changes
        asked = np.array(hashes, np.uint64)
        places = np.minimum(np.searchsorted(self._hashes, asked), len(self._hashes) - 1)
        base = np.where(self._hashes[places] == asked, self._counts[places], 0)
        return [int(count) + change for count, change in zip(base, changes, strict=True)]

    def _count_changes(self) -> None:
        for packed, step in self._uncounted:
            for term in (packed >> COUNT_BITS).tolist():
                self._changes[term] = self._changes.get(term, 0) + step
        self._uncounted.clear()
        if len(self._changes) > _MERGE_AT:
            self._merge_changes()

    def _merge_changes(self) -> None:
        changed = sorted(self._changes.items())
        hashes = np.array([term for term, _ in changed], np.uint64)
        counts = np.array([change for _, change in changed], np.int64)
        self._hashes, self._counts = _merged(self._hashes, self._counts, hashes, counts)
        self._changes.clear()


class StatisticsLoading:
    """Builds the statistics in the background, from the state the database is in when this is made.

    Raises:
        StorageError: If the database cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.statistics = TermStatistics()
        self._path = path
        self._ended: Future[None] = Future()
        self._is_stopped = threading.Event()
        try:
            self._connection = open_reader(path)
            self._connection.execute("BEGIN")
            # The first read fixes what the transaction sees.
            fetch_value(self._connection, "SELECT count(*) FROM sqlite_schema")
        except apsw.Error as error:
            raise storage_error(error, path) from error
        threading.Thread(target=self._load, name="sqlite-statistics", daemon=True).start()

    async def wait(self) -> None:
        """Return when the statistics are there.

        Raises:
            StorageError: If they could not be read.
        """
        if not self._ended.done():
            await asyncio.shield(asyncio.wrap_future(self._ended))
        self._ended.result()

    async def stop(self) -> None:
        """Give up if it is still going on, and wait for its end."""
        self._is_stopped.set()
        with contextlib.suppress(StorageError):
            await self.wait()

    def _load(self) -> None:
        try:
            self.statistics.load(self._connection, is_stopped=self._is_stopped.is_set)
        except Exception as error:
            # Whatever it was, who waits for the statistics must be told, or they wait for ever.
            log.exception("the word statistics could not be built")
            self._ended.set_exception(storage_error(error, self._path))
        else:
            self._ended.set_result(None)
        finally:
            self._connection.close(force=True)


def _joined(
    tables: Sequence[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return tables one behind the other."""
    if not tables:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return np.concatenate([terms for terms, _ in tables]), np.concatenate([counts for _, counts in tables])


def _merged(
    hashes: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
    more_hashes: npt.NDArray[np.uint64],
    more_counts: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the sums of a sorted table and of more terms, sorted, without those that nobody holds any more."""
    together = np.concatenate((hashes, more_hashes))
    if not len(together):
        return hashes, counts
    order = np.argsort(together, kind="stable")
    together = together[order]
    starts = np.flatnonzero(np.concatenate(([True], together[1:] != together[:-1])))
    found = together[starts]
    sums = np.add.reduceat(np.concatenate((counts, more_counts))[order], starts)
    # A change may arrive before what it takes away from, so only true zeros go.
    kept = sums != 0
    return found[kept], sums[kept]
