"""What every memory store must do."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from sidecar.domain.context import ContextKind
from sidecar.domain.evidence import Channel, Valence
from sidecar.domain.memory import Link, MemoryState, MemoryType, Provenance, Relation
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import OrderBy, RankFields, RecallRecord, RequestKey, SkipReason, skip_reason
from sidecar.domain.words import tokenise
from sidecar.errors import (
    DuplicateMemoryError,
    IndexRowError,
    InvalidInputError,
    MemoryNotForgottenError,
    MemoryNotFoundError,
    RequestKeyReusedError,
)
from tests.store_builders import (
    ACTIVE,
    ALL,
    EVERYTHING,
    NOW,
    OWNER,
    SetClock,
    Store,
    new_memory,
    next_memory_id,
    open_store,
    recall_of,
    settle,
)

MODEL = ModelFingerprint("tiny", "0" * 64, 4, "mean", True, 256, "float32")
OTHER_MODEL = replace(MODEL, weights="1" * 64)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> AsyncIterator[Store]:
    opened = open_store(request.param, tmp_path, clock)
    yield opened
    await opened.close()


def unit(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    array = np.array(values, np.float32).reshape(-1, 4)
    normalised: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = array / np.linalg.norm(array, axis=1, keepdims=True)
    return normalised


# --- adding and getting ---


async def test_added_memory_is_returned_as_it_was_stored(store: Store) -> None:
    """What comes back is what was put in, to the field, with a key of the store's."""
    new = new_memory(
        "Grüße: 日本語 😀",
        importance=0.75,
        confidence=0.5,
        client="codex",
        session="s",
        metadata={"a": [1, None, {"b": 2**70}]},
    )
    outcome = await store.add(new)
    stored = await store.get(OWNER, outcome.memory_id)
    assert stored == replace(new.memory, key=stored.key)
    assert stored.key > 0
    assert not outcome.is_deduplicated
    assert [row.key for row in outcome.changed] == [stored.key]
    assert await store.catalog() == list(outcome.changed)


async def test_same_text_in_namespace_is_a_duplicate(store: Store) -> None:
    """Saying the same again gives the id there is, and changes nothing."""
    first = await store.add(new_memory("We use tabs"))
    second = await store.add(new_memory("We use tabs", importance=1.0))
    elsewhere = await store.add(new_memory("We use tabs", namespace="global"))
    assert (second.memory_id, second.is_deduplicated, second.changed) == (first.memory_id, True, ())
    assert (await store.get(OWNER, first.memory_id)).importance == 0.5
    assert not elsewhere.is_deduplicated
    assert (await store.count(ALL)).total == 2


async def test_many_callers_with_same_text_make_one_memory(store: Store) -> None:
    """Uniqueness holds within a group of writes too."""
    outcomes = await asyncio.gather(*(store.add(new_memory("once")) for _ in range(20)))
    assert len({outcome.memory_id for outcome in outcomes}) == 1
    assert sum(not outcome.is_deduplicated for outcome in outcomes) == 1


async def test_text_of_forgotten_memory_can_be_said_again(store: Store) -> None:
    """Only an active memory is in the way of another that says the same."""
    first = await store.add(new_memory("again"))
    await store.forget(OWNER, [first.memory_id], is_forced=False, is_purge=False)
    second = await store.add(new_memory("again"))
    assert second.memory_id != first.memory_id
    with pytest.raises(DuplicateMemoryError):
        await store.restore(OWNER, first.memory_id)


async def test_link_to_unknown_memory_stores_nothing(store: Store) -> None:
    """A half-stored memory must not stay behind."""
    stranger = await store.add(new_memory("theirs", owner="bob"))
    for target in (next_memory_id(), stranger.memory_id):
        with pytest.raises(MemoryNotFoundError):
            await store.add(new_memory("mine", links=[Link(Relation.RELATES_TO, target)]))
    assert (await store.count(ALL)).total == 0
    assert (await store.job_counts()).pending == 1


async def test_supersedes_link_supersedes_its_target(store: Store) -> None:
    """The older memory stays, out of the way, with a pointer to the newer one."""
    old = await store.add(new_memory("port 80"))
    links = [Link(Relation.SUPERSEDES, old.memory_id), Link(Relation.DERIVED_FROM, old.memory_id)]
    new = await store.add(new_memory("port 8080", links=links))
    target = await store.get(OWNER, old.memory_id)
    assert (target.state, target.superseded_by) == (MemoryState.SUPERSEDED, new.memory_id)
    assert {row.key: row.state for row in new.changed} == {
        target.key: MemoryState.SUPERSEDED,
        new.changed[0].key: MemoryState.ACTIVE,
    }
    edges = await store.edges(OWNER, old.memory_id)
    assert [(edge.source_id, edge.target_id, edge.relation) for edge in edges] == [
        (new.memory_id, old.memory_id, Relation.SUPERSEDES),
        (new.memory_id, old.memory_id, Relation.DERIVED_FROM),
    ]
    assert await store.edges("bob", old.memory_id) == ()


