"""What every validation store must do."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sidecar.domain.confidence import ValidationKind, ValidationSummary
from sidecar.domain.disputes import Challenge, Resolution, Verdict
from sidecar.domain.edges import NewEdge
from sidecar.domain.evidence import UsageSource, Valence
from sidecar.domain.memory import MemoryState, MemoryType, Provenance, Relation
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.domain.validation import Report
from sidecar.errors import (
    DisputeNotFoundError,
    DisputeResolvedError,
    InvalidInputError,
    MemoryNotFoundError,
    SupersessionCircleError,
)
from tests.store_builders import NOW, OWNER, SetClock, Store, new_memory, next_memory_id, open_store

APPLIED, SUCCEEDED, FAILED = ValidationKind
USEFUL_ONCE, MISLED_ONCE = multiplier(Evidence(useful=1.0)), multiplier(Evidence(misled=1.0))


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_store(request.param, tmp_path, SetClock())
    yield opened
    await opened.close()


async def stored(store: Store, content: str, **fields: object) -> str:
    return (await store.add(new_memory(content, **fields))).memory_id  # type: ignore[arg-type]


def report(memory_id: str, kind: ValidationKind, *, after_s: float = 0.0, **fields: Any) -> Report:
    return Report(memory_id, kind, NOW + timedelta(seconds=after_s), **fields)


def challenge(memory_id: str, reason: str = "wrong port", *, after_s: float = 0.0, **fields: str) -> Challenge:
    values = {"evidence": "it is 8080", "client": "codex", "session": "s", **fields}
    return Challenge(memory_id, reason, at=NOW + timedelta(seconds=after_s), **values)


async def disputed(store: Store, **options: object) -> list[str]:
    values = {"memory_id": "", "is_including_resolved": False, "limit": 10, **options}
    return [dispute.reason for dispute in await store.disputes(OWNER, **values)]  # type: ignore[arg-type]


# --- reports ---


async def test_report_is_stored_as_it_came(store: Store) -> None:
    """The history tells later what happened, to the word."""
    memory_id = await stored(store, "use tabs")
    texts: dict[str, Any] = {"client": "codex", "session": "s", "context": "Grüße 😀", "error": "E1"}
    outcome = await store.record_validation(OWNER, report(memory_id, FAILED, is_direct=True, **texts))
    event = outcome.event
    assert (event.memory_id, event.kind, event.is_direct, event.at) == (memory_id, FAILED, True, NOW)
    assert (event.client, event.session, event.context, event.error) == tuple(texts.values())
    events, summary = await store.validation_events(OWNER, memory_id, kind=None, limit=10)
    assert events == [event]
    assert summary == ValidationSummary(failed=1)


async def test_applying_moves_nothing(store: Store) -> None:
    """To act upon a memory says nothing yet of whether it holds."""
    memory_id = await stored(store, "use tabs", confidence=0.5)
    outcome = await store.record_validation(OWNER, report(memory_id, APPLIED))
    assert (outcome.change, outcome.changed) == (None, ())
    assert (await store.get(OWNER, memory_id)).confidence == 0.5
    assert await store.usage_events(OWNER, memory_id) == []


async def test_six_successes_make_a_golden_rule_and_failures_unmake_it(store: Store) -> None:
    """Exactly 0.9 counts although six times 0.1 is a little less, and the old type comes back."""
    memory_id = await stored(store, "use tabs", type=MemoryType.CONVENTION)
    key = (await store.get(OWNER, memory_id)).key
    changes = [await store.record_validation(OWNER, report(memory_id, SUCCEEDED, is_direct=True)) for _ in range(6)]
    assert [change.changed for change in changes[:5]] == [()] * 5
    assert [(row.key, row.type) for row in changes[5].changed] == [(key, MemoryType.GOLDEN_RULE)]
    assert changes[5].change is not None
    assert changes[5].change.is_promoted
    memory = await store.get(OWNER, memory_id)
    assert (memory.confidence, memory.type) == (0.9, MemoryType.GOLDEN_RULE)
    first = await store.record_validation(OWNER, report(memory_id, FAILED))
    assert (await store.get(OWNER, memory_id)).type is MemoryType.GOLDEN_RULE
    second = await store.record_validation(OWNER, report(memory_id, FAILED))
    memory = await store.get(OWNER, memory_id)
    assert (memory.confidence, memory.type) == (0.6, MemoryType.CONVENTION)
    assert (first.changed, [row.type for row in second.changed]) == ((), [MemoryType.CONVENTION])
    # The old type is not kept beyond that: it may be promoted again.
    for _ in range(3):
        await store.record_validation(OWNER, report(memory_id, SUCCEEDED))
    assert (await store.get(OWNER, memory_id)).type is MemoryType.GOLDEN_RULE


async def test_rules_that_were_never_promoted_stay_rules(store: Store) -> None:
    """Who stored a golden rule meant it; and a program's extract never becomes one by itself."""
    rule = await stored(store, "never push to main", type=MemoryType.GOLDEN_RULE, confidence=0.3)
    await store.record_validation(OWNER, report(rule, FAILED, adjustment=1.0))
    assert (await store.get(OWNER, rule)).type is MemoryType.GOLDEN_RULE
    extract = await stored(store, "tabs", type=MemoryType.CONVENTION, confidence=0.9, provenance=Provenance.MACHINE)
    await store.record_validation(OWNER, report(extract, SUCCEEDED))
    assert (await store.get(OWNER, extract)).type is MemoryType.CONVENTION


