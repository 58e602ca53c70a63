"""Contexts that count once somebody got them: never two in the normal case, one more if the first went astray."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from sidecar.adapters.brute_force import BruteForceVectorIndex
from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.context import ContextKind
from sidecar.domain.evidence import Valence
from sidecar.domain.memory import Caller
from sidecar.errors import InvalidInputError
from sidecar.use_cases.build_context import BuildContext, ContextPolicy, ContextQuery
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.offer_context import HELD_FOR, MOST_OFFERS, OfferContext
from sidecar.use_cases.recall import Recall, RecallPolicy
from sidecar.use_cases.semantic_index import SemanticIndex
from tests.store_builders import OWNER, SetClock, new_memory

CALLER = Caller(owner=OWNER, client="claude-code", session="s", project="app")
ONCE = ContextQuery(is_once_per_session=True, awaits_acknowledgement=True)
AGAIN = replace(ONCE, is_only_repeated=True)


class Offers:
    """What is tested, and what it works on."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.store = InMemoryStore(clock=self.clock)
        self.catalog = MemoryCatalog()
        semantic = SemanticIndex(
            store=self.store, load_embedder=None, new_index=BruteForceVectorIndex, snapshots=None, cache_size=8
        )
        recall = Recall(
            store=self.store, semantic=semantic, catalog=self.catalog, clock=self.clock, policy=RecallPolicy(floor=0.0)
        )
        context = BuildContext(
            store=self.store, validation=self.store, recall=recall, clock=self.clock, policy=ContextPolicy()
        )
        self.contexts = OfferContext(store=self.store, build_context=context, clock=self.clock)

    async def ask(self, query: ContextQuery = ONCE, **caller: str) -> str:
        """Return the id of what is offered; empty if nothing is."""
        briefing = await self.contexts.run(replace(CALLER, **caller), query)
        assert bool(briefing.recall_id) == bool(briefing.context.markdown)
        return briefing.recall_id

    async def briefed(self, memory_id: str) -> int:
        """Return how often the memory counts as briefed."""
        return sum(one.valence is Valence.BRIEFED for one in await self.store.usage_events(OWNER, memory_id))


@pytest.fixture
def offers() -> Offers:
    return Offers()


async def remember(offers: Offers) -> str:
    return (await offers.store.add(new_memory("Deploys go out on Tuesday."))).memory_id


async def test_what_was_acknowledged_is_given_once(offers: Offers) -> None:
    """And counts as briefed from then on, not from when it was built."""
    memory_id = await remember(offers)
    recall_id = await offers.ask()
    assert await offers.briefed(memory_id) == 0
    assert await offers.contexts.acknowledge(OWNER, recall_id)
    assert await offers.briefed(memory_id) == 1
    assert not await offers.contexts.acknowledge(OWNER, recall_id)
    offers.clock.advance(timedelta(hours=1))
    assert [await offers.ask(), await offers.ask(AGAIN)] == ["", ""]


async def test_two_at_the_same_time_are_given_one(offers: Offers) -> None:
    """As where hooks are registered twice; other sessions and kinds are not concerned."""
    await remember(offers)
    assert sum(map(bool, await asyncio.gather(*(offers.ask() for _ in range(5))))) == 1
    offers.clock.advance(HELD_FOR - timedelta(milliseconds=1))
    assert await offers.ask() == ""
    assert await offers.ask(session="other")


async def test_what_went_astray_is_offered_once_more(offers: Offers) -> None:
    """Whoever never says that it arrived does not get it for ever."""
    memory_id = await remember(offers)
    assert await offers.ask(AGAIN) == ""
    asked: list[str] = []
    for _ in range(MOST_OFFERS + 2):
        asked.append(await offers.ask(AGAIN if asked else ONCE))
        offers.clock.advance(HELD_FOR)
    assert [bool(one) for one in asked] == [True, True, False, False]
    assert not await offers.contexts.acknowledge(OWNER, asked[0])
    assert not await offers.contexts.acknowledge("bob", asked[1])
    assert await offers.contexts.acknowledge(OWNER, asked[1])
    assert await offers.briefed(memory_id) == 1


async def test_nothing_to_say_takes_no_turn(offers: Offers) -> None:
    """Nor does a task of which only golden rules are known, which were told at the start."""
    assert await offers.ask() == ""
    await remember(offers)
    task = replace(ONCE, text="zebra xylophone", kind=ContextKind.TASK)
    for _ in range(MOST_OFFERS + 1):
        assert await offers.ask(task) == ""
    assert await offers.ask(replace(task, text="deploys on Tuesday"))
    assert await offers.ask()


async def test_a_failure_takes_no_turn_either(offers: Offers) -> None:
    """Whoever asks again, having corrected it, is answered."""
    await remember(offers)
    with pytest.raises(InvalidInputError, match="token_budget"):
        await offers.ask(replace(ONCE, token_budget=1))
    assert await offers.ask()


@pytest.mark.parametrize(
    "query", [replace(ONCE, is_once_per_session=False), ContextQuery(is_once_per_session=True, is_only_repeated=True)]
)
async def test_wishes_that_make_no_sense_are_refused(offers: Offers, query: ContextQuery) -> None:
    """By name."""
    with pytest.raises(InvalidInputError, match="acknowledge"):
        await offers.ask(query)