async def test_links_of_a_duplicate_are_added_to_the_memory_there_is(store: Store) -> None:
    """Who says something again may know better what it replaces; what is there already is left as it is."""
    old, other = [await store.add(new_memory(content)) for content in ("port 80", "port 81")]
    first = await store.add(new_memory("port 8080", links=[Link(Relation.DERIVED_FROM, other.memory_id)]))
    before = await store.get(OWNER, first.memory_id)
    links = [Link(Relation.SUPERSEDES, old.memory_id), Link(Relation.DERIVED_FROM, other.memory_id)]
    for _ in range(2):
        again = await store.add(new_memory("port 8080", links=links, importance=1.0))
        assert (again.memory_id, again.is_deduplicated) == (first.memory_id, True)
        target = await store.get(OWNER, old.memory_id)
        assert (target.state, target.superseded_by) == (MemoryState.SUPERSEDED, first.memory_id)
    assert await store.get(OWNER, first.memory_id) == before
    edges = [(edge.target_id, edge.relation) for edge in await store.edges(OWNER, first.memory_id)]
    assert edges == [(other.memory_id, Relation.DERIVED_FROM), (old.memory_id, Relation.SUPERSEDES)]


async def test_superseded_target_of_a_duplicate_is_told_once(store: Store) -> None:
    """The filter in front of the vectors learns what stands aside."""
    old = await store.add(new_memory("port 80"))
    await store.add(new_memory("port 8080"))
    asked = new_memory("port 8080", links=[Link(Relation.SUPERSEDES, old.memory_id)])
    outcomes = [await store.add(asked) for _ in range(2)]
    assert [[row.state for row in outcome.changed] for outcome in outcomes] == [[MemoryState.SUPERSEDED], []]


async def test_wrong_link_of_a_duplicate_is_refused(store: Store) -> None:
    """An unknown target, a forgotten one or the memory itself is an error, and nothing is linked."""
    first = await store.add(new_memory("a"))
    target = await store.add(new_memory("b"))
    forgotten = await store.add(new_memory("c"))
    await store.forget(OWNER, [forgotten.memory_id], is_forced=False, is_purge=False)
    good = Link(Relation.SUPERSEDES, target.memory_id)
    for wrong_id in (next_memory_id(), forgotten.memory_id):
        with pytest.raises(MemoryNotFoundError):
            await store.add(new_memory("a", links=[good, Link(Relation.RELATES_TO, wrong_id)]))
    with pytest.raises(InvalidInputError, match="other memories"):
        await store.add(new_memory("a", links=[good, Link(Relation.SUPERSEDES, first.memory_id)]))
    assert await store.edges(OWNER, first.memory_id) == ()
    assert (await store.get(OWNER, target.memory_id)).state is MemoryState.ACTIVE


async def test_repeated_request_key_returns_first_outcome(store: Store, clock: SetClock) -> None:
    """A client that got no answer may ask again without storing twice, for a day."""
    asked = new_memory("retry me", request_key="k", request_digest="d")
    first = await store.add(asked)
    repeated = await store.add(new_memory("retry me", request_key="k", request_digest="d"))
    assert repeated.memory_id == first.memory_id
    assert not repeated.is_deduplicated
    with pytest.raises(RequestKeyReusedError):
        await store.add(new_memory("something else", request_key="k", request_digest="e"))
    others = await store.add(new_memory("theirs", owner="bob", request_key="k", request_digest="x"))
    assert others.memory_id != first.memory_id
    clock.advance(timedelta(hours=25))
    later = await store.add(new_memory("something else", request_key="k", request_digest="e"))
    assert later.memory_id != first.memory_id


async def test_memory_of_another_owner_does_not_exist(store: Store) -> None:
    """An id is no key: whoever guesses one learns nothing."""
    theirs = await store.add(new_memory("secret", owner="bob"))
    with pytest.raises(MemoryNotFoundError):
        await store.get(OWNER, theirs.memory_id)
    with pytest.raises(MemoryNotFoundError):
        await store.restore(OWNER, theirs.memory_id)
    forgetting = await store.forget(OWNER, [theirs.memory_id], is_forced=True, is_purge=True)
    assert forgetting.skipped == ((theirs.memory_id, SkipReason.NOT_FOUND),)
    assert (await store.get("bob", theirs.memory_id)).state is MemoryState.ACTIVE
    assert (await store.count(ALL)).total == 0


async def test_fetch_keeps_order_and_filters(store: Store) -> None:
    """Keys come from an index that knows neither owners nor states."""
    keys = []
    for content in ("a", "b", "c"):
        outcome = await store.add(new_memory(content))
        keys.append(outcome.changed[0].key)
    theirs = (await store.add(new_memory("d", owner="bob"))).changed[0].key
    await store.forget(OWNER, [(await store.fetch([keys[1]], ACTIVE))[0].id], is_forced=False, is_purge=False)
    fetched = await store.fetch([keys[2], theirs, 999, keys[1], keys[0]], ACTIVE)
    assert [memory.content for memory in fetched] == ["c", "a"]
    assert await store.fetch([], ACTIVE) == []


