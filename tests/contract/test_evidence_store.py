"""What every evidence store must do: who was shown what, what of it was used, and that nothing counts twice."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.domain.evidence import (
    BatchOutcome,
    EvidenceEvent,
    MemoryCited,
    RecallCalled,
    RememberCalled,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
    UnknownReason,
    UsageSource,
    Valence,
)
from sidecar.domain.ledger import CONTEXT_BYTES, CONTEXT_SLICES, JOB_BYTES
from sidecar.domain.memory import Link, Relation
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.ports import EvidenceStore, MemoryStore
from tests.store_builders import (
    NOW,
    OWNER,
    THREAD,
    SetClock,
    Store,
    batch,
    cursor_at,
    event,
    new_memory,
    next_memory_id,
    open_store,
    recall_of,
)

CLIENT, SESSION = THREAD.client, THREAD.session
SUB_AGENT = replace(THREAD, agent_id="sub")
OTHER_SESSION = replace(THREAD, session="session-2")


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> AsyncIterator[Store]:
    opened = open_store(request.param, tmp_path, clock)
    yield opened
    await opened.close()


def ids(*memory_ids: str) -> Shown:
    return Shown(ShownState.IDS, memory_ids)


def recall_events(
    call_id: str, shown: Shown, *, thread: SessionThread = THREAD, after_s: float = 0
) -> list[EvidenceEvent]:
    return [
        event(RecallCalled(call_id, "recall"), event_id=call_id, thread=thread, after_s=after_s),
        event(ToolAnswered(call_id, shown, ""), event_id=call_id, thread=thread, after_s=after_s + 1),
    ]


def remember_events(
    call_id: str, memory_id: str, *, thread: SessionThread = THREAD, after_s: float = 0
) -> list[EvidenceEvent]:
    return [
        event(RememberCalled(call_id), event_id=call_id, thread=thread, after_s=after_s),
        event(ToolAnswered(call_id, ids(memory_id), ""), event_id=call_id, thread=thread, after_s=after_s + 1),
    ]


def said(text: str, *, thread: SessionThread = THREAD, after_s: float = 0) -> EvidenceEvent:
    return event(TextSpoken(SliceKind.AGENT_TEXT, text), thread=thread, after_s=after_s)


async def apply(store: Store, *events: EvidenceEvent) -> BatchOutcome:
    return await store.apply_batch(OWNER, batch(*events), at=NOW)


async def add(store: Store, content: str, *links: Link, session: str = "", client: str = "") -> str:
    new = new_memory(content, links=links, session=session, client=client)
    return (await store.add(replace(new, project="app"))).memory_id


def derived(memory_id: str) -> Link:
    return Link(Relation.DERIVED_FROM, memory_id)


async def useful(store: Store, memory_id: str) -> list[tuple[str, float, bool]]:
    events = await store.usage_events(OWNER, memory_id)
    return [(found.session, found.weight, found.is_weak) for found in events if found.valence is Valence.USEFUL]


def test_adapters_are_what_the_ports_ask_for(clock: SetClock, tmp_path: Path) -> None:
    """The type checker compares every signature here."""

    def both(_memories: MemoryStore, _evidence: EvidenceStore) -> None: ...

    opened = open_store("in-memory", tmp_path, clock)
    both(opened, opened)


# --- what was shown ---


async def test_answered_recall_is_shown_and_waits_for_the_judge(store: Store) -> None:
    """The pair of call and answer tells which memories the model saw."""
    memory_ids = [await add(store, text) for text in ("a", "b")]
    outcome = await apply(store, *recall_events("call-1", ids(*memory_ids)))
    assert outcome == BatchOutcome(2, 0, recalls=1, shown=2, unknown=0, used_memory_ids=())
    [coverage] = await store.sessions(OWNER, limit=9)
    assert coverage.thread == THREAD
    assert (coverage.recalls, coverage.shown, coverage.waiting_jobs, coverage.used) == (1, 2, 2, 0)
    await apply(store, *recall_events("call-2", ids(memory_ids[0])))
    [coverage] = await store.sessions(OWNER, limit=9)
    assert (coverage.recalls, coverage.shown, coverage.waiting_jobs) == (2, 2, 2)
    assert (coverage.first_seen_at, coverage.last_seen_at) == (NOW, NOW)
    recall, _ = await store.session_recalls(OWNER, CLIENT, SESSION)
    assert (recall.tool, recall.shown, recall.used_memory_ids) == ("recall", ids(*memory_ids), ())
    assert await store.sessions("bob", limit=9) == []


async def test_recall_without_result_is_unknown_until_it_is_answered(store: Store) -> None:
    """Not read is not the same as nothing shown."""
    call, answer = recall_events("call-1", Shown(ShownState.NOTHING))
    await apply(store, call)
    [coverage] = await store.sessions(OWNER, limit=9)
    assert (coverage.unknown, coverage.nothing_shown) == ((("no_result", 1),), 0)
    await apply(store, answer)
    [coverage] = await store.sessions(OWNER, limit=9)
    assert (coverage.unknown, coverage.nothing_shown) == ((), 1)


async def test_states_of_answers_are_counted_apart(store: Store) -> None:
    """Each way of not knowing has its own counter."""
    spilled = Shown(ShownState.UNKNOWN, reason=UnknownReason.SPILLED)
    events = [*recall_events("1", spilled), *recall_events("2", spilled)]
    events += recall_events("3", Shown(ShownState.UNKNOWN, reason=UnknownReason.ERRORED))
    events += recall_events("4", Shown(ShownState.CANNOT_RECORD))
    outcome = await apply(store, *events)
    assert (outcome.recalls, outcome.unknown) == (4, 3)
    [coverage] = await store.sessions(OWNER, limit=9)
    assert coverage.unknown == (("errored", 1), ("spilled", 2))
    assert coverage.cannot_record == 1


async def test_answer_before_its_call_waits_for_it(store: Store) -> None:
    """Clients write from several queues; the end is the same."""
    memory_id = await add(store, "a")
    call, answer = recall_events("call-1", ids(memory_id))
    first = await apply(store, answer)
    assert (first.shown, (await store.sessions(OWNER, limit=9))[0].recalls) == (0, 0)
    second = await apply(store, call)
    assert (second.recalls, second.shown) == (1, 1)
    assert len(await store.session_recalls(OWNER, CLIENT, SESSION)) == 1


async def test_ids_of_no_memory_of_the_owner_are_counted_not_shown(store: Store) -> None:
    """An id in a transcript is only text until the store knows it."""
    theirs = (await store.add(new_memory("theirs", owner="bob"))).memory_id
    outcome = await apply(store, *recall_events("call-1", ids(theirs, next_memory_id())))
    assert outcome.shown == 0
    assert (await store.health()).counters["shown_ids_not_in_store"] == 2


async def test_same_batch_again_changes_nothing(store: Store) -> None:
    """A transcript that is read twice is ingested once, whatever the batches were."""
    memory_id = await add(store, "a")
    events = [*recall_events("call-1", ids(memory_id)), said("text", after_s=5)]
    await apply(store, *events)
    before = await store.sessions(OWNER, limit=9), await store.slices(OWNER, THREAD, memory_id)
    outcomes = [await apply(store, *events), await apply(store, *events[::-1])]
    assert [(outcome.new_events, outcome.repeated_events) for outcome in outcomes] == [(0, 3), (0, 3)]
    assert (await store.sessions(OWNER, limit=9), await store.slices(OWNER, THREAD, memory_id)) == before


async def test_copy_of_a_session_leaves_the_calls_to_the_first(store: Store) -> None:
    """A fork repeats old records under a new session id, with the same or with new event ids."""
    memory_id = await add(store, "a")
    await apply(store, *recall_events("call-1", ids(memory_id)))
    copied = recall_events("call-1", ids(memory_id), thread=OTHER_SESSION)
    renamed = [replace(found, event_id=f"new-{number}") for number, found in enumerate(copied)]
    assert (await apply(store, *copied)).new_events == 0
    outcome = await apply(store, *renamed)
    assert (outcome.recalls, outcome.shown) == (0, 0)
    assert [found.thread.session for found in await store.sessions(OWNER, limit=9)] == [SESSION]


async def test_memory_shown_often_has_one_job_in_a_session(store: Store) -> None:
    """Also when the session's sub-agent sees it; another session has its own."""
    memory_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(memory_id)), *recall_events("2", ids(memory_id)))
    await apply(store, *recall_events("3", ids(memory_id), thread=SUB_AGENT))
    await apply(store, *recall_events("4", ids(memory_id), thread=OTHER_SESSION))
    coverage = {(found.thread.session, found.thread.agent_id): found for found in await store.sessions(OWNER, limit=9)}
    assert {place: (found.shown, found.waiting_jobs) for place, found in coverage.items()} == {
        (SESSION, ""): (1, 1),
        (SESSION, "sub"): (1, 0),
        ("session-2", ""): (1, 1),
    }
    assert [found.agent_id for found in await store.session_recalls(OWNER, CLIENT, SESSION)] == ["", "", "sub"]


