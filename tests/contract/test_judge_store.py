"""What every judge store must do: one verdict a session and memory, replaced and never added; no text left behind."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sidecar.domain.evidence import (
    EvidenceEvent,
    RecallCalled,
    SessionEnded,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    UsageSource,
    Valence,
)
from sidecar.domain.judge_jobs import WAITING_LIFE, DueRule, JudgeJob
from sidecar.domain.judgement import Verdict
from sidecar.domain.ledger import JOB_BYTES
from sidecar.domain.memory import Link, Relation
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.ports import JudgeStore
from tests.store_builders import NOW, OWNER, THREAD, SetClock, Store, batch, event, new_memory, open_store

RULE = DueRule(idle=timedelta(minutes=5), lease=timedelta(minutes=10))
SUB_AGENT = replace(THREAD, agent_id="sub")
LATER = NOW + timedelta(minutes=6)


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

    def takes(_judging: JudgeStore) -> None: ...

    takes(open_store("in-memory", tmp_path, clock))


async def add(store: Store, content: str, *links: Link, **fields: object) -> str:
    return (await store.add(new_memory(content, links=links, **fields))).memory_id  # type: ignore[arg-type]


def showing(
    *memory_ids: str, call_id: str = "c", thread: SessionThread = THREAD, after_s: float = 0
) -> list[EvidenceEvent]:
    shown = Shown(ShownState.IDS, memory_ids)
    return [
        event(RecallCalled(call_id, "recall"), event_id=call_id, thread=thread, after_s=after_s),
        event(ToolAnswered(call_id, shown, ""), event_id=call_id, thread=thread, after_s=after_s),
    ]


def said(text: str, *, thread: SessionThread = THREAD, after_s: float = 1) -> EvidenceEvent:
    return event(TextSpoken(SliceKind.AGENT_TEXT, text), thread=thread, after_s=after_s)


async def read(store: Store, *events: EvidenceEvent, after: timedelta = timedelta()) -> None:
    await store.apply_batch(OWNER, batch(*events), at=NOW + after)


async def claim(store: Store, *, after: timedelta = timedelta(minutes=6)) -> list[JudgeJob]:
    return await store.claim_judge_jobs(RULE, now=NOW + after, limit=50)


async def texts(store: Store, job: JudgeJob) -> tuple[list[str], list[str]]:
    case = await store.judge_case(job)
    assert case is not None
    return [piece.text for piece in case.before], [piece.text for piece in case.after]


def verdict(memory_id: str, *, used: float = 0.0, relevant: float = 0.0, misled: float = 0.0) -> Verdict:
    return Verdict(memory_id, used=used, relevant=relevant, misled=misled)


async def judge(store: Store, job: JudgeJob, *, after: timedelta = timedelta(minutes=6), **figures: float) -> None:
    given = [(job, verdict(job.key.memory_id, **figures))]
    await store.save_verdicts(given, judge="test-1", now=NOW + after)


async def judged(store: Store, memory_id: str) -> list[tuple[Valence, float]]:
    events = await store.usage_events(OWNER, memory_id)
    return sorted((found.valence, found.weight) for found in events if found.source is UsageSource.JUDGE)


# --- when a job is due ---


async def test_job_is_due_once_its_session_is_quiet(store: Store) -> None:
    """By when it was read: a transcript may be written long before that."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    assert await claim(store, after=timedelta(minutes=4)) == []
    (job,) = await claim(store, after=timedelta(minutes=5))
    assert (job.key.memory_id, job.key.session, job.attempts) == (memory_id, THREAD.session, 0)


async def test_any_thread_keeps_its_session_busy(store: Store) -> None:
    """What a sub-agent found may be used by the main agent in a moment."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    await read(store, said("still at it", thread=SUB_AGENT), after=timedelta(minutes=5))
    assert await claim(store) == []
    assert len(await claim(store, after=timedelta(minutes=11))) == 1


@pytest.mark.parametrize("is_read_from_transcript", [True, False])
async def test_job_is_due_soon_after_its_session_ended(store: Store, *, is_read_from_transcript: bool) -> None:
    """Said by the transcript or by the client; the last lines may be read a moment later, so not at once."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    if is_read_from_transcript:
        await read(store, event(SessionEnded(), after_s=2), after=timedelta(seconds=2))
    else:
        assert await store.end_session(OWNER, THREAD.client, THREAD.session, at=NOW + timedelta(seconds=2))
    await read(store, said("done", after_s=2), after=timedelta(seconds=3))
    assert await claim(store, after=timedelta(seconds=7)) == []
    (job,) = await claim(store, after=timedelta(seconds=8))
    assert job.key.memory_id == memory_id