async def test_rank_fields_are_those_of_the_memories(store: Store) -> None:
    """What ranking asks for, of every key that is there, whatever its state or owner."""
    later = NOW + timedelta(microseconds=1)
    decision = await store.add(new_memory("a", type=MemoryType.DECISION, provenance=Provenance.MACHINE, at=later))
    theirs = await store.add(new_memory("b", owner="bob"))
    keys = [outcome.changed[0].key for outcome in (decision, theirs)]
    assert await store.rank_fields([*keys, 999, *keys]) == {
        keys[0]: RankFields(MemoryType.DECISION, later, Provenance.MACHINE, 1.0),
        keys[1]: RankFields(MemoryType.FACT, NOW, Provenance.AGENT, 1.0),
    }
    assert await store.rank_fields([]) == {}


async def test_filter_fields_all_apply(store: Store) -> None:
    """Every field of a filter narrows what is counted, found by words and fetched."""
    later = NOW + timedelta(days=1)
    await store.add(new_memory("word one", type=MemoryType.DECISION, importance=0.9, at=later))
    await store.add(new_memory("word two", namespace="global", importance=0.1))
    selections = {
        "type": replace(ACTIVE, types=(MemoryType.DECISION,)),
        "scope": replace(ACTIVE, scope=NamespaceScope(("project:app", "project:b"))),
        "importance": replace(ACTIVE, min_importance=0.9),
        "after": replace(ACTIVE, created_after=later),
        "before": replace(ACTIVE, created_before=later),
        "states": replace(ACTIVE, states=(MemoryState.FORGOTTEN,)),
        "owner": MemoryFilter("bob", EVERYTHING),
    }
    counts = {name: (await store.count(selection)).total for name, selection in selections.items()}
    assert counts == {"type": 1, "scope": 1, "importance": 1, "after": 1, "before": 1, "states": 0, "owner": 0}
    query = await store.word_query(["word"])
    hits = {name: len(await store.search_words(query, chosen, limit=9)) for name, chosen in selections.items()}
    assert hits == counts


async def test_count_tells_namespaces_types_and_states(store: Store) -> None:
    """The figures of the status page add up."""
    await store.add(new_memory("a"))
    await store.add(new_memory("b", namespace="global", type=MemoryType.DECISION))
    counts = await store.count(ALL)
    assert counts.total == 2
    assert counts.by_namespace == {"project:app": 1, "global": 1}
    assert counts.by_type == {"fact": 1, "decision": 1}
    assert counts.by_state == {"active": 2}


# --- forgetting ---


async def test_forgotten_memory_is_restored_to_what_it_was(store: Store) -> None:
    """Forgetting is undone without a trace, for a superseded memory too."""
    old = await store.add(new_memory("old"))
    await store.add(new_memory("new", links=[Link(Relation.SUPERSEDES, old.memory_id)]))
    before = await store.get(OWNER, old.memory_id)
    forgetting = await store.forget(OWNER, [old.memory_id], is_forced=False, is_purge=False)
    assert [memory.state for memory in forgetting.memories] == [MemoryState.FORGOTTEN]
    assert [row.state for row in forgetting.changed] == [MemoryState.FORGOTTEN]
    assert (await store.get(OWNER, old.memory_id)).superseded_by == ""
    again = await store.forget(OWNER, [old.memory_id], is_forced=False, is_purge=False)
    assert again.skipped == ((old.memory_id, SkipReason.ALREADY_FORGOTTEN),)
    restored, [row] = await store.restore(OWNER, old.memory_id)
    assert restored == before
    assert row.state is MemoryState.SUPERSEDED
    with pytest.raises(MemoryNotForgottenError):
        await store.restore(OWNER, old.memory_id)


async def test_golden_rule_is_forgotten_by_force_only(store: Store) -> None:
    """By type or by confidence: what was proven is not lost by a slip."""
    rule = await store.add(new_memory("rule", type=MemoryType.GOLDEN_RULE))
    proven = await store.add(new_memory("proven", confidence=0.9))
    ids = [rule.memory_id, proven.memory_id]
    kept = await store.forget(OWNER, ids, is_forced=False, is_purge=True)
    assert kept.skipped == tuple((memory_id, SkipReason.GOLDEN_RULE) for memory_id in ids)
    forced = await store.forget(OWNER, ids, is_forced=True, is_purge=False)
    assert [memory.id for memory in forced.memories] == ids
    assert forced.forgotten_ids == tuple(ids)


async def test_forgotten_golden_rule_is_skipped_as_a_preview_says(store: Store) -> None:
    """The deed gives the reasons of `skip_reason`, in whatever state the memory is."""
    rule = (await store.add(new_memory("rule", type=MemoryType.GOLDEN_RULE))).memory_id
    await store.forget(OWNER, [rule], is_forced=True, is_purge=False)
    memory = await store.get(OWNER, rule)
    for is_forced in (False, True):
        expected = skip_reason(memory, is_forced=is_forced, is_purge=False)
        done = await store.forget(OWNER, [rule], is_forced=is_forced, is_purge=False)
        assert done.skipped == ((rule, expected),)
        assert done.forgotten_ids == ()


