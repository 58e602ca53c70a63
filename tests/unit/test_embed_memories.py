"""The embedding queue: nothing is lost, a poison text holds up nobody, an outage costs time only."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.memory import Caller, MemoryState
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import OrderBy
from sidecar.errors import TooManyRequestsError
from sidecar.ports import Embedding
from sidecar.use_cases import embed_memories
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.embed_memories import EmbedMemories, EmbedPolicy
from sidecar.use_cases.recall import Recall, RecallPolicy, RecallQuery
from sidecar.use_cases.remember import Remember, RememberQuery
from tests.unit.fake_parts import MoodyEmbedder, PlainRedactor, SteppingClock, semantic_index

CALLER = Caller(owner="local", client="test", session="s")
POLICY = EmbedPolicy(batch_size=4, max_attempts=3, backoff_s=0.01, settle_s=0.0)


class Bench:
    """A store, an embedder and the use cases around them."""

    everything = MemoryFilter(owner=CALLER.owner, scope=NamespaceScope(()), states=tuple(MemoryState))

    def __init__(self, embedder: MoodyEmbedder | None, *, store: InMemoryStore | None = None) -> None:
        self.clock = SteppingClock()
        self.store = store or InMemoryStore(clock=self.clock)
        self.catalog = MemoryCatalog()
        self.semantic = semantic_index(self.store, embedder)
        self.embedding = EmbedMemories(store=self.store, semantic=self.semantic, clock=self.clock, policy=POLICY)
        self.completion = Completion()
        self.remember = Remember(
            store=self.store,
            catalog=self.catalog,
            semantic=self.semantic,
            embedding=self.embedding,
            redactor=PlainRedactor(),
            completion=self.completion,
            clock=self.clock,
        )
        self.recall = Recall(
            store=self.store,
            catalog=self.catalog,
            semantic=self.semantic,
            clock=self.clock,
            policy=RecallPolicy(floor=0.0),
        )

    async def store_texts(self, *texts: str) -> None:
        for text in texts:
            await self.remember.run(CALLER, RememberQuery(text))

    async def until(self, pending: int, parked: int = 0) -> None:
        counts = await self.store.job_counts()
        for _ in range(2000):
            is_settled = pending > 0 or await self.embedding.all_indexed()
            if is_settled and (counts.pending, counts.parked) == (pending, parked):
                return
            self.clock.advance(seconds=60)
            await asyncio.sleep(0.005)
            counts = await self.store.job_counts()
        raise AssertionError(f"still {counts}")

    async def recalled(self, query: str) -> list[str]:
        answer = await self.recall.run(CALLER, RecallQuery(query, limit=10))
        return [recalled.memory.content for recalled in answer.memories]


@asynccontextmanager
async def working(bench: Bench) -> AsyncIterator[Bench]:
    await bench.semantic.load()
    worker = asyncio.create_task(bench.embedding.run())
    try:
        yield bench
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
        bench.semantic.close()


async def test_poison_is_parked_with_its_reason_and_the_rest_is_embedded() -> None:
    """Tried alone, then given up after the last attempt, visibly."""
    async with working(Bench(MoodyEmbedder())) as bench:
        await bench.store_texts(*(f"good text {number}" for number in range(7)), "a poison text")
        await bench.until(pending=0, parked=1)
        (parked,) = await bench.store.parked_jobs(limit=5)
        assert (parked.attempts, parked.reason) == (3, "ValueError: this text makes the model fail")
        assert bench.semantic.status.index_size == 7
        assert "a poison text" in await bench.recalled("poison")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a refused text", "EmbeddingFailedError"),
        ("a killer of processes", "EmbedderUnavailableError"),
        ("a sick text", "EmbeddingFailedError"),
    ],
)
async def test_text_that_fails_in_any_way_holds_up_nobody(text: str, reason: str) -> None:
    """Also one that looks like an outage, since the model works on other texts, or that gets a useless vector."""
    bench = Bench(MoodyEmbedder())
    await bench.store_texts(*(f"good text {number}" for number in range(5)), text)
    async with working(bench):
        await bench.until(pending=0, parked=1)
        (parked,) = await bench.store.parked_jobs(limit=5)
        assert parked.attempts == 3
        assert parked.reason.startswith(reason)
        assert bench.semantic.status.index_size == 5


async def test_query_that_the_model_fails_on_is_answered_by_words() -> None:
    """It is this query's problem: the answer says so, and the next one is answered by meaning."""
    async with working(Bench(MoodyEmbedder())) as bench:
        await bench.store_texts("kept refused text", "kept other text")
        for query in ("refused text", "sick text"):
            answer = await bench.recall.run(CALLER, RecallQuery(query))
            assert [part.leg for part in answer.degraded] == ["meaning"]
            assert answer.memories
        assert (await bench.recall.run(CALLER, RecallQuery("other text"))).degraded == ()