async def test_refused_report_leaves_nothing_behind(store: Store) -> None:
    """Neither an event without its effect nor an effect without its event."""
    memory_id = await stored(store, "use tabs")
    with pytest.raises(InvalidInputError, match="adjustment"):
        await store.record_validation(OWNER, report(memory_id, SUCCEEDED, adjustment=1.5))
    for owner, other in ((OWNER, next_memory_id()), ("bob", memory_id)):
        with pytest.raises(MemoryNotFoundError):
            await store.record_validation(owner, report(other, SUCCEEDED))
        with pytest.raises(MemoryNotFoundError):
            await store.validation_events(owner, other, kind=None, limit=10)
    assert await store.validation_events(OWNER, memory_id, kind=None, limit=10) == ([], ValidationSummary())


async def test_history_is_newest_first_and_its_summary_covers_all(store: Store) -> None:
    """Limit and kind cut the list, never the counts."""
    memory_id, other = await stored(store, "a"), await stored(store, "b")
    for after_s, kind in ((3, SUCCEEDED), (1, APPLIED), (2, FAILED), (3, FAILED), (4, APPLIED)):
        await store.record_validation(OWNER, report(memory_id, kind, after_s=after_s))
    await store.record_validation(OWNER, report(other, SUCCEEDED))
    events, summary = await store.validation_events(OWNER, memory_id, kind=None, limit=3)
    assert [(event.kind, (event.at - NOW).seconds) for event in events] == [(APPLIED, 4), (FAILED, 3), (SUCCEEDED, 3)]
    assert summary == ValidationSummary(applied=2, succeeded=1, failed=2)
    failures, same = await store.validation_events(OWNER, memory_id, kind=FAILED, limit=10)
    assert ([(event.at - NOW).seconds for event in failures], same) == ([3, 2], summary)
    assert await store.validation_summaries(OWNER, [memory_id, other, next_memory_id()]) == {
        memory_id: summary,
        other: ValidationSummary(succeeded=1),
    }
    assert await store.validation_summaries("bob", [memory_id]) == {}


async def test_outcome_that_went_well_is_use_once_a_session(store: Store) -> None:
    """However often an agent reports the same, its session counts once; saying it outright is no use of it."""
    memory_id = await stored(store, "use tabs")
    caller: dict[str, Any] = {"client": "codex", "session": "s"}
    await store.record_validation(OWNER, report(memory_id, SUCCEEDED, is_direct=True, **caller))
    await store.record_validation(OWNER, report(memory_id, FAILED, **caller))
    assert await store.usage_events(OWNER, memory_id) == []
    for after_s in (1, 2):
        await store.record_validation(OWNER, report(memory_id, SUCCEEDED, after_s=after_s, **caller))
    (use,) = await store.usage_events(OWNER, memory_id)
    assert (use.source, use.valence, use.weight) == (UsageSource.OUTCOME, Valence.USEFUL, 1.0)
    assert (use.credited_id, use.client, use.session) == (memory_id, "codex", "s")
    assert await store.multipliers([memory_id]) == {memory_id: pytest.approx(USEFUL_ONCE)}
    await store.record_validation(OWNER, report(memory_id, SUCCEEDED, client="codex", session="t"))
    assert len(await store.usage_events(OWNER, memory_id)) == 2


async def test_reports_come_in_for_forgotten_memories_too(store: Store) -> None:
    """An agent that acts upon a memory does not know that it was forgotten meanwhile."""
    memory_id = await stored(store, "use tabs")
    await store.forget(OWNER, [memory_id], is_forced=False, is_purge=False)
    await store.record_validation(OWNER, report(memory_id, FAILED))
    memory = await store.get(OWNER, memory_id)
    assert (memory.state, memory.confidence) == (MemoryState.FORGOTTEN, 0.15)