@pytest.mark.parametrize("is_purge", [False, True])
async def test_repeated_key_of_forgetting_returns_first_outcome(store: Store, clock: SetClock, is_purge: bool) -> None:
    """Who got no answer asks again and learns what was forgotten; what came after is left alone. For a day."""
    kept_id = (await store.add(new_memory("rule", type=MemoryType.GOLDEN_RULE))).memory_id
    gone_id = (await store.add(new_memory("gone"))).memory_id
    asked = [gone_id, kept_id, next_memory_id()]
    request = RequestKey("k", "digest")
    assert await store.kept_forgetting(OWNER, request) is None
    first = await store.forget(OWNER, asked, is_forced=False, is_purge=is_purge, request=request)
    assert first.forgotten_ids == (gone_id,)
    assert len(first.memories) == len(first.purged_keys) + 1 - 2 * is_purge
    for repeated in (
        await store.forget(OWNER, asked, is_forced=False, is_purge=is_purge, request=request),
        await store.kept_forgetting(OWNER, request),
    ):
        assert repeated == replace(first, changed=())
    other = RequestKey("k", "other")
    with pytest.raises(RequestKeyReusedError):
        await store.kept_forgetting(OWNER, other)
    with pytest.raises(RequestKeyReusedError):
        await store.forget(OWNER, [kept_id], is_forced=True, is_purge=is_purge, request=other)
    assert (await store.get(OWNER, kept_id)).state is MemoryState.ACTIVE
    assert await store.kept_forgetting("bob", other) is None
    clock.advance(timedelta(hours=25))
    assert await store.kept_forgetting(OWNER, request) is None
    later = await store.forget(OWNER, [kept_id], is_forced=True, is_purge=is_purge, request=other)
    assert later.forgotten_ids == (kept_id,)


async def test_repeated_key_of_forgetting_does_not_undo_a_restore(store: Store) -> None:
    """A late copy of a request must not take away what was brought back since."""
    memory_id = (await store.add(new_memory("a"))).memory_id
    request = RequestKey("k", "digest")
    await store.forget(OWNER, [memory_id], is_forced=False, is_purge=False, request=request)
    restored, _ = await store.restore(OWNER, memory_id)
    repeated = await store.forget(OWNER, [memory_id], is_forced=False, is_purge=False, request=request)
    assert (repeated.forgotten_ids, repeated.memories) == ((memory_id,), (restored,))
    assert (await store.get(OWNER, memory_id)).state is MemoryState.ACTIVE


async def test_purged_memory_is_gone_and_its_key_never_returns(store: Store) -> None:
    """Row, words, vector, job and edges go; an index that still holds the key can't hit another memory."""
    await store.set_model(MODEL)
    kept = await store.add(new_memory("kept"))
    links = [Link(Relation.RELATES_TO, kept.memory_id)]
    doomed = await store.add(new_memory("doomed words", links=links))
    key = doomed.changed[0].key
    await store.save_embeddings(MODEL.id, [(key, unit(1, 0, 0, 0))])
    forgetting = await store.forget(OWNER, [doomed.memory_id, doomed.memory_id], is_forced=False, is_purge=True)
    assert (forgetting.purged_keys, forgetting.forgotten_ids) == ((key,), (doomed.memory_id,))
    assert forgetting.memories == ()
    with pytest.raises(MemoryNotFoundError):
        await store.get(OWNER, doomed.memory_id)
    assert await store.edges(OWNER, kept.memory_id) == ()
    assert await store.embeddings(MODEL.id, [key]) == []
    assert list(await store.embedded_keys(MODEL.id)) == []
    assert (await store.word_query(["doom"])).terms == ()
    again = await store.add(new_memory("doomed words"))
    assert again.changed[0].key > key
    assert await store.check_integrity() == ()


async def test_purged_successor_gives_its_targets_back(store: Store) -> None:
    """Superseding is reversible, to the successor before where there was one."""
    old = await store.add(new_memory("v1"))
    second = await store.add(new_memory("v2", links=[Link(Relation.SUPERSEDES, old.memory_id)]))
    third = await store.add(new_memory("v3", links=[Link(Relation.SUPERSEDES, old.memory_id)]))
    await store.forget(OWNER, [third.memory_id], is_forced=False, is_purge=True)
    assert (await store.get(OWNER, old.memory_id)).superseded_by == second.memory_id
    forgetting = await store.forget(OWNER, [second.memory_id], is_forced=False, is_purge=True)
    assert [row.state for row in forgetting.changed] == [MemoryState.ACTIVE]
    target = await store.get(OWNER, old.memory_id)
    assert (target.state, target.superseded_by) == (MemoryState.ACTIVE, "")


async def test_purged_successor_does_not_make_two_active_memories_say_the_same(store: Store) -> None:
    """The text was said again meanwhile: that memory takes over."""
    old = await store.add(new_memory("v1"))
    second = await store.add(new_memory("v2", links=[Link(Relation.SUPERSEDES, old.memory_id)]))
    again = await store.add(new_memory("v1"))
    await store.forget(OWNER, [second.memory_id], is_forced=False, is_purge=True)
    target = await store.get(OWNER, old.memory_id)
    assert (target.state, target.superseded_by) == (MemoryState.SUPERSEDED, again.memory_id)