async def test_outage_costs_no_attempts_and_loses_nothing() -> None:
    """While the model is down everything is found by words; afterwards by meaning."""
    embedder = MoodyEmbedder()
    async with working(Bench(embedder)) as bench:
        embedder.is_down = True
        await bench.store_texts(*(f"kept through the outage {number}" for number in range(6)))
        answer = await bench.recall.run(CALLER, RecallQuery("outage", limit=10))
        assert len(answer.memories) == 6
        assert [part.leg for part in answer.degraded] == ["meaning"]
        embedder.is_down = False
        await bench.until(pending=0)
        answer = await bench.recall.run(CALLER, RecallQuery("outage", limit=10))
        assert answer.degraded == ()
        assert all(recalled.parts.similarity is not None for recalled in answer.memories)


async def test_newest_is_embedded_first() -> None:
    """What was just said is found before the backlog is worked off."""
    embedder = MoodyEmbedder()
    bench = Bench(embedder)
    await bench.store_texts(*(f"backlog {number}" for number in range(12)))
    async with working(bench):
        await bench.until(pending=0)
    assert embedder.embedded[0] == "backlog 11"


async def test_waiting_for_the_index_returns_when_embedded() -> None:
    """The answer says so, and names near memories."""
    async with working(Bench(MoodyEmbedder())) as bench:
        await bench.store_texts("the build takes nine minutes")
        query = RememberQuery("the build takes ten minutes", is_waiting_for_index=True)
        answer = await bench.remember.run(CALLER, query)
        assert answer.is_indexed
        assert len(answer.similar) == 1


async def test_without_a_model_words_answer_and_say_so() -> None:
    """Switched off is a state, not a failure; waiting for the index then returns at once."""
    async with working(Bench(None)) as bench:
        stored = await bench.remember.run(CALLER, RememberQuery("words alone", is_waiting_for_index=True))
        assert not stored.is_indexed
        answer = await bench.recall.run(CALLER, RecallQuery("words"))
        assert [recalled.memory.content for recalled in answer.memories] == ["words alone"]
        assert "switched off" in answer.degraded[0].reason


async def test_secrets_reach_neither_store_nor_model() -> None:
    """Redaction comes first."""
    embedder = MoodyEmbedder()
    async with working(Bench(embedder)) as bench:
        await bench.store_texts("the password is hunter2")
        await bench.until(pending=0)
        assert embedder.embedded == ["the password is [redacted:word]"]
        assert await bench.recalled("password") == ["the password is [redacted:word]"]


class HeldStore(InMemoryStore):
    """Holds up the saving of vectors, before or after it happens, or has a full queue."""

    def __init__(self, *, clock: SteppingClock) -> None:
        super().__init__(clock=clock)
        self.is_asked = asyncio.Event()
        self.may_save = asyncio.Event()
        self.may_save.set()
        self.is_saved = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.refusals = 0

    async def save_embeddings(self, model_id: str, rows: Sequence[tuple[int, Embedding]]) -> list[int]:
        if self.refusals:
            self.refusals -= 1
            raise TooManyRequestsError("writes")
        self.is_asked.set()
        await self.may_save.wait()
        kept = await super().save_embeddings(model_id, rows)
        self.is_saved.set()
        await self.may_answer.wait()
        return kept


def held_bench() -> tuple[Bench, HeldStore]:
    """Return a bench whose store answers when told to."""
    store = HeldStore(clock=SteppingClock())
    return Bench(MoodyEmbedder(), store=store), store


