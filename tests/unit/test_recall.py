"""Ranking: relevance first, evidence may lift from far down, and nothing the filter leaves out comes back."""

from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from sidecar.domain.memory import Caller, Link, Relation
from sidecar.errors import MemoryNotFoundError
from sidecar.use_cases.forget import Forget, ForgetQuery
from sidecar.use_cases.recall import RecallQuery
from sidecar.use_cases.remember import RememberQuery
from tests.unit.fake_parts import MoodyEmbedder
from tests.unit.test_embed_memories import CALLER, Bench, working


async def test_evidence_lifts_a_memory_from_beyond_the_first_page() -> None:
    """Of many alike, the one that was used comes first, wherever relevance alone had put it."""
    async with working(Bench(MoodyEmbedder())) as bench:
        await bench.store_texts(*(f"the broker of pier {number} listens on a port" for number in range(60)))
        await bench.until(pending=0)
        query = RecallQuery("which port does the broker listen on", limit=60)
        answer = await bench.recall.run(CALLER, query)
        last = answer.memories[-1].memory.id
        for number in range(12):
            session = Caller(owner="local", client="test", session=f"session-{number}")
            await bench.recall.run(session, query)
            link = Link(Relation.DERIVED_FROM, last)
            await bench.remember.run(session, RememberQuery(f"unrelated conclusion {number}", links=(link,)))
        lifted = await bench.recall.run(CALLER, RecallQuery(query.text, limit=5))
        assert lifted.memories[0].memory.id == last
        assert lifted.memories[0].parts.reinforcement > 1.3


async def test_evidence_never_lifts_over_a_clearly_more_relevant_memory() -> None:
    """The factor is bounded."""
    async with working(Bench(MoodyEmbedder())) as bench:
        await bench.store_texts("the ferry timetable is imported nightly", "nightly there is a report on parking")
        await bench.until(pending=0)
        query = RecallQuery("when is the ferry timetable imported")
        used = (await bench.recall.run(CALLER, query)).memories[-1].memory.id
        for number in range(40):
            session = Caller(owner="local", client="test", session=f"session-{number}")
            await bench.recall.run(session, query)
            link = Link(Relation.DERIVED_FROM, used)
            await bench.remember.run(session, RememberQuery(f"something else {number}", links=(link,)))
        best = (await bench.recall.run(CALLER, query)).memories[0]
        assert best.memory.content == "the ferry timetable is imported nightly"


async def test_equal_scores_are_newest_first() -> None:
    """The same recall gives the same order every time."""
    async with working(Bench(None)) as bench:
        await bench.store_texts("build alpha", "build bravo", "build carol")
        first = await bench.recalled("build")
        assert first == ["build carol", "build bravo", "build alpha"]
        assert await bench.recalled("build") == first


async def test_repeated_forget_key_forgets_no_further_memories() -> None:
    """A retry gets the first answer; the query would select the next ones."""
    async with AsyncExitStack() as stack:
        bench = await stack.enter_async_context(working(Bench(MoodyEmbedder())))
        await bench.store_texts(*(f"stale note number {number}" for number in range(10)))
        await bench.until(pending=0)
        forget = Forget(
            store=bench.store,
            catalog=bench.catalog,
            semantic=bench.semantic,
            recall=bench.recall,
            completion=bench.completion,
        )
        query = ForgetQuery(query="stale note number", limit=3, similarity_floor=0.0, request_key="k1", is_purge=True)
        first = await forget.run(CALLER, query)
        again = await forget.run(CALLER, query)
        assert len(first.forgotten_ids) == 3
        assert again.forgotten_ids == first.forgotten_ids
        assert (await bench.store.count(bench.recall.selection(CALLER, RecallQuery("x")))).total == 7
        with pytest.raises(MemoryNotFoundError):
            await forget.run(CALLER, ForgetQuery(memory_id=first.forgotten_ids[0]))


async def test_sessions_of_the_holdout_are_ranked_without_evidence() -> None:
    """All of them at a share of 1, the rest of the answer unchanged; calls without a session never are."""
    async with working(Bench(None)) as bench:
        await bench.store_texts("build alpha", "build bravo")
        query = RecallQuery("build")
        last = (await bench.recall.run(CALLER, query)).memories[-1].memory.id
        for number in range(9):
            session = Caller(owner="local", client="test", session=f"session-{number}")
            await bench.recall.run(session, query)
            link = Link(Relation.DERIVED_FROM, last)
            await bench.remember.run(session, RememberQuery(f"unrelated {number}", links=(link,)))
        policy = bench.recall._policy
        bench.recall._policy = replace(policy, holdout_share=1.0)
        held_out = await bench.recall.run(Caller(owner="local", client="test", session="any"), query)
        sessionless = await bench.recall.run(Caller(owner="local", client="test", session=""), query)
        parts = {found.memory.id: found.parts for found in held_out.memories}
        assert parts[last].reinforcement == 1.0
        assert sessionless.memories[0].parts.reinforcement > 1.3


async def test_evidence_can_be_left_out_of_account_to_see_what_it_changes() -> None:
    """Only the factor differs."""
    async with working(Bench(None)) as bench:
        await bench.store_texts("build alpha", "build bravo")
        query = RecallQuery("build")
        first = await bench.recall.run(CALLER, query)
        without = await bench.recall.run(CALLER, replace(query, is_unreinforced=True))
        told = [[(found.memory.id, found.parts.relevance) for found in answer.memories] for answer in (first, without)]
        assert told[0] == told[1]
        assert {found.parts.reinforcement for found in without.memories} == {1.0}


async def test_memory_next_to_an_answer_is_lifted() -> None:
    """Of two alike, the one that was remembered right after what holds the query's words comes first."""
    async with working(Bench(MoodyEmbedder())) as bench:
        await bench.remember.run(
            Caller(owner="local", client="test", session="one"),
            RememberQuery("which port does the broker of the ferry listen on"),
        )
        for session in ("one", "two"):
            caller = Caller(owner="local", client="test", session=session)
            await bench.remember.run(caller, RememberQuery(f"it is the usual port and two more, says {session}"))
        await bench.until(pending=0)
        recalled = await bench.recalled("port of the ferry broker")
        beside, elsewhere = (f"it is the usual port and two more, says {session}" for session in ("one", "two"))
        assert recalled.index(beside) < recalled.index(elsewhere)
