"""What is kept and for how long: evidence for good, texts until they are judged and never beyond their quotas."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.domain import ledger
from sidecar.domain.evidence import (
    EvidenceEvent,
    MemoryCited,
    RecallCalled,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    UsageSource,
    Valence,
)
from sidecar.domain.judge_jobs import DueRule
from sidecar.domain.judgement import Verdict
from sidecar.domain.metrics import window_of
from sidecar.domain.store_values import RankedCandidate
from sidecar.use_cases.run_hygiene import HygienePolicy, RunHygiene
from tests.store_builders import OWNER, THREAD, SetClock, batch, event, new_memory, recall_of, settle

RULE = DueRule(idle=timedelta(minutes=5), lease=timedelta(minutes=5))
TWO_YEARS = timedelta(days=730)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
async def store(tmp_path: Path, clock: SetClock) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore.open(tmp_path / "m.db", clock=clock)
    yield opened
    await opened.close()


def session(memory_id: str, name: str, *texts: str) -> list[EvidenceEvent]:
    """A session that was shown a memory and then said something."""
    thread = replace(THREAD, session=name)

    def at(second: float, payload: RecallCalled | ToolAnswered | TextSpoken) -> EvidenceEvent:
        return event(payload, event_id=f"{name}-{second}", thread=thread, after_s=second)

    said = [at(2 + number, TextSpoken(SliceKind.AGENT_TEXT, text)) for number, text in enumerate(texts)]
    answer = ToolAnswered(name, Shown(ShownState.IDS, (memory_id,)), "")
    return [at(0, RecallCalled(name, "recall")), at(1, answer), *said]


async def judge_all(store: SqliteStore, clock: SetClock) -> None:
    for job in await store.claim_judge_jobs(RULE, now=clock.now(), limit=99):
        verdict = Verdict(job.key.memory_id, used=0.9, relevant=0.9, misled=0.0)
        await store.save_verdicts([(job, verdict)], judge="test-1", now=clock.now())


def hygiene(store: SqliteStore, clock: SetClock) -> RunHygiene:
    return RunHygiene(store=store, judging=store, insights=store, clock=clock, policy=HygienePolicy())


def texts_of(store: SqliteStore, path: Path) -> tuple[int, int]:
    """Return how many texts there are and their bytes, as the tables say."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    (found,) = connection.execute("SELECT count(*), coalesce(sum(length(text)), 0) FROM slices")
    connection.close()
    return int(found[0]), int(found[1])


async def test_evidence_is_kept_for_good(store: SqliteStore, clock: SetClock) -> None:
    """Two years and many hygiene runs later it is all there; only what it does to ranking has ended."""
    memory_id = (await store.add(new_memory("the port is 8123"))).memory_id
    key = (await store.get(OWNER, memory_id)).key
    await store.record_recall(replace(recall_of([memory_id]), candidates=(RankedCandidate(key, 0.9, 1.0, True),)))
    await store.apply_batch(OWNER, batch(*session(memory_id, "one", "8123 it is")), at=clock.now())
    await store.apply_batch(
        OWNER, batch(event(MemoryCited(memory_id), thread=replace(THREAD, session="one"), after_s=9)), at=clock.now()
    )
    clock.advance(timedelta(minutes=6))
    await judge_all(store, clock)
    await settle(store)
    before = await store.usage_events(OWNER, memory_id)
    assert {one.source for one in before} == {None, UsageSource.CITATION, UsageSource.JUDGE}
    assert (await store.multipliers([memory_id]))[memory_id] > 1
    for _ in range(4):
        clock.advance(TWO_YEARS / 4)
        await hygiene(store, clock).run_once()
    assert await store.usage_events(OWNER, memory_id) == before
    assert len(await store.verdicts(OWNER, memory_id)) == 1
    assert await store.multipliers([memory_id]) == {}
    window = window_of(365, now=clock.now() - TWO_YEARS)
    counts = await store.metric_counts(OWNER, window)
    assert (counts.surfaced, counts.used, counts.verdicts) == (1, 1, 1)
    # Figures that recalls were ranked by are for replay, which looks 90 days back.
    assert await store.recorded_recalls(OWNER, window) == ([], {})