# --- slices ---


async def test_slices_are_what_followed_the_recall_in_its_thread(store: Store) -> None:
    """What was said before, or by another agent, says nothing about the memory's use."""
    memory_id = await add(store, "a")
    await apply(store, said("before"), *recall_events("call-1", ids(memory_id), after_s=10))
    await apply(
        store,
        event(ToolCalled("t", "Bash", "ls"), after_s=21),
        event(ToolAnswered("t", Shown(ShownState.NOTHING), "file"), after_s=22),
        said("by another", thread=SUB_AGENT, after_s=23),
        said("late in the file, early in time", after_s=20),
        said("   "),
        event(ToolAnswered("unseen", Shown(ShownState.NOTHING), "whose call was not read"), after_s=24),
    )
    assert await store.slices(OWNER, THREAD, memory_id) == [
        (SliceKind.AGENT_TEXT, "late in the file, early in time"),
        (SliceKind.TOOL_CALL, "Bash ls"),
        (SliceKind.TOOL_OUTPUT, "file"),
    ]
    assert await store.slices(OWNER, SUB_AGENT, memory_id) == []
    assert await store.slices("bob", THREAD, memory_id) == []


async def test_result_of_a_recall_is_not_a_slice(store: Store) -> None:
    """The judge must not take the memory's own words for its use."""
    memory_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(memory_id)))
    answer = event(ToolAnswered("2", ids(memory_id), "the memory's words"), after_s=9)
    await apply(store, event(RecallCalled("2", "recall"), after_s=8), answer)
    assert await store.slices(OWNER, THREAD, memory_id) == []


