"""Relations made by themselves: in the background, never in the way of what is stored, and told to whoever waits."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.memory import Relation
from sidecar.domain.store_values import Edge
from sidecar.errors import StorageError
from sidecar.use_cases.auto_link import AutoLink, AutoLinkPolicy, AutoLinkWish
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.embed_memories import EmbedMemories, EmbedPolicy
from sidecar.use_cases.remember import Remember, RememberAnswer, RememberQuery
from tests.unit.fake_parts import MoodyEmbedder, PlainRedactor, SteppingClock, semantic_index
from tests.unit.test_embed_memories import CALLER

POLICY = EmbedPolicy(batch_size=8, backoff_s=0.01, settle_s=0.0)


class FullStore(InMemoryStore):
    """A store whose disk is full for relations."""

    async def auto_link(self, key: int, near: Sequence[tuple[int, float]]) -> tuple[Edge, ...]:
        raise StorageError("no space left")


class Linked:
    """The parts that store, embed and relate."""

    def __init__(
        self,
        store_class: type[InMemoryStore] = InMemoryStore,
        policy: AutoLinkPolicy | None = None,
        before: "Linked | None" = None,
    ) -> None:
        self.clock: SteppingClock = before.clock if before else SteppingClock()
        self.store: InMemoryStore = before.store if before else store_class(clock=self.clock)
        self.catalog = MemoryCatalog()
        self.semantic = semantic_index(self.store, MoodyEmbedder())
        self.auto_link = AutoLink(
            graph=self.store, semantic=self.semantic, catalog=self.catalog, policy=policy or AutoLinkPolicy()
        )
        self.embedding = EmbedMemories(
            store=self.store, semantic=self.semantic, clock=self.clock, policy=POLICY, link=self.auto_link.run
        )
        self._remember = Remember(
            store=self.store,
            catalog=self.catalog,
            semantic=self.semantic,
            embedding=self.embedding,
            redactor=PlainRedactor(),
            completion=Completion(),
            clock=self.clock,
            auto_link=self.auto_link,
        )

    async def remember(self, text: str, *, is_waiting: bool = True, wish: AutoLinkWish | None = None) -> RememberAnswer:
        query = RememberQuery(text, is_waiting_for_index=is_waiting, auto_link=wish or AutoLinkWish())
        return await self._remember.run(CALLER, query)


@asynccontextmanager
async def working(parts: Linked) -> AsyncIterator[Linked]:
    await parts.semantic.load()
    worker = asyncio.create_task(parts.embedding.run())
    try:
        yield parts
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
        parts.semantic.close()


async def test_a_near_memory_is_related_and_a_far_one_is_not() -> None:
    """Best first, weighed by the cosine."""
    async with working(Linked()) as parts:
        near = await parts.remember("the ferry timetable is imported every night")
        await parts.remember("completely different words about lunch")
        answer = await parts.remember("the ferry timetable is imported every single night")
        [edge] = answer.auto_edges
        assert edge.target_id == near.outcome.memory_id
        assert edge.relation is Relation.RELATES_TO
        assert 0.6 <= edge.weight <= 1.0


async def test_memories_of_one_batch_are_related_once() -> None:
    """Whichever of the two comes first, the pair gets one relation."""
    async with working(Linked()) as parts:
        await asyncio.gather(
            parts.remember("build alpha needs java seventeen"), parts.remember("build alpha needs java seventeen too")
        )
        first = (await parts.remember("build alpha needs java seventeen", wish=AutoLinkWish(is_wanted=False))).outcome
        assert first.is_deduplicated
        assert len(await parts.store.edges(CALLER.owner, first.memory_id)) == 1


async def test_a_failed_relation_is_counted_and_the_memory_is_stored() -> None:
    """It can be found by meaning all the same, and nobody waits for ever."""
    async with working(Linked(FullStore)) as parts:
        await parts.remember("the broker listens on port nine")
        answer = await parts.remember("the broker listens on port nine today")
        assert answer.is_indexed
        assert not answer.auto_edges
        assert answer.similar
        assert parts.auto_link.failures == 1


async def test_settings_hold_where_the_caller_says_nothing() -> None:
    """Off by setting, and on by a caller's wish."""
    async with working(Linked(policy=AutoLinkPolicy(is_on=False))) as parts:
        await parts.remember("the cache is warmed at dawn")
        silent = await parts.remember("the cache is warmed at dawn daily")
        asked = await parts.remember("the cache is warmed at dawn each day", wish=AutoLinkWish(is_wanted=True))
        assert not silent.auto_edges
        assert asked.auto_edges


