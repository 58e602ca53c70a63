"""What every insights store must count: a fixed history comes to fixed figures; recalls can be replayed."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sidecar.domain.confidence import ValidationKind
from sidecar.domain.disputes import Challenge, Resolution
from sidecar.domain.disputes import Verdict as DisputeVerdict
from sidecar.domain.evidence import (
    EvidenceEvent,
    RecallCalled,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    UnknownReason,
    UsageSource,
    Valence,
)
from sidecar.domain.judge_jobs import DueRule, JobKey, JudgeJob
from sidecar.domain.judgement import Verdict
from sidecar.domain.memory import Link, Relation
from sidecar.domain.metrics import Metrics, SeriesName, make_metrics, window_of
from sidecar.domain.replay import RecordedCandidate
from sidecar.domain.store_values import RankedCandidate
from sidecar.domain.validation import Report
from sidecar.ports import InsightsStore
from tests.store_builders import (
    NOW,
    OWNER,
    THREAD,
    SetClock,
    Store,
    batch,
    event,
    new_memory,
    open_store,
    recall_of,
    settle,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics.json"
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
CODEX = SessionThread("codex", "codex-1", project="app")
CURSOR = SessionThread("cursor", "cursor-1", project="app")


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

    def takes(_insights: InsightsStore) -> None: ...

    takes(open_store("in-memory", tmp_path, clock))


def called(call_id: str, shown: Shown, thread: SessionThread, *, at: datetime) -> list[EvidenceEvent]:
    return [
        replace(event(RecallCalled(call_id, "recall"), event_id=call_id, thread=thread), at=at),
        replace(event(ToolAnswered(call_id, shown, ""), event_id=call_id, thread=thread), at=at),
        replace(event(TextSpoken(SliceKind.AGENT_TEXT, "and so on"), thread=thread), at=at),
    ]


def ids(*memory_ids: str) -> Shown:
    return Shown(ShownState.IDS, memory_ids)


async def figures(store: Store, *, days: int, owner: str = OWNER, at: datetime = NOW) -> Metrics:
    window = window_of(days, now=at)
    return make_metrics(await store.metric_counts(owner, window), window)


async def give_verdicts(
    store: Store,
    thread: SessionThread,
    verdicts: Sequence[tuple[str, float, float, float]],
    *,
    now: datetime = NOW,
) -> None:
    """Judge memories of a session: id, used, relevant and misled."""
    rule = DueRule(idle=timedelta(), lease=DAY)
    jobs = {job.key: job for job in await store.claim_judge_jobs(rule, now=NOW + DAY, limit=99)}
    given = [
        (jobs[JobKey(OWNER, thread.client, thread.session, memory_id)], Verdict(memory_id, *probabilities))
        for memory_id, *probabilities in verdicts
    ]
    await store.save_verdicts(given, judge="test-1", now=now)
    await store.release_judge_jobs([job for job in jobs.values() if job not in dict(given)], next_try_at=NOW)


async def play_history(store: Store) -> None:
    """Twelve days with three clients: what was used, relevant, misleading, only shown, or not readable."""
    old = NOW - 11 * DAY
    a, b, c, d = [(await store.add(new_memory(f"memory {name}", at=old))).memory_id for name in "abcd"]
    other = (await store.add(new_memory("another owner's", owner="bob", at=old))).memory_id
    other_thread = replace(THREAD, session="session-2")
    for memory_ids, day, session in (
        ((a, b), 3, THREAD.session),
        ((a, c), 2, "session-2"),
        ((), 2, "session-2"),
        ((d,), 40, "long-ago"),
    ):
        await store.record_recall(recall_of(memory_ids, at=NOW - day * DAY, session=session))
    await store.record_recall(recall_of([a], at=NOW - DAY, client="codex", session=""))
    await store.record_recall(recall_of([other], at=NOW, owner="bob"))
    await settle(store)
    await store.apply_batch(OWNER, batch(*called("c1", ids(a, b), THREAD, at=NOW - 3 * DAY)), at=NOW)
    await store.apply_batch(OWNER, batch(*called("c2", ids(a, c), other_thread, at=NOW - 2 * DAY)), at=NOW)
    await store.apply_batch(
        OWNER,
        batch(
            *called("c3", Shown(ShownState.NOTHING), other_thread, at=NOW - 2 * DAY),
            *called("c4", Shown(ShownState.UNKNOWN, reason=UnknownReason.SPILLED), other_thread, at=NOW),
            *called("x1", ids(d), CODEX, at=NOW - DAY),
            *called("u1", Shown(ShownState.CANNOT_RECORD), CURSOR, at=NOW),
        ),
        at=NOW,
    )
    await give_verdicts(store, THREAD, [(a, 0.9, 0.9, 0.0), (b, 0.1, 0.7, 0.0)])
    await give_verdicts(store, other_thread, [(a, 0.8, 0.8, 0.0), (c, 0.0, 0.0, 0.9)])
    await give_verdicts(store, CODEX, [(d, 0.0, 0.1, 0.0)])
    # Overrules the judge, who found that the session used it.
    said = Challenge(a, "wrong here", "", NOW - 2 * DAY, client=THREAD.client, session="session-2")
    await store.open_dispute(OWNER, said)
    report = Report(d, ValidationKind.SUCCEEDED, NOW - 5 * DAY, client="codex", session="elsewhere")
    await store.record_validation(OWNER, report)
    link = Link(Relation.DERIVED_FROM, b)
    await store.add(
        new_memory("built on b", links=[link], client=THREAD.client, session=THREAD.session, at=NOW - 3 * DAY)
    )


def plain(metrics: Metrics) -> dict[str, object]:
    return {
        "window": [metrics.window.first.isoformat(), metrics.window.last.isoformat()],
        "headline": metrics.headline,
        "metrics": {
            metric.name: [metric.value, metric.numerator, metric.denominator, metric.reason]
            for metric in metrics.metrics
        },
        "series": {name: list(values) for name, values in metrics.series.items()},
        "clients": [asdict(client) | {"coverage": client.coverage} for client in metrics.clients],
    }


async def test_fixed_history_comes_to_the_figures_of_the_golden_file(store: Store) -> None:
    """Both stores, to the digit; another owner's share in none of it."""
    await play_history(store)
    found = {
        "twelve days": plain(await figures(store, days=12)),
        "today": plain(await figures(store, days=1)),
        "another owner": plain(await figures(store, days=12, owner="bob")),
        "nobody": plain(await figures(store, days=2, owner="carol")),
    }
    assert found == json.loads(GOLDEN.read_text("utf-8"))