async def test_each_recall_of_a_long_session_gets_what_followed_it(store: Store) -> None:
    """Sessions without memories must not fill the disk, nor long ones; but the last recall is judged like the first."""
    await apply(store, *(said(f"before {number}") for number in range(3 * CONTEXT_SLICES)))
    memory_ids = [await add(store, text) for text in "abcd"]
    for number, memory_id in enumerate(memory_ids):
        await apply(store, *recall_events(f"call-{number}", ids(memory_id), after_s=100 * number))
        await apply(store, *(said(f"{number} " + "x" * 9_000, after_s=100 * number + 9) for _ in range(50)))
    for number, memory_id in enumerate(memory_ids):
        texts = [text for _, text in await store.slices(OWNER, THREAD, memory_id)]
        followed = [text for text in texts if text.startswith(f"{number} ")]
        assert {len(text) for text in followed} == {8_000}
        is_last = memory_id == memory_ids[-1]
        assert len(followed) == JOB_BYTES // 8_000 + is_last * (CONTEXT_BYTES // 8_000)
        # What followed the recalls after it followed it as well.
        assert [text[0] for text in texts] == sorted(text[0] for text in texts)


async def test_texts_of_a_session_without_recalls_go_after_a_day(tmp_path: Path) -> None:
    """Nobody will ever judge them. A session that waits for its judge keeps its own."""
    clock = SetClock()
    store = open_store("sqlite", tmp_path, clock)
    memory_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(memory_id)), said("kept", after_s=9))
    await apply(store, said("nobody asked", thread=OTHER_SESSION))
    await store.close()
    assert b"nobody asked" in (tmp_path / "memories.db").read_bytes()
    clock.advance(timedelta(hours=25))
    store = open_store("sqlite", tmp_path, clock)
    async with asyncio.timeout(30):
        while any(b"nobody asked" in file.read_bytes() for file in tmp_path.iterdir()):
            await asyncio.sleep(0.02)
    assert await store.slices(OWNER, THREAD, memory_id) == [(SliceKind.AGENT_TEXT, "kept")]
    assert await store.check_integrity() == ()
    await store.close()


async def test_purge_deletes_the_answer_of_a_call_that_was_not_read_yet(store: Store) -> None:
    """It may be the memory itself, in the client's own spelling."""
    memory_id = await add(store, "the launch code")
    answer = event(ToolAnswered("1", ids(memory_id), "the laun\u0063h code"), after_s=1)
    await apply(store, answer)
    await store.forget(OWNER, [memory_id], is_forced=False, is_purge=True)
    other_id = await add(store, "harmless")
    await apply(store, *recall_events("2", ids(other_id), after_s=-9), event(ToolCalled("1", "Bash", "cat")))
    assert await store.slices(OWNER, THREAD, other_id) == [(SliceKind.TOOL_CALL, "Bash cat")]