async def test_session_that_goes_on_after_its_end_waits_for_quiet_again(store: Store) -> None:
    """A client says so at the end of each process; a resumed session is the same one."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    await store.end_session(OWNER, THREAD.client, THREAD.session, at=NOW + timedelta(seconds=2))
    await read(store, said("resumed", after_s=60, thread=SUB_AGENT), after=timedelta(minutes=1))
    assert await claim(store, after=timedelta(minutes=5)) == []
    (job,) = await claim(store, after=timedelta(minutes=6))
    await judge(store, job, used=0.9)
    await read(store, said("once more", after_s=400), after=timedelta(minutes=7))
    await store.end_session(OWNER, THREAD.client, THREAD.session, at=NOW + timedelta(seconds=401))
    assert len(await claim(store, after=timedelta(minutes=7, seconds=6))) == 1


async def test_end_of_a_session_that_is_not_known_changes_nothing(store: Store) -> None:
    """Not of another owner or client either."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    for owner, client, session in (("bob", THREAD.client, THREAD.session), (OWNER, "codex", THREAD.session)):
        assert not await store.end_session(owner, client, session, at=NOW + timedelta(seconds=2))
    assert not await store.end_session(OWNER, THREAD.client, "another", at=NOW)
    assert await claim(store, after=timedelta(minutes=1)) == []


async def test_job_is_due_at_once_when_no_more_is_kept(store: Store) -> None:
    """Waiting would bring nothing."""
    memory_id = await add(store, "the port is 8123")
    chatter = [said("x" * 7_000, after_s=second) for second in range(1, JOB_BYTES // 7_000 + 3)]
    await read(store, *showing(memory_id), *chatter)
    assert [job.key.memory_id for job in await claim(store, after=timedelta())] == [memory_id]


async def test_claimed_job_is_nobody_elses_until_its_lease_ends(store: Store) -> None:
    """Whoever claimed it may have died."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    assert len(await claim(store)) == 1
    assert await claim(store, after=timedelta(minutes=15)) == []
    assert len(await claim(store, after=timedelta(minutes=16))) == 1


async def test_released_job_waits_for_its_next_try(store: Store) -> None:
    """Without a failed attempt: the judge was away."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    await store.release_judge_jobs(await claim(store), next_try_at=LATER + timedelta(hours=1))
    assert await claim(store, after=timedelta(minutes=59)) == []
    (job,) = await claim(store, after=timedelta(minutes=67))
    assert job.attempts == 0


async def test_failed_job_is_parked_with_its_reason_and_can_be_asked_for_again(store: Store) -> None:
    """It is counted, shown, and left alone until then."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await store.fail_judge_job(job, reason="it stumbled", next_try_at=LATER + timedelta(minutes=1))
    (job,) = await claim(store, after=timedelta(minutes=8))
    assert job.attempts == 1
    await store.fail_judge_job(job, reason="it fell", next_try_at=None)
    assert await claim(store, after=timedelta(days=1)) == []
    (parked,) = await store.parked_judge_jobs(OWNER, limit=9)
    assert (parked.key, parked.attempts, parked.reason) == (job.key, 2, "it fell")
    assert (await store.judge_job_counts(OWNER)).parked == 1
    assert (await store.judge_job_counts("bob")).parked == 0
    assert await store.retry_parked_judge_jobs("bob") == 0
    assert await store.retry_parked_judge_jobs(OWNER) == 1
    (job,) = await claim(store, after=timedelta(days=1))
    assert job.attempts == 0


async def test_jobs_of_forgotten_and_purged_memories_are_dropped(store: Store) -> None:
    """There is nothing left to learn about."""
    kept, forgotten, purged = [await add(store, text) for text in ("kept", "forgotten", "purged")]
    other = replace(THREAD, session="other")
    await read(store, *showing(kept, forgotten), *showing(purged, call_id="d", thread=other), said("and on"))
    await store.forget(OWNER, [forgotten], is_forced=True, is_purge=False)
    await store.forget(OWNER, [purged], is_forced=True, is_purge=True)
    assert [job.key.memory_id for job in await claim(store)] == [kept]
    assert (await store.judge_job_counts(OWNER)).waiting == 1


async def test_verdict_on_what_was_forgotten_meanwhile_is_dropped(store: Store) -> None:
    """No event, no verdict, no job."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await store.forget(OWNER, [memory_id], is_forced=True, is_purge=False)
    saved = await store.save_verdicts([(job, verdict(memory_id, used=0.9))], judge="test-1", now=LATER)
    assert saved == []
    assert await store.verdicts(OWNER, memory_id) == []
    assert await judged(store, memory_id) == []


# --- what a judge is asked ---


async def test_case_holds_what_was_said_before_and_after(store: Store) -> None:
    """Relative to the first showing in each thread; other memories are named, other threads' talk is not."""
    memory_id = await add(store, "the port is 8123", at=NOW - timedelta(days=3))
    other_id = await add(store, "another memory")
    await read(
        store,
        said("which port?", after_s=-5),
        *showing(memory_id, other_id),
        said("it is 8123", after_s=1),
        *showing(memory_id, call_id="again", after_s=2),
        said("8123 again", after_s=3),
        *showing(memory_id, call_id="sub", thread=SUB_AGENT, after_s=4),
        said("I set 8123", thread=SUB_AGENT, after_s=5),
        said("unrelated", thread=replace(THREAD, agent_id="third"), after_s=6),
    )
    job = next(job for job in await claim(store) if job.key.memory_id == memory_id)
    assert await texts(store, job) == (["which port?"], ["it is 8123", "8123 again", "I set 8123"])
    case = await store.judge_case(job)
    assert case is not None
    assert (case.content, case.others) == ("the port is 8123", ("another memory",))
    assert case.age_days == pytest.approx(3, abs=0.01)


async def test_nothing_said_makes_no_case(store: Store) -> None:
    """The job ends without a verdict, and waits again when the session goes on."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id))
    (job,) = await claim(store)
    assert await store.judge_case(job) is None
    await store.end_judge_jobs([job])
    assert await claim(store, after=timedelta(days=1)) == []
    await read(store, said("so I use 8123"), after=timedelta(days=1))
    assert len(await claim(store, after=timedelta(days=1, minutes=6))) == 1


# --- what a verdict comes to ---


async def test_verdict_becomes_events_and_a_multiplier(store: Store) -> None:
    """Used counts with its probability, relevant for precision only."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await judge(store, job, used=0.8, relevant=0.9, misled=0.1)
    assert await judged(store, memory_id) == [(Valence.RELEVANT, 0.9), (Valence.USEFUL, 0.8)]
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(useful=0.8))}
    (stored,) = await store.verdicts(OWNER, memory_id)
    assert (stored.judge, stored.shown_at, stored.judged_at) == ("test-1", NOW, LATER)
    counts = await store.judge_job_counts(OWNER)
    assert (counts.waiting, counts.done, counts.parked, counts.oldest_at) == (0, 1, 0, None)
    assert (await store.sessions(OWNER, limit=1))[0].used == 1


