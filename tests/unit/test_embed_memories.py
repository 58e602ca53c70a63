"""The embedding queue: nothing is lost, a poison text holds up nobody, an outage costs time only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.memory import Caller
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

    def __init__(self, embedder: MoodyEmbedder | None) -> None:
        self.clock = SteppingClock()
        self.store = InMemoryStore(clock=self.clock)
        self.catalog = MemoryCatalog()
        self.semantic = semantic_index(self.store, embedder)
        self.embedding = EmbedMemories(store=self.store, semantic=self.semantic, clock=self.clock, policy=POLICY)
        parts: dict[str, Any] = {
            "store": self.store,
            "catalog": self.catalog,
            "semantic": self.semantic,
            "clock": self.clock,
        }
        self.completion = Completion()
        self.remember = Remember(
            **parts, embedding=self.embedding, redactor=PlainRedactor(), completion=self.completion
        )
        self.recall = Recall(**parts, policy=RecallPolicy(floor=0.0))

    async def store_texts(self, *texts: str) -> None:
        for text in texts:
            await self.remember.run(CALLER, RememberQuery(text))

    async def until(self, pending: int, parked: int = 0) -> None:
        counts = await self.store.job_counts()
        for _ in range(2000):
            if (counts.pending, counts.parked) == (pending, parked):
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