# --- disputes ---


async def test_challenge_opens_a_dispute_and_ranks_lower_at_once(store: Store) -> None:
    """What misleads must not wait for the next round of hygiene."""
    memory_id, other = await stored(store, "port 80"), await stored(store, "other")
    keys = [(await store.get(OWNER, each)).key for each in (memory_id, other)]
    dispute, was_there = await store.open_dispute(OWNER, challenge(memory_id))
    assert not was_there
    assert (dispute.memory_id, dispute.reason, dispute.evidence) == (memory_id, "wrong port", "it is 8080")
    assert (dispute.client, dispute.session, dispute.at) == ("codex", "s", NOW)
    assert (dispute.resolution, dispute.successor_id, dispute.resolved_at) == (None, "", None)
    assert await store.disputed_keys([*keys, 10_000]) == {keys[0]}
    assert await store.multipliers([memory_id, other]) == {memory_id: pytest.approx(MISLED_ONCE)}
    (event,) = await store.usage_events(OWNER, memory_id)
    assert (event.source, event.valence, event.weight) == (UsageSource.CHALLENGE, Valence.MISLED, 1.0)


async def test_same_challenge_is_pending_already(store: Store) -> None:
    """Said twice, from whichever session, it changes nothing; said otherwise, it is another."""
    memory_id = await stored(store, "port 80")
    first, _ = await store.open_dispute(OWNER, challenge(memory_id))
    again, was_there = await store.open_dispute(OWNER, challenge(memory_id, session="t", after_s=1))
    assert (again, was_there) == (first, True)
    other, was_there = await store.open_dispute(OWNER, challenge(memory_id, "wrong host"))
    assert not was_there
    assert other.id != first.id
    # Once for the session, whatever it had to say.
    assert len(await store.usage_events(OWNER, memory_id)) == 1
    await store.resolve_dispute(OWNER, first.id, Verdict(Resolution.KEEP), at=NOW)
    _, was_there = await store.open_dispute(OWNER, challenge(memory_id, after_s=2))
    assert not was_there


async def test_disputes_are_listed_newest_first(store: Store) -> None:
    """Open ones by default, of one memory or all, the owner's only."""
    a, b = await stored(store, "a"), await stored(store, "b")
    (theirs,) = [await stored(store, "c", owner="bob")]
    first, _ = await store.open_dispute(OWNER, challenge(a, "1", after_s=1))
    await store.open_dispute(OWNER, challenge(b, "3", after_s=3))
    await store.open_dispute(OWNER, challenge(a, "2", after_s=2))
    await store.open_dispute("bob", challenge(theirs, "4"))
    assert await disputed(store) == ["3", "2", "1"]
    assert await disputed(store, limit=2) == ["3", "2"]
    assert await disputed(store, memory_id=a) == ["2", "1"]
    await store.resolve_dispute(OWNER, first.id, Verdict(Resolution.KEEP), at=NOW)
    assert await disputed(store, memory_id=a) == ["2"]
    assert await disputed(store, memory_id=a, is_including_resolved=True) == ["2", "1"]
    for owner, memory_id in ((OWNER, next_memory_id()), (OWNER, theirs)):
        with pytest.raises(MemoryNotFoundError):
            await store.disputes(owner, memory_id=memory_id, is_including_resolved=False, limit=10)
        with pytest.raises(MemoryNotFoundError):
            await store.open_dispute(owner, challenge(memory_id))


async def test_kept_memory_is_undisputed_and_unchanged(store: Store) -> None:
    """The same verdict again is no error; another one is."""
    memory_id = await stored(store, "port 80")
    memory = await store.get(OWNER, memory_id)
    dispute, _ = await store.open_dispute(OWNER, challenge(memory_id))
    ended = NOW + timedelta(hours=1)
    resolved = await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.KEEP), at=ended)
    assert resolved.dispute == replace(dispute, resolution=Resolution.KEEP, resolved_at=ended)
    assert resolved.changed == ()
    assert await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.KEEP), at=NOW) == resolved
    with pytest.raises(DisputeResolvedError):
        await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.RETIRE), at=NOW)
    assert await store.disputed_keys([memory.key]) == frozenset()
    assert await store.get(OWNER, memory_id) == memory


async def test_retired_memory_is_forgotten_and_can_be_restored(store: Store) -> None:
    """A golden rule too: whoever resolves a dispute has looked at it."""
    memory_id = await stored(store, "port 80", type=MemoryType.GOLDEN_RULE)
    dispute, _ = await store.open_dispute(OWNER, challenge(memory_id))
    resolved = await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.RETIRE), at=NOW)
    assert [row.state for row in resolved.changed] == [MemoryState.FORGOTTEN]
    restored, _ = await store.restore(OWNER, memory_id)
    assert restored.state is MemoryState.ACTIVE