async def test_purge_deletes_slices_that_may_repeat_the_memory(store: Store) -> None:
    """An agent quotes what it was shown."""
    memory_id = await add(store, "the launch code", session="session-2", client=CLIENT)
    other_id = await add(store, "harmless")
    await apply(store, *recall_events("1", ids(memory_id, other_id)), said("I was told things", after_s=9))
    await apply(store, *recall_events("2", ids(other_id), thread=OTHER_SESSION))
    await apply(store, said("I store it", thread=OTHER_SESSION, after_s=9))
    third = replace(THREAD, session="session-3")
    await apply(store, *recall_events("3", ids(other_id), thread=third))
    await apply(store, said("it is the launch code!", thread=third, after_s=9), said("fine", thread=third, after_s=9))
    await store.forget(OWNER, [memory_id], is_forced=False, is_purge=True)
    assert await store.slices(OWNER, THREAD, other_id) == []
    assert await store.slices(OWNER, OTHER_SESSION, other_id) == []
    assert await store.slices(OWNER, third, other_id) == [(SliceKind.AGENT_TEXT, "fine")]
    assert (await store.sessions(OWNER, limit=9))[0].thread.session in {SESSION, "session-2", "session-3"}


# --- what was used ---


async def test_link_to_a_shown_memory_of_the_session_is_use(store: Store) -> None:
    """Shown first, built upon later: useful, weight 1, and the multiplier follows at once."""
    shown_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(shown_id)))
    new = await store.add(new_memory("b", links=[derived(shown_id)], session=SESSION, client=CLIENT))
    assert new.used_memory_ids == (shown_id,)
    assert await useful(store, shown_id) == [(SESSION, 1, False)]
    assert await store.multipliers([shown_id, new.memory_id]) == {shown_id: multiplier(Evidence(useful=1))}
    keys = [row.key for row in await store.catalog()]
    factors = [fields.reinforcement for fields in (await store.rank_fields(keys)).values()]
    assert factors == [multiplier(Evidence(useful=1)), 1]
    [recall] = await store.session_recalls(OWNER, CLIENT, SESSION)
    assert recall.used_memory_ids == (shown_id,)
    assert (await store.sessions(OWNER, limit=9))[0].used == 1


async def test_link_that_comes_before_its_evidence_is_settled_by_it(store: Store) -> None:
    """The transcript is read after the fact."""
    shown_id = await add(store, "a")
    await add(store, "b", derived(shown_id), session=SESSION, client=CLIENT)
    assert await useful(store, shown_id) == []
    outcome = await apply(store, *recall_events("1", ids(shown_id), thread=SUB_AGENT))
    assert outcome.used_memory_ids == (shown_id,)
    assert await useful(store, shown_id) == [(SESSION, 1, False)]


async def test_own_recall_of_the_session_counts_as_shown(store: Store) -> None:
    """What we delivered ourselves needs no transcript."""
    shown_id = await add(store, "a")
    await store.record_recall(recall_of([shown_id]))
    await add(store, "b", derived(shown_id), session=SESSION, client=CLIENT)
    assert await useful(store, shown_id) == [(SESSION, 1, False)]


async def test_link_to_something_never_shown_is_only_a_link(store: Store) -> None:
    """Nor does a recall of another session, client, project or day make it evidence."""
    shown_id = await add(store, "a")
    await store.record_recall(recall_of([shown_id], session="elsewhere", at=NOW - timedelta(hours=25)))
    await store.record_recall(recall_of([shown_id], session="elsewhere", project="other"))
    await store.record_recall(recall_of([shown_id], session="elsewhere", client="codex"))
    await add(store, "b", derived(shown_id), session=SESSION, client=CLIENT)
    await add(store, "c", derived(shown_id), client=CLIENT)
    await add(store, "d", derived(shown_id))
    await add(store, "e", Link(Relation.RELATES_TO, shown_id), client="codex")
    assert await useful(store, shown_id) == []
    assert await store.multipliers([shown_id]) == {}


