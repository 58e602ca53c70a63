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
from sidecar.errors import EmbedderUnavailableError, StorageError
from sidecar.ports import Clock, Embedding, MemoryStore
from sidecar.use_cases.semantic_index import SemanticIndex

_LONGEST_BACKOFF_S: Final = 300.0
_IDLE_WAIT_S: Final = 1.0
_REASON_CHARACTERS: Final = 200

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
        self._waiters: defaultdict[int, list[asyncio.Future[tuple[Edge, ...]]]] = defaultdict(list)
        self._under_way: set[int] = set()
        self._last_write_s = 0.0
        self.failures = 0

    def wake(self) -> None:
        """Look for jobs soon: something was stored."""
        self._last_write_s = asyncio.get_running_loop().time()
        self._wake.set()

    async def wait_for(self, key: int) -> tuple[Edge, ...]:
        """Return when this memory has been embedded, with the relations made by that; the caller bounds the wait.

        There is nothing to wait for, and none of those relations to tell, if it was embedded before.
        """
        waiter: asyncio.Future[tuple[Edge, ...]] = asyncio.get_running_loop().create_future()
        self._waiters[key].append(waiter)
        self._wake.set()
        try:
            embedded = await self._store.embeddings(self._semantic.model_id, [key])
            if embedded and key not in self._under_way and not waiter.done():
                return ()
            return await waiter
        finally:
            waiters = self._waiters.get(key, [])
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(key, None)

    async def run(self) -> None:
        """Work until cancelled. Without a model it ends, and the jobs stay for a later start."""
        await self._semantic.loaded.wait()
        is_idle = True
        while self._semantic.model_id:
            try:
                if is_idle:
                    await self._settle()
                worked = await self._work_off_batch()
            except (EmbedderUnavailableError, StorageError) as error:
                # Not the texts' fault: nothing is counted against them, and the queue waits.
                self.failures += 1
                log.warning("embedding waits", extra={"reason": error.reason})
                worked = False
                await asyncio.sleep(self._policy.backoff_s)
            is_idle = not worked
            if is_idle:
                await self._semantic.save(after_writes=self._policy.save_after_writes)
                await self._idle()

    async def _idle(self) -> None:
        self._wake.clear()
        # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with the event.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_IDLE_WAIT_S):
                await self._wake.wait()

    async def _settle(self) -> None:
        """Wait for a pause between writes, unless somebody waits for a vector."""
        now = asyncio.get_running_loop().time
        deadline = now() + self._policy.longest_settle_s
        while not self._waiters and now() < min(deadline, self._last_write_s + self._policy.settle_s):
            await asyncio.sleep(self._policy.settle_s / 2)

    async def _work_off_batch(self) -> bool:
        jobs = await self._store.due_jobs(now=self._clock.now(), limit=self._policy.batch_size)
        if not jobs:
            return False
        try:
            await self._embed(jobs)
        except (EmbedderUnavailableError, StorageError):
            raise
        except Exception:  # noqa: BLE001 - tried again below, where it is recorded
            # One bad text fails the whole call: try each alone to find it. What raises for a text is up to the model.
            log.warning("embedding a batch failed; trying its texts one by one", extra={"batch": len(jobs)})
            for job in jobs:
                await self._embed_alone(job)
        return True

    async def _embed(self, jobs: Sequence[EmbedJob]) -> None:
        keys = [job.key for job in jobs]
        self._under_way.update(keys)
        try:
            embeddings = await self._semantic.embed([job.content for job in jobs])
            embedded = dict(zip(keys, embeddings, strict=True))
            stored = await self._store.save_embeddings(self._semantic.model_id, list(embedded.items()))
            if stored:
                await self._semantic.add([(key, embedded[key]) for key in stored])
            # After all of a batch can be found, so that its memories are related to each other too.
            for key in keys:
                self._answer(key, await self._link(key, embedded[key]))
        finally:
            self._under_way.difference_update(keys)

    def _answer(self, key: int, edges: tuple[Edge, ...]) -> None:
        for waiter in self._waiters.pop(key, []):
            if not waiter.done():
                waiter.set_result(edges)

    async def _embed_alone(self, job: EmbedJob) -> None:
        try:
            await self._embed([job])
        except (EmbedderUnavailableError, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - recorded with the job: a poison text is parked, and visible
            self.failures += 1
            attempts = job.attempts + 1
            reason = f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS]
            wait_s = min(self._policy.backoff_s * 2.0**job.attempts, _LONGEST_BACKOFF_S)
            is_last = attempts >= self._policy.max_attempts
            next_try = None if is_last else self._clock.now() + timedelta(seconds=wait_s)
            await self._store.fail_job(job.key, reason=reason, next_try_at=next_try)