async def test_texts_go_after_the_verdict(store: SqliteStore, clock: SetClock, tmp_path: Path) -> None:
    """An hour after the session was quiet, as it might go on; the ledger of what it was shown stays."""
    memory_id = (await store.add(new_memory("the port is 8123"))).memory_id
    await store.apply_batch(OWNER, batch(*session(memory_id, "one", "8123 it is", "done")), at=clock.now())
    clock.advance(timedelta(minutes=6))
    await judge_all(store, clock)
    await hygiene(store, clock).run_once()
    assert texts_of(store, tmp_path / "m.db")[0] == 2
    clock.advance(timedelta(hours=1))
    await hygiene(store, clock).run_once()
    assert texts_of(store, tmp_path / "m.db") == (0, 0)
    (recall,) = await store.session_recalls(OWNER, THREAD.client, "one")
    assert recall.shown.memory_ids == (memory_id,)


async def test_texts_that_nobody_judges_go_after_a_week(store: SqliteStore, clock: SetClock, tmp_path: Path) -> None:
    """With judging off, or a judge that never came back; hygiene sees to it, and the job ends with them."""
    memory_id = (await store.add(new_memory("the port is 8123"))).memory_id
    await store.apply_batch(OWNER, batch(*session(memory_id, "one", "8123 it is")), at=clock.now())
    clock.advance(timedelta(days=6, hours=23))
    await hygiene(store, clock).run_once()
    assert texts_of(store, tmp_path / "m.db")[0] == 1
    clock.advance(timedelta(hours=2))
    await hygiene(store, clock).run_once()
    assert texts_of(store, tmp_path / "m.db") == (0, 0)
    assert (await store.judge_job_counts(OWNER)).waiting == 0


async def test_texts_of_an_owner_have_a_quota(
    store: SqliteStore, clock: SetClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go, and are counted; what was already judged, and what other owners have, is not touched."""
    monkeypatch.setattr(ledger, "OWNER_BYTES", 20_000)
    mine = (await store.add(new_memory("the port is 8123"))).memory_id
    theirs = (await store.add(new_memory("theirs", owner="bob"))).memory_id
    await store.apply_batch("bob", batch(*session(theirs, "bob", "b" * 900)), at=clock.now())
    count = 0
    for number in range(40):
        await store.apply_batch(OWNER, batch(*session(mine, f"s{number}", "x" * 900)), at=clock.now())
        count, size_bytes = texts_of(store, tmp_path / "m.db")
        assert size_bytes <= 20_000 + 900
    assert count >= 20
    coverage = await store.sessions(OWNER, limit=100)
    assert len(coverage) == 40
    clock.advance(timedelta(minutes=6))
    jobs = await store.claim_judge_jobs(RULE, now=clock.now(), limit=99)
    cases = {job.key.session: await store.judge_case(job) for job in jobs}
    assert (cases["s0"], cases["s39"] is not None, cases["bob"] is not None) == (None, True, True)


async def test_texts_of_one_recall_have_a_quota(store: SqliteStore, clock: SetClock, tmp_path: Path) -> None:
    """As much as a judge can read after each recall, and of the rest only the last few."""
    memory_id = (await store.add(new_memory("the port is 8123"))).memory_id
    said = [f"{number} ".ljust(4_000, "x") for number in range(200)]
    for begin in range(0, len(said), 50):
        thread = SessionThread(THREAD.client, "long")
        events = session(memory_id, "long") if begin == 0 else []
        events += [
            event(
                TextSpoken(SliceKind.AGENT_TEXT, text), event_id=f"t{begin}-{n}", thread=thread, after_s=10 + begin + n
            )
            for n, text in enumerate(said[begin : begin + 50])
        ]
        await store.apply_batch(OWNER, batch(*events), at=clock.now())
    _, size_bytes = texts_of(store, tmp_path / "m.db")
    assert size_bytes <= ledger.JOB_BYTES + ledger.CONTEXT_BYTES + 4_000


async def test_surfaced_a_thousand_times_is_kept_and_changes_nothing(store: SqliteStore) -> None:
    """A delivery is on record, once each."""
    memory_id = (await store.add(new_memory("the port is 8123"))).memory_id
    for _ in range(1000):
        await store.record_recall(recall_of([memory_id]))
    await settle(store)
    events = await store.usage_events(OWNER, memory_id)
    assert (len(events), {one.valence for one in events}) == (1000, {Valence.SURFACED})
    assert await store.multipliers([memory_id]) == {}