@pytest.mark.parametrize(
    ("figures", "events"),
    [
        ({"used": 0.59, "relevant": 0.49}, []),
        ({"used": 0.59, "relevant": 0.5}, [(Valence.RELEVANT, 0.5)]),
        ({"used": 0.9, "relevant": 0.9, "misled": 0.6}, [(Valence.MISLED, 0.6), (Valence.RELEVANT, 0.9)]),
    ],
    ids=["no use", "relevant", "misled"],
)
async def test_thresholds_decide_what_is_said(
    store: Store, figures: dict[str, float], events: list[tuple[Valence, float]]
) -> None:
    """What misled was not used, however much it was followed."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await judge(store, job, after=timedelta(minutes=6), **figures)
    assert await judged(store, memory_id) == events


async def test_later_verdict_takes_the_place_of_the_earlier(store: Store) -> None:
    """A session that goes on is judged anew, with all that was said."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await judge(store, job, used=0.8, relevant=0.9)
    assert await claim(store, after=timedelta(hours=1)) == []
    await read(store, said("that was wrong", after_s=900), after=timedelta(minutes=15))
    (again,) = await claim(store, after=timedelta(minutes=21))
    assert await texts(store, again) == ([], ["so I use 8123", "that was wrong"])
    await judge(store, again, after=timedelta(minutes=21), misled=0.7)
    assert await judged(store, memory_id) == [(Valence.MISLED, 0.7), (Valence.RELEVANT, 0.0)]
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(misled=0.7))}
    assert len(await store.verdicts(OWNER, memory_id)) == 1


async def test_what_is_said_while_the_judge_thinks_is_judged_afterwards(store: Store) -> None:
    """The verdict counts, and the job waits on."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await read(store, said("or rather not", after_s=400), after=timedelta(minutes=6))
    await judge(store, job, used=0.8)
    assert (await store.judge_job_counts(OWNER)).waiting == 1
    assert len(await claim(store, after=timedelta(minutes=12))) == 1


async def test_proof_overrules_the_judge_whichever_comes_first(store: Store) -> None:
    """The verdict is kept and shown, and weighs nothing."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await judge(store, job, misled=0.9)
    assert (await store.multipliers([memory_id]))[memory_id] < 1
    link = Link(Relation.DERIVED_FROM, memory_id)
    await add(store, "built on it", link, client=THREAD.client, session=THREAD.session)
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(useful=1))}
    await read(store, said("and on", after_s=900), after=timedelta(minutes=15))
    (again,) = await claim(store, after=timedelta(minutes=21))
    await judge(store, again, after=timedelta(minutes=21), misled=0.9)
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(useful=1))}