async def test_forgotten_target_of_purged_successor_is_restored_as_active(store: Store) -> None:
    """The state that restoring returns to must not point to a memory that is gone."""
    old = await store.add(new_memory("v1"))
    second = await store.add(new_memory("v2", links=[Link(Relation.SUPERSEDES, old.memory_id)]))
    await store.forget(OWNER, [old.memory_id], is_forced=False, is_purge=False)
    await store.forget(OWNER, [second.memory_id], is_forced=False, is_purge=True)
    restored, _ = await store.restore(OWNER, old.memory_id)
    assert (restored.state, restored.superseded_by) == (MemoryState.ACTIVE, "")


async def test_forgotten_successor_gives_its_targets_back_until_it_is_restored(store: Store) -> None:
    """Forgetting one memory must not hide two."""
    old = await store.add(new_memory("v1"))
    new = await store.add(new_memory("v2", links=[Link(Relation.SUPERSEDES, old.memory_id)]))
    forgetting = await store.forget(OWNER, [new.memory_id], is_forced=False, is_purge=False)
    keys = {new.memory_id: new.changed[0].key, old.memory_id: old.changed[0].key}
    assert {row.key: row.state for row in forgetting.changed} == {
        keys[new.memory_id]: MemoryState.FORGOTTEN,
        keys[old.memory_id]: MemoryState.ACTIVE,
    }
    assert [memory.content for memory in await store.fetch(list(keys.values()), ACTIVE)] == ["v1"]
    assert forgetting.forgotten_ids == (new.memory_id,)
    _, rows = await store.restore(OWNER, new.memory_id)
    assert {row.key: row.state for row in rows} == {
        keys[new.memory_id]: MemoryState.ACTIVE,
        keys[old.memory_id]: MemoryState.SUPERSEDED,
    }
    assert (await store.get(OWNER, old.memory_id)).superseded_by == new.memory_id


async def test_target_forgotten_along_with_its_successor_comes_back_as_it_would_be(store: Store) -> None:
    """Whichever of the two is forgotten or restored first."""
    old = (await store.add(new_memory("v1"))).memory_id
    new = (await store.add(new_memory("v2", links=[Link(Relation.SUPERSEDES, old)]))).memory_id
    for asked, restored, states in (
        ([new, old], [old, new], [MemoryState.ACTIVE, MemoryState.ACTIVE]),
        ([old, new], [new, old], [MemoryState.ACTIVE, MemoryState.SUPERSEDED]),
    ):
        await store.forget(OWNER, asked, is_forced=False, is_purge=False)
        assert [(await store.restore(OWNER, memory_id))[0].state for memory_id in restored] == states
        assert (await store.get(OWNER, old)).superseded_by == new


async def test_forgotten_successor_does_not_make_two_active_memories_say_the_same(store: Store) -> None:
    """The text was said again meanwhile: that memory takes over, until the successor is back."""
    old = (await store.add(new_memory("v1"))).memory_id
    new = (await store.add(new_memory("v2", links=[Link(Relation.SUPERSEDES, old)]))).memory_id
    again = (await store.add(new_memory("v1"))).memory_id
    await store.forget(OWNER, [new], is_forced=False, is_purge=False)
    target = await store.get(OWNER, old)
    assert (target.state, target.superseded_by) == (MemoryState.SUPERSEDED, again)
    await store.restore(OWNER, new)
    assert (await store.get(OWNER, old)).superseded_by == new


@pytest.mark.parametrize("is_purge", [False, True])
async def test_middle_of_a_chain_that_goes_does_not_bring_the_oldest_back(store: Store, is_purge: bool) -> None:
    """Its own successor stands in for both; when that is forgotten too, the oldest is the best there is."""
    ids = [(await store.add(new_memory("v1"))).memory_id]
    for content in ("v2", "v3"):
        links = [Link(Relation.SUPERSEDES, ids[-1])]
        ids.append((await store.add(new_memory(content, links=links))).memory_id)
    forgetting = await store.forget(OWNER, [ids[1]], is_forced=False, is_purge=is_purge)
    oldest = await store.get(OWNER, ids[0])
    assert (oldest.state, oldest.superseded_by) == (MemoryState.SUPERSEDED, ids[2])
    assert oldest.key not in {row.key for row in forgetting.changed}
    await store.forget(OWNER, [ids[2]], is_forced=False, is_purge=False)
    assert (await store.get(OWNER, ids[0])).state is MemoryState.ACTIVE
    await store.restore(OWNER, ids[2])
    assert (await store.get(OWNER, ids[0])).superseded_by == ids[2]
    assert await store.check_integrity() == ()


# --- listing ---