async def test_superseding_credits_the_successor(store: Store) -> None:
    """The old memory was used, the new one stands in its place."""
    old_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(old_id)))
    new_id = await add(store, "b", Link(Relation.SUPERSEDES, old_id), session=SESSION, client=CLIENT)
    [found] = [found for found in await store.usage_events(OWNER, new_id) if found.valence is Valence.USEFUL]
    assert (found.memory_id, found.credited_id, found.source) == (old_id, new_id, UsageSource.IN_BAND)
    assert await store.multipliers([old_id, new_id]) == {new_id: multiplier(Evidence(useful=1))}


def cited(memory_id: str, *, thread: SessionThread = THREAD, after_s: float = 5, place: str = "") -> EvidenceEvent:
    return event(MemoryCited(memory_id), event_id=f"cited:{memory_id}{place}", thread=thread, after_s=after_s)


@pytest.mark.parametrize("is_cited_first", [False, True])
async def test_cited_memory_was_used_if_it_was_shown(store: Store, *, is_cited_first: bool) -> None:
    """Under its own label, whichever is read first; another session's citation is none."""
    shown_id = await add(store, "a")
    recalled, citation = recall_events("1", ids(shown_id)), cited(shown_id)
    outcome = await apply(store, *([citation, *recalled] if is_cited_first else [*recalled, citation]))
    await apply(store, cited(shown_id, thread=OTHER_SESSION, place="elsewhere"))
    assert outcome.used_memory_ids == (shown_id,)
    [found] = [one for one in await store.usage_events(OWNER, shown_id) if one.valence is Valence.USEFUL]
    assert (found.source, found.weight, found.session) == (UsageSource.CITATION, 1, SESSION)
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=1))}


async def test_citation_before_anything_was_shown_is_no_evidence(store: Store) -> None:
    """What it named was not known from us; a later one of the same session is evidence."""
    shown_id = await add(store, "a")
    await apply(store, cited(shown_id, after_s=-60), *recall_events("1", ids(shown_id)))
    assert await useful(store, shown_id) == []
    await apply(store, cited(shown_id, place="again"))
    assert await useful(store, shown_id) == [(SESSION, 1, False)]


async def test_citation_and_link_of_one_session_count_once(store: Store) -> None:
    """Both are on record; a thousand more change nothing."""
    shown_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(shown_id)))
    await add(store, "b", derived(shown_id), session=SESSION, client=CLIENT)
    await apply(store, *(cited(shown_id, place=str(number)) for number in range(1000)))
    sources = [one.source for one in await store.usage_events(OWNER, shown_id) if one.valence is Valence.USEFUL]
    assert sorted(filter(None, sources)) == [UsageSource.CITATION, UsageSource.IN_BAND]
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=1))}


async def test_citation_of_what_is_not_there_is_dropped(store: Store) -> None:
    """Nor does a purge leave one behind that the next showing would settle."""
    shown_id = await add(store, "a")
    await apply(store, cited(next_memory_id()), cited(shown_id))
    await store.forget(OWNER, [shown_id], is_forced=True, is_purge=True, request=None)
    assert await useful(store, shown_id) == []


async def test_session_counts_once_however_often_it_builds_on_a_memory(store: Store) -> None:
    """Repeating oneself proves nothing; another session does."""
    shown_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(shown_id)))
    await apply(store, *recall_events("2", ids(shown_id), thread=OTHER_SESSION))
    for text in ("b", "c"):
        await add(store, text, derived(shown_id), session=SESSION, client=CLIENT)
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=1))}
    await add(store, "d", derived(shown_id), session="session-2", client=CLIENT)
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=2))}


async def test_link_without_session_is_weak_evidence_within_a_day(store: Store) -> None:
    """Same client and project, recalled lately: likely, not certain. It counts once a day."""
    shown_id = await add(store, "a")
    await store.record_recall(recall_of([shown_id], at=NOW - timedelta(hours=23)))
    for text in ("b", "c"):
        await add(store, text, derived(shown_id), client=CLIENT)
    assert await useful(store, shown_id) == [("", 0.5, True)] * 2
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=0.5))}


async def test_named_session_turns_weak_evidence_into_full(store: Store) -> None:
    """The transcript of the remember tells the session; the guess gives way."""
    shown_id = await add(store, "a")
    await store.record_recall(recall_of([shown_id], session=""))
    new_id = await add(store, "b", derived(shown_id), client=CLIENT)
    assert await useful(store, shown_id) == [("", 0.5, True)]
    outcome = await apply(
        store,
        *recall_events("1", ids(shown_id)),
        event(RememberCalled("2"), event_id="2"),
        event(ToolAnswered("2", ids(new_id, shown_id), "stored"), event_id="2"),
    )
    assert outcome.used_memory_ids == (shown_id,)
    assert await useful(store, shown_id) == [(SESSION, 1, False)]
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=1))}


