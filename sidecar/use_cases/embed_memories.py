"""Embeds stored memories in the background: durable jobs, in batches, newest first; no text holds up the rest."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sidecar.domain.store_values import Edge, EmbedJob
from sidecar.errors import EmbedderUnavailableError, StorageError, TooManyRequestsError
from sidecar.ports import Clock, Embedding, MemoryStore
from sidecar.use_cases.semantic_index import SemanticIndex

_LONGEST_BACKOFF_S: Final = 300.0
_IDLE_WAIT_S: Final = 1.0
_REASON_CHARACTERS: Final = 200
_NOT_THE_TEXTS_FAULT: Final = (EmbedderUnavailableError, StorageError, TooManyRequestsError)

_Rows = list[tuple[int, Embedding]]

log = logging.getLogger(__name__)

Linker = Callable[[int, Embedding], Awaitable[tuple[Edge, ...]]]
"""Relates the memory of a key and its `(windows, dim)` vectors to others; see `AutoLink.run`."""


async def _link_nothing(_key: int, _embedding: Embedding) -> tuple[Edge, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class EmbedPolicy:
    """How jobs are worked off.

    Attributes:
        batch_size: Texts embedded at once.
        max_attempts: A job that failed this often is parked.
        backoff_s: Wait after the first failure; doubled after each further one, up to five minutes.
        save_after_writes: The index is saved when this many rows changed.
        settle_s: After idling, embedding starts when nothing was stored for so long: acknowledging a burst of writes
            goes before making them findable by meaning.
        longest_settle_s: But it starts after so long in any case.
    """

    batch_size: int = 16
    max_attempts: int = 5
    backoff_s: float = 2.0
    save_after_writes: int = 1000
    settle_s: float = 0.05
    longest_settle_s: float = 0.4


class EmbedMemories:
    """Works off the embedding queue. One instance runs at a time."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        semantic: SemanticIndex,
        clock: Clock,
        policy: EmbedPolicy,
        link: Linker = _link_nothing,
    ) -> None:
        """Take what is needed; `link` is called for each memory once it can be found by meaning."""
        self._store = store
        self._link = link
        self._semantic = semantic
        self._clock = clock
        self._policy = policy
        self._wake = asyncio.Event()
        self._waiters: defaultdict[int, list[asyncio.Future[bool]]] = defaultdict(list)
        self._last_write_s = 0.0
        self._is_adding = False
        # Keys whose vectors are stored and which may be found already, but are not related yet.
        self._unfinished: frozenset[int] = frozenset()
        self.failures = 0

    def wake(self) -> None:
        """Look for jobs soon: something was stored."""
        self._last_write_s = asyncio.get_running_loop().time()
        self._wake.set()

    async def retry_parked(self) -> int:
        """Have what was given up embedded again; return how many."""
        retried = await self._store.retry_parked()
        self.wake()
        return retried

    async def wait_for(self, key: int) -> bool:
        """Return whether a memory can be found by meaning, as soon as that is decided; the caller bounds the wait.

        At once if it can be already, or if there is no model. False also if it is given up or purged while we wait.
        """
        await self._semantic.loaded.wait()
        if not self._semantic.model_id:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters[key].append(waiter)
        self._wake.set()
        try:
            # Asked only now: what is indexed after the answer finds the waiter, and what is being related does, too.
            is_held = await self._semantic.holds(key)
            return (is_held and key not in self._unfinished) or await waiter
        finally:
            waiters = self._waiters.get(key, [])
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(key, None)

    @property
    def is_off(self) -> bool:
        """Whether nothing will be embedded until the next start: there is no model."""
        return self._semantic.loaded.is_set() and not self._semantic.model_id

    async def all_indexed(self) -> bool:
        """Tell whether everything stored so far can be found by meaning, except what was given up.

        False without a model, also while it is being loaded.
        """
        if not self._semantic.model_id:
            return False
        counts = await self._store.job_counts()
        # Looked at last: a job ends when its vector is stored, a moment before the index has it.
        return not counts.pending and not self._is_adding

    async def run(self) -> None:
        """Work until cancelled. Without a model it ends, and the jobs stay for a later start."""
        await self._semantic.loaded.wait()
        is_idle, is_caught_up = True, False
        while self._semantic.model_id:
            try:
                if not is_caught_up:
                    await self._link_left_over()
                    is_caught_up = True
                if is_idle:
                    await self._settle()
                # Before the queue is read: whatever is stored from here on wakes us again.
                self._wake.clear()
                worked = await self._work_off_batch()
            except _NOT_THE_TEXTS_FAULT as error:
                # Nothing is counted against the texts, and the queue waits.
                self.failures += 1
                log.warning("embedding waits", extra={"reason": error.reason})
                worked = False
                await asyncio.sleep(self._policy.backoff_s)
            is_idle = not worked
            if is_idle:
                await self._semantic.save(after_writes=self._policy.save_after_writes)
                await self._idle()

    async def _link_left_over(self) -> None:
        """Relate what was embedded just before the last sidecar ended."""
        model_id = self._semantic.model_id
        keys = await self._store.unlinked_keys(model_id)
        for start in range(0, len(keys), self._policy.batch_size):
            for key, embedding in await self._store.embeddings(model_id, keys[start : start + self._policy.batch_size]):
                await self._link(key, embedding)

    async def _idle(self) -> None:
        # Jobs that failed become due without anybody waking us. Not `wait_for`: before Python 3.12 it loses a
        # cancellation that comes together with the event.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_IDLE_WAIT_S):
                await self._wake.wait()

    async def _settle(self) -> None:
        """Wait for a pause between writes, unless somebody waits for a vector."""
        now = asyncio.get_running_loop().time
        deadline = now() + self._policy.longest_settle_s
        while True:
            rest_s = min(deadline, self._last_write_s + self._policy.settle_s) - now()
            if self._waiters or rest_s <= 0:
                return
            await asyncio.sleep(min(rest_s, self._policy.settle_s / 2))

    async def _work_off_batch(self) -> bool:
        jobs = await self._store.due_jobs(now=self._clock.now(), limit=self._policy.batch_size)
        if not jobs:
            return False
        rows = await self._embed(jobs)
        if rows:
            await self._keep(rows)
        return True

    async def _embed(self, jobs: Sequence[EmbedJob]) -> _Rows:
        """Return the vectors of those jobs whose text the model takes."""
        if len(jobs) > 1:
            try:
                embeddings = await self._semantic.embed([job.content for job in jobs])
                return [(job.key, embedding) for job, embedding in zip(jobs, embeddings, strict=True)]
            except Exception as error:  # noqa: BLE001 - what raises for a bad text is up to the model; tried again below
                log.warning(
                    "embedding a batch failed; trying its texts one by one",
                    extra={"batch": len(jobs), "error": type(error).__name__},
                )
                await self._semantic.probe()
        rows: _Rows = []
        for job in jobs:
            rows += await self._embed_alone(job)
        return rows

    async def _embed_alone(self, job: EmbedJob) -> _Rows:
        try:
            (embedding,) = await self._semantic.embed([job.content])
        except Exception as error:  # noqa: BLE001 - recorded with the job: a poison text is parked, and visible
            # Whatever the error says: a text that ends the model's process looks like an outage too.
            await self._semantic.probe()
            await self._note_failure(job, f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS])
            return []
        return [(job.key, embedding)]

    async def _note_failure(self, job: EmbedJob, reason: str) -> None:
        self.failures += 1
        wait_s = min(self._policy.backoff_s * 2.0**job.attempts, _LONGEST_BACKOFF_S)
        is_last = job.attempts + 1 >= self._policy.max_attempts
        next_try = None if is_last else self._clock.now() + timedelta(seconds=wait_s)
        await self._store.fail_job(job.key, reason=reason, next_try_at=next_try)
        if is_last:
            self._answer_waiters(job.key, is_indexed=False)

    async def _keep(self, rows: _Rows) -> None:
        self._unfinished = frozenset(key for key, _ in rows)
        try:
            await self._add_and_link(rows)
        finally:
            self._unfinished = frozenset()

    async def _add_and_link(self, rows: _Rows) -> None:
        model_id = self._semantic.model_id
        self._is_adding = True
        try:
            kept = await self._store.save_embeddings(model_id, rows)
            added = await self._add([row for row in rows if row[0] in kept], model_id)
        finally:
            self._is_adding = False
        # After all of a batch can be found, so that its memories are related to each other too.
        for key, embedding in rows:
            if key in added:
                await self._link(key, embedding)
            # Together, so that nobody begins to wait in between.
            self._unfinished -= {key}
            self._answer_waiters(key, is_indexed=key in added)

    async def _add(self, rows: _Rows, model_id: str) -> frozenset[int]:
        try:
            return await self._semantic.add(rows)
        except Exception:
            # Their jobs are done, so nothing else would bring them into the index before the next start.
            await self._store.requeue(model_id, [key for key, _ in rows])
            raise

    def _answer_waiters(self, key: int, *, is_indexed: bool) -> None:
        for waiter in self._waiters.pop(key, []):
            if not waiter.done():
                waiter.set_result(is_indexed)