async def test_waiting_for_what_is_embedded_already_ends_at_once() -> None:
    """A duplicate that is waited for must not wait for an embedding that will never come."""
    async with working(Linked()) as parts:
        stored = await parts.remember("said once and for all")
        memory = await parts.store.get(CALLER.owner, stored.outcome.memory_id)
        async with asyncio.timeout(5):
            assert await parts.embedding.wait_for(memory.key)


async def started_again(before: Linked) -> Linked:
    """Return the parts of the next sidecar on the same store."""
    after = Linked(before=before)
    after.catalog.apply(await before.store.catalog())
    return after


async def until_related(parts: Linked, source: RememberAnswer) -> set[str]:
    """Return the other ends of a memory's relations, once it has some."""
    async with asyncio.timeout(20):
        while not (edges := await parts.store.edges(CALLER.owner, source.outcome.memory_id)):
            await asyncio.sleep(0.005)
    return {edge.target_id for edge in edges}


async def test_memory_that_a_restart_overtook_unembedded_is_related_as_wished() -> None:
    """The next sidecar embeds it, and knows what its caller had asked for."""
    before = Linked(policy=AutoLinkPolicy(is_on=False))
    near = await before.remember("the mast is painted in spring", is_waiting=False)
    wish = AutoLinkWish(is_wanted=True, max_links=1)
    wished = await before.remember("the mast is painted in early spring", is_waiting=False, wish=wish)
    async with working(await started_again(before)) as parts:
        assert await until_related(parts, wished) == {near.outcome.memory_id}


async def test_memory_that_a_restart_overtook_unrelated_is_related() -> None:
    """Its vector was stored, and the sidecar ended right behind that."""
    before = Linked()
    text = "the mast is painted in early spring"
    near = await before.remember("the mast is painted in spring", is_waiting=False, wish=AutoLinkWish(is_wanted=False))
    wished = await before.remember(text, is_waiting=False)
    await before.semantic.load()
    texts = ("the mast is painted in spring", text)
    keys = [(await before.store.get(CALLER.owner, each.outcome.memory_id)).key for each in (near, wished)]
    rows = list(zip(keys, MoodyEmbedder().embed_documents(texts), strict=True))
    await before.store.save_embeddings(before.semantic.model_id, rows)
    async with working(await started_again(before)) as parts:
        assert await until_related(parts, wished) == {near.outcome.memory_id}
        assert await parts.store.unlinked_keys(parts.semantic.model_id) == []


async def test_who_waits_is_told_when_the_memory_is_related_and_not_before() -> None:
    """It can be found a moment earlier; an answer then would lack the relations."""
    parts = Linked()
    near = await parts.remember("the mast is painted in spring", is_waiting=False)
    reached, go_on = asyncio.Event(), asyncio.Event()
    link_wish = parts.store.link_wish

    async def slowly(key: int) -> object:
        reached.set()
        await go_on.wait()
        return await link_wish(key)

    parts.store.link_wish = slowly  # type: ignore[assignment, method-assign]
    async with working(parts):
        await reached.wait()
        key = (await parts.store.get(CALLER.owner, near.outcome.memory_id)).key
        assert await parts.semantic.holds(key)
        waiting = asyncio.create_task(parts.embedding.wait_for(key))
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        go_on.set()
        assert await waiting