async def test_session_named_by_hooks_is_that_of_the_client_itself(store: Store) -> None:
    """Cursor's calls come from `cursor`, and what tells of them is its hooks; a use must not count as two."""
    hooks = SessionThread("cursor-hooks", "conversation-1", project="app")
    shown_id = await add(store, "a")
    await store.record_recall(recall_of([shown_id], session="", client="cursor"))
    new_id = await add(store, "b", derived(shown_id), client="cursor")
    assert await useful(store, shown_id) == [("", 0.5, True)]
    await apply(store, *recall_events("1", ids(shown_id), thread=hooks), *remember_events("2", new_id, thread=hooks))
    assert await useful(store, shown_id) == [("conversation-1", 1, False)]


async def test_session_that_is_named_before_the_recall_is_read_is_settled_too(store: Store) -> None:
    """Whichever of the two comes first."""
    shown_id = await add(store, "a")
    await store.record_recall(recall_of([shown_id], session=""))
    new_id = await add(store, "b", derived(shown_id), client=CLIENT)
    await apply(store, event(ToolAnswered("2", ids(new_id), "")), event(RememberCalled("2")))
    await apply(store, *recall_events("1", ids(shown_id)))
    assert await useful(store, shown_id) == [(SESSION, 1, False)]


async def test_session_that_was_never_shown_the_memory_takes_the_weak_evidence_away(store: Store) -> None:
    """Who made the link is known now, and did not see the memory; another's guess of the same memory stays."""
    shown_id = await add(store, "a")
    await store.record_recall(recall_of([shown_id], session=""))
    new_id = await add(store, "b", derived(shown_id), client=CLIENT)
    await add(store, "c", derived(shown_id), client=CLIENT)
    assert await useful(store, shown_id) == [("", 0.5, True)] * 2
    outcome = await apply(store, *remember_events("2", new_id))
    assert outcome.used_memory_ids == ()
    assert await useful(store, shown_id) == [("", 0.5, True)]
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=0.5))}


async def test_memory_that_is_shown_after_the_link_was_not_used_for_it(store: Store) -> None:
    """Neither a transcript nor a recall of ours that comes later is proof; only what was seen before is."""
    shown_id = await add(store, "a")
    await add(store, "b", derived(shown_id), session=SESSION, client=CLIENT)
    outcome = await apply(store, *recall_events("1", ids(shown_id), after_s=300))
    assert outcome.used_memory_ids == ()
    await store.record_recall(recall_of([shown_id], at=NOW + timedelta(minutes=5)))
    await add(store, "c", derived(shown_id), session=SESSION, client=CLIENT)
    assert await useful(store, shown_id) == []
    assert await store.multipliers([shown_id]) == {}
    # What is read late may have happened early.
    await apply(store, *recall_events("2", ids(shown_id), after_s=-60))
    assert await useful(store, shown_id) == [(SESSION, 1, False)]


async def test_repeating_a_text_does_not_answer_for_who_said_it_first(store: Store) -> None:
    """A session that stored nothing new and named no links must not earn another caller's claim."""
    shown_id = await add(store, "a")
    first_id = await add(store, "b", derived(shown_id), client=CLIENT)
    await apply(store, *recall_events("1", ids(shown_id), thread=OTHER_SESSION, after_s=-60))
    again = await store.add(new_memory("b", at=NOW + timedelta(minutes=10), client=CLIENT))
    assert again.memory_id == first_id
    outcome = await apply(store, *remember_events("2", first_id, thread=OTHER_SESSION, after_s=599))
    assert outcome.used_memory_ids == ()
    assert await useful(store, shown_id) == []
    await apply(store, *remember_events("3", first_id, thread=replace(OTHER_SESSION, client="codex")))
    assert await useful(store, shown_id) == []


async def test_links_of_a_repeated_text_are_evidence_of_who_repeats_it(store: Store) -> None:
    """Each session that builds on what it saw counts, though the text is stored once."""
    shown_id = await add(store, "a")
    first_id = await add(store, "b", derived(shown_id), session=SESSION, client=CLIENT)
    await apply(store, *recall_events("1", ids(shown_id), thread=OTHER_SESSION))
    again = await store.add(new_memory("b", links=[derived(shown_id)], session="session-2", client=CLIENT))
    assert (again.memory_id, again.used_memory_ids) == (first_id, (shown_id,))
    assert await useful(store, shown_id) == [("session-2", 1, False)]
    await apply(store, *recall_events("2", ids(shown_id)))
    assert await store.multipliers([shown_id]) == {shown_id: multiplier(Evidence(useful=2))}


