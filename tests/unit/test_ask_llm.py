"""Use cases that ask a language model: they wait so long and no longer, and go on without an answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.confidence import ValidationKind
from sidecar.domain.llm import LlmAnswer, LlmEndpoint, LlmProvider, LlmRequest
from sidecar.domain.llm_supersession import VetoReason
from sidecar.domain.memory import Caller, Memory, MemoryState, Relation
from sidecar.domain.store_values import Edge
from sidecar.domain.validation import Report
from sidecar.errors import LlmUnavailableError, StorageError
from sidecar.use_cases import refine_links
from sidecar.use_cases.ask_llm import AskLlm
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.compare_by_llm import MAX_PAIRS, CompareByLlm
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.near_memories import Nearby, NearMemories, NearMemory
from sidecar.use_cases.refine_links import RefineLinks
from sidecar.use_cases.supersession import CheckSupersedes
from tests.store_builders import OWNER, SetClock, new_memory

Answer = Callable[[LlmRequest], Awaitable[Mapping[str, object]]]


class TalkingModel:
    """A language model that answers as a test tells it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[LlmRequest] = []

    @property
    def endpoint(self) -> LlmEndpoint:
        return LlmEndpoint(LlmProvider.OPENAI_COMPATIBLE, "tiny", "127.0.0.1:1", is_local=True)

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        self.asked.append(request)
        return LlmAnswer(await self.answer(request), 1, 1, "tiny")

    async def close(self) -> None:
        """Hold nothing."""


def saying(fields: Mapping[str, object]) -> Answer:
    async def answer(request: LlmRequest) -> Mapping[str, object]:
        del request
        return fields

    return answer


def ask_of(model: TalkingModel, *, wait_s: float = 30.0) -> AskLlm:
    return AskLlm(model=model, clock=SetClock(), wait_s=wait_s)


async def stored(store: InMemoryStore, *contents: str) -> list[Memory]:
    ids = [(await store.add(new_memory(content))).memory_id for content in contents]
    return [await store.get(OWNER, memory_id) for memory_id in ids]


async def linked(store: InMemoryStore, *contents: str) -> tuple[Edge, ...]:
    """Store memories and link the first to each of the others, as is done by itself."""
    first, *others = await stored(store, *contents)
    return await store.auto_link(first.key, [(other.key, 0.8) for other in others])