async def test_successor_takes_the_credit_and_the_judge_leaves_none_behind(store: Store) -> None:
    """What a session replaced earns nothing by that session."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await judge(store, job, used=0.9)
    link = Link(Relation.SUPERSEDES, memory_id)
    successor = await add(store, "the port is 8124", link, client=THREAD.client, session=THREAD.session)
    assert await store.multipliers([memory_id, successor]) == {successor: multiplier(Evidence(useful=1))}


# --- texts go ---


async def test_texts_go_once_the_session_is_judged_and_quiet(store: Store) -> None:
    """Not while a job waits, nor while the session may go on."""
    first, second = await add(store, "the port is 8123"), await add(store, "the host is db")
    await read(store, *showing(first, second), said("so I use 8123"))
    one, other = await claim(store)
    await judge(store, one, used=0.8)
    assert await store.drop_judged_texts(quiet_since=LATER, now=LATER) == 0
    await judge(store, other)
    assert await store.drop_judged_texts(quiet_since=NOW - timedelta(seconds=1), now=LATER) == 0
    assert await store.drop_judged_texts(quiet_since=LATER, now=LATER) == 1
    assert await store.slices(OWNER, THREAD, first) == []
    assert await store.drop_judged_texts(quiet_since=LATER, now=LATER) == 0


async def test_late_talk_adds_to_what_was_judged_before_the_texts_went(store: Store) -> None:
    """It is judged alone, and does not undo a use that it cannot see."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    (job,) = await claim(store)
    await judge(store, job, used=0.8, relevant=0.9)
    await store.drop_judged_texts(quiet_since=LATER, now=LATER)
    await read(store, said("good morning", after_s=90_000), after=timedelta(days=1))
    (again,) = await claim(store, after=timedelta(days=1, minutes=6))
    assert await texts(store, again) == ([], ["good morning"])
    await judge(store, again, after=timedelta(days=1, minutes=6), used=0.1, relevant=0.2)
    assert await judged(store, memory_id) == [(Valence.RELEVANT, 0.9), (Valence.USEFUL, 0.8)]
    assert len(await store.verdicts(OWNER, memory_id)) == 1


async def test_purge_takes_no_verdict_from_the_memories_beside(store: Store) -> None:
    """Its texts go at once, and what a judge saw in them of another memory stays proven."""
    kept, purged = [await add(store, text) for text in ("the port is 8123", "the key is lost")]
    await read(store, *showing(kept, purged), said("so I use 8123"))
    for job in await claim(store):
        await judge(store, job, used=0.8, relevant=0.9)
    await store.forget(OWNER, [purged], is_forced=True, is_purge=True)
    await read(store, said("good morning", after_s=900), after=timedelta(minutes=15))
    (again,) = await claim(store, after=timedelta(minutes=21))
    assert await texts(store, again) == ([], ["good morning"])
    await judge(store, again, after=timedelta(minutes=21), used=0.1, relevant=0.2)
    assert await judged(store, kept) == [(Valence.RELEVANT, 0.9), (Valence.USEFUL, 0.8)]


async def test_texts_that_no_judge_could_read_go_after_a_week(store: Store) -> None:
    """Their jobs end with them."""
    memory_id = await add(store, "the port is 8123")
    await read(store, *showing(memory_id), said("so I use 8123"))
    almost = NOW + WAITING_LIFE
    assert await store.drop_judged_texts(quiet_since=almost, now=almost) == 0
    after = almost + timedelta(seconds=1)
    assert await store.drop_judged_texts(quiet_since=after, now=after) == 1
    assert (await store.judge_job_counts(OWNER)).waiting == 0


async def test_reading_everything_again_changes_nothing(store: Store) -> None:
    """The same verdicts, events and jobs as after the first time."""
    memory_id = await add(store, "the port is 8123")
    events = [*showing(memory_id), said("so I use 8123")]
    await read(store, *events)
    (job,) = await claim(store)
    await judge(store, job, used=0.8)
    before = (await store.verdicts(OWNER, memory_id), await store.usage_events(OWNER, memory_id))
    await read(store, *events, after=timedelta(minutes=10))
    assert await claim(store, after=timedelta(hours=1)) == []
    assert (await store.verdicts(OWNER, memory_id), await store.usage_events(OWNER, memory_id)) == before