@pytest.mark.parametrize("is_descending", [True, False])
@pytest.mark.parametrize("order_by", list(OrderBy))
async def test_pages_hold_every_memory_once_in_order(store: Store, order_by: OrderBy, is_descending: bool) -> None:
    """Also where many values are equal."""
    for number in range(13):
        at = NOW + timedelta(seconds=number % 3)
        await store.add(new_memory(f"m{number}", importance=(number % 4) / 4, confidence=(number % 2) / 2, at=at))
    ids, cursor = [], ""
    for _ in range(20):
        page = await store.list_page(ALL, limit=4, cursor=cursor, order_by=order_by, is_descending=is_descending)
        ids += [memory.id for memory in page.memories]
        cursor = page.next_cursor
        if not cursor:
            break
    memories = [await store.get(OWNER, memory_id) for memory_id in ids]
    places = [(getattr(memory, order_by), memory.id) for memory in memories]
    assert places == sorted(places, reverse=is_descending)
    assert len(set(ids)) == 13


@pytest.mark.parametrize("is_descending", [True, False])
async def test_listing_by_access_is_stable_while_memories_are_recalled(store: Store, is_descending: bool) -> None:
    """A memory that is recalled between two pages neither shows twice nor drops out."""
    ids = [(await store.add(new_memory(f"m{number}"))).memory_id for number in range(6)]
    await store.record_recall(recall_of(ids[2:4], at=NOW + timedelta(minutes=1)))
    await settle(store)
    listed, cursor = [], ""
    for step in range(6):
        page = await store.list_page(
            ALL, limit=1, cursor=cursor, order_by=OrderBy.ACCESSED_AT, is_descending=is_descending
        )
        listed += [memory.id for memory in page.memories]
        cursor = page.next_cursor
        recalled = [ids[-1 - step], ids[step]]
        await store.record_recall(recall_of(recalled, at=NOW + timedelta(hours=step + 1)))
        await settle(store)
    assert sorted(listed) == sorted(ids)


@pytest.mark.parametrize("text", ["x", "é", "AAAA", "WzEsMl0=", "W10=", "bnVsbA==", "=" * 9, "\ud800"])
async def test_foreign_cursor_is_refused(store: Store, text: str) -> None:
    """A cursor comes from outside and is read with care."""
    with pytest.raises(InvalidInputError):
        await store.list_page(ALL, limit=1, cursor=text, order_by=OrderBy.CREATED_AT, is_descending=True)


async def test_cursor_of_another_order_is_refused(store: Store) -> None:
    """Going on in another order would skip some memories and repeat others."""
    for content in "ab":
        await store.add(new_memory(content))
    page = await store.list_page(ALL, limit=1, cursor="", order_by=OrderBy.CREATED_AT, is_descending=True)
    for order_by, is_descending in ((OrderBy.IMPORTANCE, True), (OrderBy.CREATED_AT, False)):
        with pytest.raises(InvalidInputError):
            await store.list_page(ALL, limit=1, cursor=page.next_cursor, order_by=order_by, is_descending=is_descending)


# --- words ---


async def test_words_find_memories_best_first(store: Store) -> None:
    """A rare term counts more than a common one, a short memory more than a long one."""
    keys = [
        (await store.add(new_memory(content))).changed[0].key
        for content in ("deploy with docker", "deploy by hand", "deploy now", "docker docker docker deploy runs")
    ]
    query = await store.word_query(tokenise("docker deploy zebra"))
    assert query.terms == ("docker", "deploy")
    hits = await store.search_words(query, ACTIVE, limit=10)
    assert [hit.key for hit in hits] == [keys[3], keys[0], keys[2], keys[1]]
    assert await store.search_words(query, ACTIVE, limit=2) == hits[:2]
    scores = await store.word_scores(query, [*keys, 999])
    assert scores == pytest.approx({hit.key: hit.score for hit in hits})
    assert 0 < hits[-1].score < hits[0].score < 2 * query.best_score


async def test_equal_word_scores_come_newest_first(store: Store) -> None:
    """Of two memories that fit alike, the later one is the better guess."""
    keys = [(await store.add(new_memory(f"kafka n{number}"))).changed[0].key for number in range(3)]
    query = await store.word_query(["kafka"])
    assert [hit.key for hit in await store.search_words(query, ACTIVE, limit=9)] == keys[::-1]


async def test_query_without_known_terms_finds_nothing(store: Store) -> None:
    """Also in a store without any memory."""
    for terms in ([], ["zebra"]):
        query = await store.word_query(terms)
        assert (query.terms, query.best_score) == ((), 0)
        assert await store.search_words(query, ACTIVE, limit=5) == []
        assert await store.word_scores(query, [1]) == {}


async def test_memory_without_terms_is_stored(store: Store) -> None:
    """Text of nothing but stop words and signs is text too."""
    outcome = await store.add(new_memory("--- ??? the"))
    assert (await store.get(OWNER, outcome.memory_id)).content == "--- ??? the"
    assert await store.check_integrity() == ()


# --- vectors ---


async def test_new_memories_wait_for_the_model_in_use(store: Store, clock: SetClock) -> None:
    """The newest is embedded first, so that what was just said is found first."""
    first = await store.add(new_memory("first"))
    assert await store.set_model(MODEL) == 1
    second = await store.add(new_memory("second"))
    jobs = await store.due_jobs(now=clock.now(), limit=9)
    assert [(job.memory_id, job.content, job.attempts) for job in jobs] == [
        (second.memory_id, "second", 0),
        (first.memory_id, "first", 0),
    ]
    assert (await store.job_counts()).pending == 2
    assert (await store.job_counts()).oldest_at == NOW