@pytest.mark.parametrize("is_read_late", [False, True])
@pytest.mark.parametrize("session", [SESSION, ""])
async def test_credit_passes_to_the_successor_however_the_memory_was_used_before(
    store: Store, session: str, is_read_late: bool
) -> None:
    """Built upon and replaced, in one call: the one use there is credits what stands in its place."""
    old_id = await add(store, "a")
    delivered = recall_of([old_id], session=session, at=NOW - timedelta(minutes=1))
    if not (session and is_read_late):
        await store.record_recall(delivered)
    links = [derived(old_id), Link(Relation.SUPERSEDES, old_id)]
    new_id = await add(store, "b", *links, session=session, client=CLIENT)
    if session and is_read_late:
        await apply(store, *recall_events("1", ids(old_id), after_s=-60))
    [found] = [found for found in await store.usage_events(OWNER, old_id) if found.valence is Valence.USEFUL]
    assert (found.memory_id, found.credited_id) == (old_id, new_id)
    multipliers = await store.multipliers([old_id, new_id])
    assert (multipliers.get(old_id, 1), multipliers[new_id]) == (1, multiplier(Evidence(useful=found.weight)))


async def test_credit_passes_on_when_the_session_replaces_what_it_built_upon(store: Store) -> None:
    """To the last successor it named; and back to the memory itself when all of them are purged."""
    old_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(old_id)))
    await add(store, "b", derived(old_id), session=SESSION, client=CLIENT)
    useful_once = multiplier(Evidence(useful=1))
    assert await store.multipliers([old_id]) == {old_id: useful_once}
    at = NOW + timedelta(minutes=1)
    successors = []
    for text in ("c", "d"):
        at += timedelta(minutes=1)
        link = Link(Relation.SUPERSEDES, old_id)
        outcome = await store.add(new_memory(text, links=[link], session=SESSION, client=CLIENT, at=at))
        successors.append(outcome.memory_id)
    for credited_id in (*successors[::-1], old_id):
        multipliers = await store.multipliers([old_id, *successors])
        assert {memory_id for memory_id, value in multipliers.items() if value > 1} == {credited_id}
        assert multipliers[credited_id] == useful_once
        await store.forget(OWNER, [credited_id], is_forced=False, is_purge=True)


async def test_purged_memory_leaves_events_of_ids_only(store: Store) -> None:
    """Figures of the past stay right; what the memory earned goes with it."""
    shown_id = await add(store, "a")
    await apply(store, *recall_events("1", ids(shown_id)))
    await add(store, "b", derived(shown_id), session=SESSION, client=CLIENT)
    await store.forget(OWNER, [shown_id], is_forced=False, is_purge=True)
    assert await useful(store, shown_id) == [(SESSION, 1, False)]
    assert await store.multipliers([shown_id]) == {}
    assert (await store.sessions(OWNER, limit=9))[0].waiting_jobs == 0


# --- cursors ---


async def test_cursor_keeps_what_its_reader_carries(store: Store) -> None:
    """The state belongs to the offset: both move together, or neither does."""
    one = replace(batch(said("a")), cursor=cursor_at(100, reader_state='{"turn": "é"}'))
    await store.apply_batch(OWNER, one, at=NOW)
    older = cursor_at(50, reader_state="older")
    await store.apply_batch(OWNER, replace(one, cursor=older), at=NOW)
    assert await store.cursors(OWNER, CLIENT) == [one.cursor]
    await store.apply_batch(OWNER, replace(one, cursor=cursor_at(120)), at=NOW)
    assert [cursor.reader_state for cursor in await store.cursors(OWNER, CLIENT)] == [""]


async def test_cursor_moves_with_its_batch_and_never_back_in_the_same_file(store: Store) -> None:
    """A batch that is sent twice must not make the reader start over; a rewritten file must."""
    one = replace(batch(said("a")), cursor=cursor_at(100, skipped=(("torn", 2),)))
    await store.apply_batch(OWNER, one, at=NOW)
    assert await store.cursors(OWNER, CLIENT) == [one.cursor]
    await store.apply_batch(OWNER, batch(offset=50), at=NOW)
    assert await store.cursors(OWNER, "") == [one.cursor]
    for cursor in (cursor_at(10, generation=1), cursor_at(5, file_id="9:9", generation=1)):
        await store.apply_batch(OWNER, replace(one, cursor=cursor), at=NOW)
        assert await store.cursors(OWNER, CLIENT) == [cursor]
    assert await store.cursors(OWNER, "codex") == []
    assert await store.cursors("bob", CLIENT) == []