@asynccontextmanager
async def working(refine: RefineLinks) -> AsyncIterator[None]:
    task = asyncio.create_task(refine.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


async def test_nobody_waits_longer_than_agreed() -> None:
    """A model that thinks for ever is a reason, not an error."""

    async def never(request: LlmRequest) -> Mapping[str, object]:
        del request
        return await asyncio.Future()

    memory, other = await stored(InMemoryStore(clock=SetClock()), "one", "two")
    comparison = await CompareByLlm(ask_of(TalkingModel(never), wait_s=0.01)).run(memory, [other])
    assert not comparison.contradicting
    assert "within 0.01 s" in comparison.not_checked[0]


async def test_only_the_nearest_are_asked_about() -> None:
    """One question holds so many memories, and the answer says how many it left out."""
    model = TalkingModel(saying({"pairs": []}))
    memory, *others = await stored(InMemoryStore(clock=SetClock()), *(f"number {n}" for n in range(MAX_PAIRS + 4)))
    comparison = await CompareByLlm(ask_of(model)).run(memory, others)
    assert f"other note {MAX_PAIRS}]" in model.asked[0].user
    assert f"other note {MAX_PAIRS + 1}]" not in model.asked[0].user
    assert any(text.endswith("of 3 more: it is asked about 10 at once") for text in comparison.not_checked)
    assert len(comparison.not_checked) == MAX_PAIRS + 1


async def test_nothing_near_asks_nothing() -> None:
    """A question without a memory would be paid for all the same."""
    model = TalkingModel(saying({"pairs": []}))
    (memory,) = await stored(InMemoryStore(clock=SetClock()), "alone")
    comparison = await CompareByLlm(ask_of(model)).run(memory, [])
    assert (comparison.not_checked, model.asked) == ((), [])


async def test_each_edge_gets_what_was_said_of_it() -> None:
    """By number; what is not named, or called related only, stays."""
    store = InMemoryStore(clock=SetClock())
    edges = await linked(store, "new", "cause", "other", "source")
    said = [{"memory": 3, "relation": "derived_from"}, {"memory": 1, "relation": "caused_by"}]
    model = TalkingModel(saying({"relations": [*said, {"memory": 8, "relation": "contradicts"}]}))
    refine = RefineLinks(store=store, graph=store, llm=ask_of(model))
    async with working(refine):
        refine.expect(OWNER, edges)
        await until(lambda: refine.counters[refine_links.REFINED] == 2)
    relations = [edge.relation for edge in await store.edges(OWNER, edges[0].source_id)]
    assert relations == [Relation.CAUSED_BY, Relation.RELATES_TO, Relation.DERIVED_FROM]
    assert refine.counters[refine_links.DROPPED] == 1


async def test_memories_that_are_gone_are_not_sent() -> None:
    """What somebody forgot or purged while it waited goes nowhere."""
    store = InMemoryStore(clock=SetClock())
    edges = await linked(store, "new", "secret plan", "other plan", "third plan")
    await store.forget(OWNER, [edges[0].target_id], is_forced=False, is_purge=True)
    await store.forget(OWNER, [edges[1].target_id], is_forced=False, is_purge=False)
    model = TalkingModel(saying({"relations": [{"memory": 1, "relation": "caused_by"}]}))
    refine = RefineLinks(store=store, graph=store, llm=ask_of(model))
    async with working(refine):
        refine.expect(OWNER, edges)
        await until(lambda: refine.counters[refine_links.REFINED])
    assert [text in model.asked[0].user for text in ("secret", "other", "third")] == [False, False, True]
    assert (await store.edges(OWNER, edges[2].target_id))[0].relation is Relation.CAUSED_BY


async def test_failures_are_counted_and_the_next_ones_are_asked() -> None:
    """Neither a model nor a disk that fails once ends the work."""

    class FullStore(InMemoryStore):
        is_full = True

        async def refine_edge(self, owner: str, edge_id: int, relation: Relation) -> Edge | None:
            if self.is_full:
                raise StorageError("no space left")
            return await super().refine_edge(owner, edge_id, relation)

    async def failing(request: LlmRequest) -> Mapping[str, object]:
        if "broken" in request.user:
            raise LlmUnavailableError("host", "HTTP 500")
        return {"relations": [{"memory": 1, "relation": "caused_by"}]}

    store = FullStore(clock=SetClock())
    refine = RefineLinks(store=store, graph=store, llm=ask_of(TalkingModel(failing)))
    async with working(refine):
        for content in ("broken", "disk", "good"):
            store.is_full = content == "disk"
            edges = await linked(store, content, f"near {content}")
            before = sum(refine.counters.values())
            refine.expect(OWNER, edges)
            await until(lambda: sum(refine.counters.values()) > before)  # noqa: B023 - awaited in the same round
    assert refine.counters[refine_links.NOT_ASKED] == 2
    assert refine.counters[refine_links.REFINED] == 1


async def test_burst_beyond_the_queue_is_counted() -> None:
    """An import of thousands must not become thousands of paid questions hours later."""
    store = InMemoryStore(clock=SetClock())
    edges = await linked(store, "a", "b")
    refine = RefineLinks(store=store, graph=store, llm=ask_of(TalkingModel(saying({"relations": []}))))
    for _ in range(refine_links.MAX_WAITING + 3):
        refine.expect(OWNER, edges)
    assert refine.counters[refine_links.NOT_ASKED] == 3


class NearTheseMemories(NearMemories):
    """Finds what a test says is near."""

    def __init__(self, *near: NearMemory) -> None:
        self._these = near

    async def find(self, memory: Memory, *, threshold: float) -> Nearby:
        del memory, threshold
        return Nearby(self._these)


async def test_objection_to_one_leaves_the_next() -> None:
    """The most similar that nobody objects about is replaced, and the objection is told beside it."""
    clock = SetClock()
    store = InMemoryStore(clock=clock)
    first, second, kept = await stored(store, "first", "second", "never failed")
    clock.advance(timedelta(hours=1))
    newer_id = (await store.add(new_memory("newer", at=clock.now()))).memory_id
    for memory_id, kind, times in (
        (first.id, ValidationKind.FAILED, 1),
        (second.id, ValidationKind.FAILED, 1),
        (newer_id, ValidationKind.SUCCEEDED, 2),
    ):
        for _ in range(times):
            await store.record_validation(OWNER, Report(memory_id, kind, clock.now()))
    model = TalkingModel(saying({"replacements": [{"memory": 1, "objection": "other_subject"}]}))
    check = CheckSupersedes(
        store=store,
        graph=store,
        validation=store,
        near=NearTheseMemories(NearMemory(first, 0.9), NearMemory(second, 0.8), NearMemory(kept, 0.95)),
        catalog=MemoryCatalog(),
        completion=Completion(),
        llm=ask_of(model),
    )
    found = await check.run(Caller(owner=OWNER), newer_id, is_relating=True, is_forced=False)
    assert (found.superseded_id, found.vetoes) == (second.id, ((first.id, VetoReason.OTHER_SUBJECT),))
    states = [(await store.get(OWNER, memory.id)).state for memory in (first, second, kept)]
    assert states == [MemoryState.ACTIVE, MemoryState.SUPERSEDED, MemoryState.ACTIVE]
    assert "never failed" not in model.asked[0].user