async def test_saved_vectors_end_their_jobs_and_come_back(store: Store, clock: SetClock) -> None:
    """Vectors are rounded at most, and keep unit length; a purged key is left out."""
    await store.set_model(MODEL)
    outcome = await store.add(new_memory("a"))
    key = outcome.changed[0].key
    windows = unit(0.3, -0.2, 0.9, 0.1, 1, 2, 3, 4)
    assert await store.save_embeddings(MODEL.id, [(key, windows), (999, windows)]) == [key]
    assert await store.due_jobs(now=clock.now(), limit=9) == []
    assert list(await store.embedded_keys(MODEL.id)) == [key]
    [(found, stored)] = await store.embeddings(MODEL.id, [999, key, key])
    assert found == key
    assert stored.dtype == np.float32
    assert np.allclose(stored, windows, atol=1e-3)
    assert np.allclose(np.linalg.norm(stored, axis=1), 1, atol=1e-6)
    assert (await store.add(new_memory("a"))).is_indexed
    assert await store.embeddings(OTHER_MODEL.id, [key]) == []


@pytest.mark.parametrize("bad", [np.zeros((0, 4), np.float32), np.zeros(4, np.float32), unit(1, 0, 0, 0) * np.nan])
async def test_vector_of_wrong_shape_or_value_is_refused(
    store: Store, bad: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> None:
    """A vector that the index would refuse must not get into the truth."""
    await store.set_model(MODEL)
    key = (await store.add(new_memory("a"))).changed[0].key
    with pytest.raises(IndexRowError):
        await store.save_embeddings(MODEL.id, [(key, bad)])
    assert await store.embeddings(MODEL.id, [key]) == []


async def test_switching_the_model_back_needs_no_new_vectors(store: Store) -> None:
    """Vectors are kept by model; a switch costs only what is missing."""
    await store.set_model(MODEL)
    keys = [(await store.add(new_memory(content))).changed[0].key for content in "ab"]
    await store.save_embeddings(MODEL.id, [(key, unit(1, 0, 0, 0)) for key in keys])
    assert await store.set_model(OTHER_MODEL) == 2
    assert not (await store.add(new_memory("a"))).is_indexed
    await store.save_embeddings(OTHER_MODEL.id, [(keys[0], unit(0, 1, 0, 0))])
    assert await store.set_model(MODEL) == 0
    assert len(await store.embedded_keys(MODEL.id)) == 2
    assert await store.set_model(OTHER_MODEL) == 1


async def test_failed_job_waits_then_is_parked_and_retried(store: Store, clock: SetClock) -> None:
    """A text that always fails is set aside with a reason; it stays set aside when the same model is set again."""
    await store.set_model(MODEL)
    outcome = await store.add(new_memory("poison"))
    key = outcome.changed[0].key
    await store.fail_job(key, reason="boom", next_try_at=NOW + timedelta(minutes=1))
    assert await store.due_jobs(now=NOW, limit=9) == []
    [job] = await store.due_jobs(now=NOW + timedelta(minutes=1), limit=9)
    assert job.attempts == 1
    await store.fail_job(key, reason="boom again", next_try_at=None)
    await store.set_model(MODEL)
    assert await store.due_jobs(now=NOW + timedelta(days=9), limit=9) == []
    counts = await store.job_counts()
    assert (counts.pending, counts.parked, counts.oldest_at) == (0, 1, None)
    [parked] = await store.parked_jobs(limit=9)
    assert (parked.memory_id, parked.attempts, parked.reason) == (outcome.memory_id, 2, "boom again")
    assert await store.retry_parked() == 1
    assert len(await store.due_jobs(now=clock.now(), limit=9)) == 1
    await store.fail_job(999, reason="unknown", next_try_at=None)


async def test_requeued_memories_lose_their_vector_and_wait_anew(store: Store, clock: SetClock) -> None:
    """A vector that no index takes is made again; another model's stays, and so does what is purged."""
    await store.set_model(OTHER_MODEL)
    key = (await store.add(new_memory("a"))).changed[0].key
    await store.save_embeddings(OTHER_MODEL.id, [(key, unit(0, 1, 0, 0))])
    await store.set_model(MODEL)
    await store.save_embeddings(MODEL.id, [(key, unit(1, 0, 0, 0))])
    await store.requeue(MODEL.id, [key, 999])
    assert [job.key for job in await store.due_jobs(now=clock.now(), limit=9)] == [key]
    assert list(await store.embedded_keys(MODEL.id)) == []
    assert list(await store.embedded_keys(OTHER_MODEL.id)) == [key]
    await store.fail_job(key, reason="boom", next_try_at=None)
    await store.requeue(MODEL.id, [key])
    assert [job.attempts for job in await store.due_jobs(now=clock.now(), limit=9)] == [0]
    assert await store.check_integrity() == ()


# --- use ---


async def test_recorded_recall_moves_access_statistics_once(store: Store) -> None:
    """A recall that is recorded twice counts once; ids of no memory of the owner are left out."""
    mine = await store.add(new_memory("mine"))
    theirs = await store.add(new_memory("theirs", owner="bob"))
    record = recall_of([mine.memory_id, theirs.memory_id, mine.memory_id], at=NOW + timedelta(hours=1))
    for _ in range(2):
        await store.record_recall(record)
    await settle(store)
    memory = await store.get(OWNER, mine.memory_id)
    assert (memory.access_count, memory.accessed_at) == (1, record.at)
    assert (await store.get("bob", theirs.memory_id)).access_count == 0
    [event] = await store.usage_events(OWNER, mine.memory_id)
    assert (event.recall_id, event.at, event.weight) == (record.recall_id, record.at, 0)
    assert await store.multipliers([mine.memory_id]) == {}


async def test_health_of_a_sound_store_has_no_problems(store: Store) -> None:
    """Good news is told as such."""
    await store.add(new_memory("a"))
    health = await store.health()
    assert health.problems == ()
    assert await store.check_integrity() == ()


# --- briefings, and deliveries that are asked for again ---


def briefing_of(memory_ids: Sequence[str], **fields: object) -> RecallRecord:
    """Return the record of a delivered briefing."""
    return recall_of(memory_ids, **{"channel": Channel.BRIEFING, "context_kind": ContextKind.SESSION, **fields})  # type: ignore[arg-type]


async def test_briefing_is_kept_apart_and_moves_no_access(store: Store) -> None:
    """It is chosen by access among other things, so it must not be the reason for the next one."""
    memory_id = (await store.add(new_memory("a"))).memory_id
    await store.record_recall(briefing_of([memory_id], at=NOW + timedelta(hours=1)))
    await settle(store)
    memory = await store.get(OWNER, memory_id)
    assert (memory.access_count, memory.accessed_at) == (0, NOW)
    [event] = await store.usage_events(OWNER, memory_id)
    assert (event.valence, event.weight, event.source) == (Valence.BRIEFED, 0, None)
    assert await store.multipliers([memory_id]) == {}


async def test_session_is_briefed_once_for_each_kind(store: Store) -> None:
    """Also where the first was not claimed; another session, client, owner or kind has its own."""
    memory_id = (await store.add(new_memory("a"))).memory_id
    empty, first = briefing_of([]), briefing_of([memory_id])
    assert await store.claim_briefing(empty) == empty.recall_id
    await store.record_recall(recall_of([memory_id]))
    await store.record_recall(first)
    assert await store.claim_briefing(briefing_of([memory_id])) == ""
    for others in ({"session": "b"}, {"client": "codex"}, {"owner": "bob"}, {"context_kind": ContextKind.TASK}):
        record = briefing_of([memory_id], **others)
        assert await store.claim_briefing(record) == record.recall_id, others
        assert await store.claim_briefing(briefing_of([memory_id], **others)) == "", others


async def test_claims_at_the_same_time_are_won_once(store: Store) -> None:
    """Whoever comes first in the one order of writes."""
    memory_id = (await store.add(new_memory("a"))).memory_id
    claimed = await asyncio.gather(*(store.claim_briefing(briefing_of([memory_id])) for _ in range(9)))
    assert sum(map(bool, claimed)) == 1
    assert len(await store.usage_events(OWNER, memory_id)) == 1


async def test_delivery_that_is_asked_for_again_counts_once(store: Store, clock: SetClock) -> None:
    """The same key is the same recall; what only the second answer holds was delivered, too."""
    first_id, second_id = [(await store.add(new_memory(text))).memory_id for text in ("a", "b")]
    request = RequestKey("key", "digest")
    first = recall_of([first_id], request=request)
    assert await store.kept_recall(OWNER, request) == ""
    await store.record_recall(first)
    await store.record_recall(recall_of([first_id, second_id], request=request))
    await settle(store)
    assert await store.kept_recall(OWNER, request) == first.recall_id
    assert await store.kept_recall("bob", request) == ""
    events = [await store.usage_events(OWNER, memory_id) for memory_id in (first_id, second_id)]
    assert [[event.recall_id for event in each] for each in events] == [[first.recall_id]] * 2
    assert (await store.get(OWNER, first_id)).access_count == 1
    with pytest.raises(RequestKeyReusedError):
        await store.kept_recall(OWNER, RequestKey("key", "other"))
    clock.advance(timedelta(hours=25))
    assert await store.kept_recall(OWNER, request) == ""


async def test_claim_that_is_repeated_by_its_key_is_the_same(store: Store) -> None:
    """Its answer was lost on the way; the session has not been told."""
    memory_id = (await store.add(new_memory("a"))).memory_id
    first = briefing_of([memory_id], request=RequestKey("key", "digest"))
    again = briefing_of([memory_id], request=RequestKey("key", "digest"))
    assert await store.claim_briefing(first) == await store.claim_briefing(again) == first.recall_id
    assert await store.claim_briefing(briefing_of([memory_id], request=RequestKey("other", "digest"))) == ""