async def test_full_queue_of_the_store_makes_the_work_wait() -> None:
    """It is an outage like others, and must not end the worker."""
    bench, store = held_bench()
    store.refusals = 2
    store.may_answer.set()
    async with working(bench):
        await bench.store_texts("one text")
        await bench.until(pending=0)
        assert bench.semantic.status.index_size == 1
        assert bench.embedding.failures == 2


async def test_all_is_indexed_only_when_the_index_has_it() -> None:
    """The job ends when the vector is stored, a moment before it can be found."""
    bench, store = held_bench()
    async with working(bench):
        assert await bench.embedding.all_indexed()
        await bench.store_texts("one text")
        assert not await bench.embedding.all_indexed()
        await store.is_saved.wait()
        assert (await store.job_counts()).pending == 0
        assert not await bench.embedding.all_indexed()
        store.may_answer.set()
        assert await bench.embedding.wait_for(await key_of(bench, "one text"))
        await bench.until(pending=0)


async def test_waiting_for_a_memory_ends_whenever_it_was_embedded() -> None:
    """Long before, or between the question and the wait; and at once if it will not be."""
    bench, store = held_bench()
    async with asyncio.timeout(20), working(bench):
        await bench.store_texts("one text")
        key = await key_of(bench, "one text")
        early = asyncio.create_task(bench.embedding.wait_for(key))
        await store.is_saved.wait()
        late = asyncio.create_task(bench.embedding.wait_for(key))
        store.may_answer.set()
        assert await early
        assert await late
        assert await bench.embedding.wait_for(key)
        await bench.store_texts("a poison text")
        poisoned = await key_of(bench, "a poison text")
        given_up = asyncio.create_task(bench.embedding.wait_for(poisoned))
        await bench.until(pending=0, parked=1)
        assert not await given_up


async def test_waiting_without_a_model_ends_at_once() -> None:
    """Nobody would ever end it; nor is anything indexed then."""
    async with working(Bench(None)) as bench:
        await bench.store_texts("words alone")
        assert not await bench.embedding.wait_for(await key_of(bench, "words alone"))
        assert not await bench.embedding.all_indexed()


@pytest.mark.parametrize("is_saved_first", [False, True])
async def test_purged_while_embedded_gets_into_no_index(is_saved_first: bool) -> None:
    """Whether the purge comes before its vector is stored or between that and the index."""
    bench, store = held_bench()
    await bench.store_texts("a kept text", "a doomed text")
    doomed = await key_of(bench, "a doomed text")
    if not is_saved_first:
        store.may_save.clear()
    async with asyncio.timeout(20), working(bench):
        waiting = asyncio.create_task(bench.embedding.wait_for(doomed))
        await (store.is_saved if is_saved_first else store.is_asked).wait()
        (memory,) = await store.fetch([doomed], bench.everything)
        purged = await store.forget(CALLER.owner, [memory.id], is_forced=False, is_purge=True, request=None)
        await bench.semantic.purge(purged.purged_keys)
        store.may_save.set()
        store.may_answer.set()
        assert not await waiting
        assert not await bench.semantic.holds(doomed)
        assert bench.semantic.status.index_size == 1


async def test_text_stored_while_the_index_is_saved_is_embedded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wake-up between the last look at the queue and falling asleep must not be lost."""
    monkeypatch.setattr(embed_memories, "_IDLE_WAIT_S", 3600.0)
    bench = Bench(MoodyEmbedder())
    save = bench.semantic.save
    stored: list[str] = []

    async def store_meanwhile(*, after_writes: int = 1) -> None:
        if not stored:
            stored.append("stored while saving")
            await bench.store_texts(*stored)
        await save(after_writes=after_writes)

    monkeypatch.setattr(bench.semantic, "save", store_meanwhile)
    async with working(bench):
        async with asyncio.timeout(20):
            while bench.semantic.status.index_size < 1:
                await asyncio.sleep(0.005)


async def key_of(bench: Bench, content: str) -> int:
    """Return the key of a stored text."""
    page = await bench.store.list_page(
        bench.everything, limit=100, cursor="", order_by=OrderBy.CREATED_AT, is_descending=True
    )
    return next(memory.key for memory in page.memories if memory.content == content)