# --- coverage ---


async def test_coverage_counts_recalls_once_by_client_version_and_channel(store: Store) -> None:
    """How many there were, what they showed and why some are unknown; what hooks told stands apart."""
    memory_id = await add(store, "a")
    versioned = replace(THREAD, client_version="2.1.197")
    cursor = cursor_at(100, skipped=(("unrecognised.odd", 2), ("version.2.1.197", 9)))
    events = (
        *recall_events("call-1", ids(memory_id), thread=versioned),
        *recall_events("call-2", Shown(ShownState.NOTHING), thread=versioned),
        *recall_events("call-3", Shown(ShownState.UNKNOWN, reason=UnknownReason.SPILLED), thread=versioned),
        event(RecallCalled("call-4", "recall"), thread=versioned),
        *recall_events("call-1", ids(memory_id), thread=replace(versioned, client=f"{CLIENT}-hooks")),
    )
    for _ in range(2):
        await store.apply_batch(OWNER, replace(batch(*events), cursor=cursor), at=NOW)
    hook, transcript = await store.coverage(OWNER, CLIENT)
    assert (hook.channel, hook.recalls, hook.shown) == ("hook", 1, 1)
    assert (transcript.channel, transcript.client_version) == ("transcript", "2.1.197")
    assert (transcript.recalls, transcript.with_memories, transcript.shown, transcript.nothing_shown) == (4, 1, 1, 1)
    assert transcript.unknown == (("no_result", 1), ("spilled", 1))
    assert (transcript.files, transcript.lines, transcript.unrecognised) == (1, 10, (("odd", 2),))
    assert await store.coverage(OWNER, "") == [hook, transcript]
    assert await store.coverage(OWNER, "codex") == await store.coverage("bob", "") == []


# --- any order, any cut ---


@pytest.mark.parametrize("kind", ["in-memory", "sqlite"])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_order_and_cuts_and_repeats_of_events_do_not_matter(
    kind: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """However a transcript is cut into batches, reordered or read again, the ledger ends the same."""
    opened = open_store(kind, tmp_path_factory.mktemp("order"), SetClock())
    shown_ids = [await add(opened, text) for text in ("a", "b")]
    new_id = await add(opened, "c", derived(shown_ids[0]), client=CLIENT)
    await add(opened, "d", Link(Relation.SUPERSEDES, shown_ids[1]), client=CLIENT, session=SESSION)
    events = [
        *recall_events("1", ids(*shown_ids)),
        *recall_events("2", ids(shown_ids[1]), thread=SUB_AGENT),
        *recall_events("3", Shown(ShownState.UNKNOWN, reason=UnknownReason.SPILLED)),
        event(RememberCalled("4"), event_id="4"),
        event(ToolAnswered("4", ids(new_id), ""), event_id="4"),
        event(ToolCalled("5", "Bash", "ls"), event_id="5", after_s=10),
        event(ToolAnswered("5", Shown(ShownState.NOTHING), "a file"), event_id="5", after_s=11),
        said("so there is a file", after_s=12),
    ]
    order = data.draw(st.permutations(events + events[:3]))
    cut = data.draw(st.integers(0, len(order)))
    for part in (order[:cut], order[cut:], events):
        await apply(opened, *part)
    coverage = {found.thread.agent_id: found for found in await opened.sessions(OWNER, limit=9)}
    texts = [text for _, text in await opened.slices(OWNER, THREAD, shown_ids[0])]
    assert texts == ["Bash ls", "a file", "so there is a file"]
    assert (coverage[""].recalls, coverage[""].shown, coverage[""].used) == (2, 2, 2)
    assert (coverage["sub"].recalls, coverage["sub"].shown) == (1, 1)
    assert sum(found.waiting_jobs for found in coverage.values()) == 2
    assert coverage[""].unknown == (("spilled", 1),)
    assert await useful(opened, shown_ids[0]) == [(SESSION, 1, False)]
    assert await useful(opened, shown_ids[1]) == [(SESSION, 1, False)]
    await opened.close()
