"""What every reinforcement store must do: multipliers follow the window, each with its reasons; signals add up."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from sidecar.domain.confidence import ValidationKind
from sidecar.domain.disputes import Challenge, Resolution, Verdict
from sidecar.domain.hygiene import EvidencePlace
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.domain.validation import Report
from sidecar.domain.weighing import Standing
from sidecar.errors import MemoryNotFoundError
from sidecar.ports import ReinforcementStore
from tests.store_builders import NOW, OWNER, SetClock, Store, new_memory, next_memory_id, open_store, recall_of, settle

DAY = timedelta(days=1)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> AsyncIterator[Store]:
    opened = open_store(request.param, tmp_path, clock)
    yield opened
    await opened.close()


def test_adapters_are_what_the_port_asks_for(clock: SetClock, tmp_path: Path) -> None:
    """The type checker compares every signature here."""

    def takes(_reinforcement: ReinforcementStore) -> None: ...

    takes(open_store("in-memory", tmp_path, clock))


async def add(store: Store, content: str, *, owner: str = OWNER) -> str:
    return (await store.add(new_memory(content, owner=owner))).memory_id


async def succeed(store: Store, memory_id: str, *, session: str = "s", day: int = 0, owner: str = OWNER) -> None:
    report = Report(memory_id, ValidationKind.SUCCEEDED, NOW + day * DAY, client="c", session=session)
    await store.record_validation(owner, report)


async def challenge(store: Store, memory_id: str, *, session: str = "s", day: int = 0, reason: str = "") -> int:
    said = Challenge(memory_id, reason or f"wrong in {session}", "", NOW + day * DAY, client="c", session=session)
    return (await store.open_dispute(OWNER, said))[0].id


async def resolve(store: Store, dispute_id: int, resolution: Resolution, *, day: int) -> None:
    await store.resolve_dispute(OWNER, dispute_id, Verdict(resolution), at=NOW + day * DAY)


# --- leases ---


async def test_lease_is_one_holders_until_it_ends_or_is_given_back(store: Store) -> None:
    """Its holder may take it again, to make it last longer."""
    until = NOW + timedelta(minutes=10)
    assert await store.take_lease("work", "one", now=NOW, until=until)
    assert not await store.take_lease("work", "other", now=NOW, until=until)
    assert await store.take_lease("elsewhere", "other", now=NOW, until=until)
    assert await store.take_lease("work", "one", now=NOW, until=until + timedelta(minutes=1))
    await store.release_lease("work", "other")
    assert not await store.take_lease("work", "other", now=until, until=until + DAY)
    assert await store.take_lease("work", "other", now=until + timedelta(minutes=1), until=until + DAY)
    await store.release_lease("work", "other")
    assert await store.take_lease("work", "one", now=NOW, until=until)


# --- multipliers ---


async def test_evidence_falls_out_of_the_window(store: Store) -> None:
    """After 90 days; computing the same again changes nothing."""
    memory_id = await add(store, "restart the broker")
    await succeed(store, memory_id, session="a")
    await succeed(store, memory_id, session="b", day=30)
    (place,) = await store.evidence_places(after_key=0, limit=9)
    assert place.memory_id == memory_id
    assert await store.recompute_multipliers([place], at=NOW + 90 * DAY) == 0
    assert await store.recompute_multipliers([place], at=NOW + 91 * DAY) == 1
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(useful=1))}
    assert await store.recompute_multipliers([place], at=NOW + 91 * DAY) == 0
    assert await store.recompute_multipliers([place], at=NOW + 200 * DAY) == 1
    assert await store.multipliers([memory_id]) == {}


async def test_places_are_those_with_evidence_in_pages(store: Store) -> None:
    """Of all owners, by key; being shown is no evidence."""
    with_evidence = [await add(store, f"memory {number}") for number in range(3)]
    shown = await add(store, "only shown")
    other = await add(store, "another owner's", owner="bob")
    for memory_id in with_evidence:
        await succeed(store, memory_id)
    await succeed(store, other, owner="bob")
    await store.record_recall(recall_of([shown]))
    await settle(store)
    first = await store.evidence_places(after_key=0, limit=2)
    rest = await store.evidence_places(after_key=first[-1].key, limit=9)
    assert [place.memory_id for place in (*first, *rest)] == [*with_evidence, other]
    assert rest[-1].owner == "bob"


async def test_recomputing_what_was_purged_changes_nothing(store: Store) -> None:
    """It may go between being listed and being looked at."""
    place = EvidencePlace(99, OWNER, next_memory_id())
    assert await store.recompute_multipliers([place], at=NOW) == 0


async def test_evidence_is_told_with_what_became_of_it(store: Store) -> None:
    """Newest first; deliveries are counted, not listed."""
    memory_id = await add(store, "restart the broker")
    await succeed(store, memory_id, session="a")
    await succeed(store, memory_id, session="a", day=0)
    await challenge(store, memory_id, session="b", day=1)
    await store.promote(OWNER, memory_id, at=NOW)
    for _ in range(3):
        await store.record_recall(recall_of([memory_id]))
    await settle(store)
    found = await store.memory_evidence(OWNER, memory_id, at=NOW + 2 * DAY)
    assert [(each.event.session, each.standing) for each in found.weighed] == [
        ("b", Standing.COUNTED),
        ("a", Standing.COUNTED),
    ]
    assert found.evidence == Evidence(useful=1, misled=1)
    assert (found.multiplier, found.surfaced) == (multiplier(Evidence(1, 1)), 3)
    assert (found.is_disputed, found.is_standing_rule) == (True, True)
    later = await store.memory_evidence(OWNER, memory_id, at=NOW + 100 * DAY)
    assert (later.weighed, later.surfaced) == ((), 0)
    with pytest.raises(MemoryNotFoundError):
        await store.memory_evidence("bob", memory_id, at=NOW)


# --- disputes ---


async def test_challenge_lowers_at_once_and_keeping_the_memory_takes_that_back(store: Store) -> None:
    """Who was found right must not go on paying for it."""
    memory_id = await add(store, "restart the broker")
    dispute_id = await challenge(store, memory_id)
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(misled=1))}
    await resolve(store, dispute_id, Resolution.KEEP, day=1)
    assert await store.multipliers([memory_id]) == {}
    await challenge(store, memory_id, day=2, session="t")
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(misled=1))}


async def test_second_challenge_of_the_same_session_adds_nothing(store: Store) -> None:
    """Whatever its words."""
    memory_id = await add(store, "restart the broker")
    for number in range(5):
        await challenge(store, memory_id, reason=f"wrong for the {number}th time")
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(misled=1))}


async def test_retired_memory_keeps_what_was_held_against_it(store: Store) -> None:
    """Restoring it does not make it right."""
    memory_id = await add(store, "restart the broker")
    await resolve(store, await challenge(store, memory_id), Resolution.RETIRE, day=1)
    await store.restore(OWNER, memory_id)
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(misled=1))}


# --- review ---


async def test_two_signals_call_for_a_review(store: Store) -> None:
    """From different sessions, within 90 days; the item names the open disputes."""
    memory_id, other = await add(store, "restart the broker"), await add(store, "one signal only")
    first = await challenge(store, memory_id, session="a")
    await challenge(store, other, session="a")
    assert await store.review_items(OWNER, at=NOW, limit=9) == []
    second = await challenge(store, memory_id, session="b", day=5)
    (item,) = await store.review_items(OWNER, at=NOW + 6 * DAY, limit=9)
    assert (item.memory_id, item.signals, item.sources) == (memory_id, 2, ("challenge",))
    assert (item.latest_at, item.dispute_ids) == (NOW + 5 * DAY, (first, second))
    assert await store.review_items("bob", at=NOW + 6 * DAY, limit=9) == []
    assert await store.review_items(OWNER, at=NOW + 91 * DAY, limit=9) == []


@pytest.mark.parametrize("resolution", [Resolution.KEEP, Resolution.RETIRE])
async def test_settled_signals_call_for_no_review(store: Store, resolution: Resolution) -> None:
    """It takes two new ones."""
    memory_id = await add(store, "restart the broker")
    await challenge(store, memory_id, session="a")
    dispute_id = await challenge(store, memory_id, session="b", reason="still wrong", day=1)
    await resolve(store, dispute_id, resolution, day=2)
    if resolution is Resolution.RETIRE:
        await store.restore(OWNER, memory_id)
    assert await store.review_items(OWNER, at=NOW + 3 * DAY, limit=9) == []
    await challenge(store, memory_id, session="c", reason="again", day=4)
    assert await store.review_items(OWNER, at=NOW + 5 * DAY, limit=9) == []
    await challenge(store, memory_id, session="d", reason="and again", day=5)
    (item,) = await store.review_items(OWNER, at=NOW + 6 * DAY, limit=9)
    assert item.signals == 2


async def test_most_urgent_review_comes_first(store: Store) -> None:
    """By signals, then by the latest; forgotten memories need none."""
    ids = [await add(store, f"memory {number}") for number in range(4)]
    for place, sessions in enumerate(("abc", "ab", "ab", "abcd")):
        for session in sessions:
            await challenge(store, ids[place], session=session, day=place)
    await store.forget(OWNER, [ids[3]], is_forced=True, is_purge=False)
    items = await store.review_items(OWNER, at=NOW + 9 * DAY, limit=9)
    assert [item.memory_id for item in items] == [ids[0], ids[2], ids[1]]
    assert len(await store.review_items(OWNER, at=NOW + 9 * DAY, limit=2)) == 2


async def test_being_shown_a_thousand_times_changes_nothing(store: Store) -> None:
    """Neither multiplier nor rank fields."""
    memory_id = await add(store, "restart the broker")
    key = (await store.get(OWNER, memory_id)).key
    before = await store.rank_fields([key])
    for number in range(1000):
        await store.record_recall(recall_of([memory_id], session=f"session-{number}"))
    await settle(store)
    places = await store.evidence_places(after_key=0, limit=9)
    assert await store.recompute_multipliers(places, at=NOW) == 0
    assert await store.multipliers([memory_id]) == {}
    assert await store.rank_fields([key]) == before