async def test_counting_changes_nothing(store: Store) -> None:
    """The same figures every time."""
    await play_history(store)
    assert await figures(store, days=12) == await figures(store, days=12)


async def test_later_verdict_replaces_the_earlier_one_in_the_figures(store: Store) -> None:
    """It is one verdict of one session, however often it was judged."""
    memory_id = (await store.add(new_memory("a memory"))).memory_id
    await store.apply_batch(OWNER, batch(*called("c", ids(memory_id), THREAD, at=NOW)), at=NOW)
    await give_verdicts(store, THREAD, [(memory_id, 0.9, 0.9, 0.0)])
    job = JudgeJob(JobKey(OWNER, THREAD.client, THREAD.session, memory_id), 0, 0)
    await store.save_verdicts([(job, Verdict(memory_id, 0.0, 0.0, 0.0))], judge="test-1", now=NOW)
    metrics = {metric.name: metric for metric in (await figures(store, days=1)).metrics}
    assert (metrics["context_precision"].numerator, metrics["context_precision"].denominator) == (0, 1)


# --- recorded recalls ---


async def record(store: Store, memory_ids: Sequence[str], *, delivered: int, **fields: object) -> str:
    keys = [(await store.get(OWNER, memory_id)).key for memory_id in memory_ids]
    recall = recall_of(memory_ids[:delivered], **fields)  # type: ignore[arg-type]
    candidates = tuple(RankedCandidate(key, 0.5, 1.05, is_exact=place == 0) for place, key in enumerate(keys))
    await store.record_recall(replace(recall, candidates=candidates, found_count=delivered, is_unreinforced=True))
    await settle(store)
    return recall.recall_id


async def test_recalls_are_recorded_with_their_candidates(store: Store) -> None:
    """Those beyond what was delivered too; with what their session used, and what was said of each."""
    one, other = [(await store.add(new_memory(f"memory {number}"))).memory_id for number in range(2)]
    recall_id = await record(store, [one, other], delivered=1)
    await store.record_recall(recall_of([one]))
    await store.record_validation(
        OWNER, Report(other, ValidationKind.SUCCEEDED, NOW, client="claude-code", session="session-1")
    )
    recalls, found = await store.recorded_recalls(OWNER, window_of(1, now=NOW))
    (recall,) = recalls
    assert (recall.recall_id, recall.delivered, recall.is_unreinforced) == (recall_id, 1, True)
    assert recall.candidates == (RecordedCandidate(one, 0.5, 1.05, True), RecordedCandidate(other, 0.5, 1.05, False))
    assert recall.used_ids == {other}
    assert {memory_id: [event.valence for event in said.events] for memory_id, said in found.items()} == {
        other: [Valence.USEFUL]
    }
    assert await store.recorded_recalls("bob", window_of(1, now=NOW)) == ([], {})


async def test_recorded_recalls_come_with_when_each_thing_was_known(store: Store) -> None:
    """When a verdict was given, and when a dispute ended in the memory's favour; not when the memory was shown."""
    memory_id = (await store.add(new_memory("a memory"))).memory_id
    await store.apply_batch(OWNER, batch(*called("c", ids(memory_id), THREAD, at=NOW)), at=NOW)
    await give_verdicts(store, THREAD, [(memory_id, 0.9, 0.9, 0.0)], now=NOW + 3 * HOUR)
    challenge = Challenge(memory_id, "wrong", "", NOW, client="c", session="other")
    dispute, _ = await store.open_dispute(OWNER, challenge)
    settled_at = NOW + 2 * HOUR
    await store.resolve_dispute(OWNER, dispute.id, DisputeVerdict(Resolution.KEEP), at=settled_at)
    await record(store, [memory_id], delivered=1)
    _, found = await store.recorded_recalls(OWNER, window_of(1, now=NOW))
    known = {(event.source, event.valence): event.known_at for event in found[memory_id].events}
    assert known == {
        (UsageSource.JUDGE, Valence.USEFUL): NOW + 3 * HOUR,
        (UsageSource.CHALLENGE, Valence.MISLED): None,
    }
    assert found[memory_id].cleared_at == (settled_at,)


async def test_recorded_recalls_go_by_age_and_number(store: Store) -> None:
    """The delivery itself stays on record."""
    memory_id = (await store.add(new_memory("a memory"))).memory_id
    recorded = [await record(store, [memory_id], delivered=1, at=NOW - day * DAY) for day in (50, 3, 2, 1)]
    assert await store.prune_recorded_recalls(before=NOW - 10 * DAY, most=2) == 2
    recalls, _ = await store.recorded_recalls(OWNER, window_of(60, now=NOW))
    assert [recall.recall_id for recall in recalls] == recorded[2:]
    assert sum((await figures(store, days=60)).series[SeriesName.RECALLS]) == 4
    assert await store.prune_recorded_recalls(before=NOW - 10 * DAY, most=0) == 2