async def test_superseded_memory_points_to_its_successor(store: Store) -> None:
    """As if the successor had said so itself; a successor that cannot be ends nothing."""
    memory_id, better, third = (
        await stored(store, "port 80"),
        await stored(store, "port 8080"),
        await stored(store, "c"),
    )
    await store.put_edge(OWNER, NewEdge(memory_id, third, Relation.SUPERSEDES))
    dispute, _ = await store.open_dispute(OWNER, challenge(memory_id))
    wrong = {memory_id: InvalidInputError, next_memory_id(): MemoryNotFoundError, third: SupersessionCircleError}
    for successor_id, error in wrong.items():
        with pytest.raises(error):
            await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.SUPERSEDE, successor_id), at=NOW)
    assert await disputed(store) == ["wrong port"]
    verdict = Verdict(Resolution.SUPERSEDE, better)
    resolved = await store.resolve_dispute(OWNER, dispute.id, verdict, at=NOW)
    assert resolved.dispute.successor_id == better
    assert [row.state for row in resolved.changed] == [MemoryState.SUPERSEDED]
    assert (await store.get(OWNER, memory_id)).superseded_by == better
    with pytest.raises(DisputeResolvedError):
        await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.SUPERSEDE, third), at=NOW)


async def test_unknown_dispute_is_told(store: Store) -> None:
    """Others' disputes are not there."""
    dispute, _ = await store.open_dispute(OWNER, challenge(await stored(store, "a")))
    for owner, dispute_id in ((OWNER, dispute.id + 1), ("bob", dispute.id)):
        with pytest.raises(DisputeNotFoundError):
            await store.resolve_dispute(owner, dispute_id, Verdict(Resolution.KEEP), at=NOW)


def test_successor_belongs_to_superseding_alone() -> None:
    """A successor that would be passed over in silence is a slip."""
    for resolution, successor_id in ((Resolution.SUPERSEDE, ""), (Resolution.KEEP, "x"), (Resolution.RETIRE, "x")):
        with pytest.raises(InvalidInputError, match="successor_id"):
            Verdict(resolution, successor_id)


# --- standing rules ---


async def test_promotion_is_noted_and_taken_back(store: Store) -> None:
    """Both can be repeated, and say whether they changed anything."""
    memory_id = await stored(store, "use tabs")
    key = (await store.get(OWNER, memory_id)).key
    assert not await store.demote(OWNER, memory_id)
    assert [await store.promote(OWNER, memory_id, at=NOW) for _ in range(2)] == [False, True]
    assert await store.standing_rule_keys([key, 10_000]) == {key}
    assert await store.demote(OWNER, memory_id)
    assert await store.standing_rule_keys([key]) == frozenset()
    for owner, other in ((OWNER, next_memory_id()), ("bob", memory_id)):
        with pytest.raises(MemoryNotFoundError):
            await store.promote(owner, other, at=NOW)
        with pytest.raises(MemoryNotFoundError):
            await store.demote(owner, other)


# --- purging ---


async def test_purged_memory_takes_its_reports_and_disputes_along(store: Store) -> None:
    """What others' reports quote of it goes too; what they count stays."""
    doomed, other = await stored(store, "the password is swordfish"), await stored(store, "other")
    quotation = "as you said: the password is swordfish!"
    await store.record_validation(OWNER, report(doomed, SUCCEEDED, context="logging in"))
    await store.record_validation(OWNER, report(other, FAILED, context="kept", error=quotation))
    await store.open_dispute(OWNER, challenge(doomed, "gone"))
    await store.open_dispute(OWNER, challenge(other, quotation, evidence="kept"))
    await store.open_dispute(OWNER, challenge(other, "kept", evidence=quotation, after_s=1))
    await store.promote(OWNER, doomed, at=NOW)
    key = (await store.get(OWNER, doomed)).key
    await store.forget(OWNER, [doomed], is_forced=True, is_purge=True)
    disputes = await store.disputes(OWNER, memory_id="", is_including_resolved=True, limit=10)
    assert [(d.reason, d.evidence) for d in disputes] == [("kept", ""), ("[removed]", "kept")]
    events, summary = await store.validation_events(OWNER, other, kind=None, limit=10)
    assert [(event.context, event.error) for event in events] == [("kept", "")]
    assert summary == ValidationSummary(failed=1)
    assert await store.standing_rule_keys([key]) == await store.disputed_keys([key]) == frozenset()
    assert await store.validation_summaries(OWNER, [doomed]) == {}
