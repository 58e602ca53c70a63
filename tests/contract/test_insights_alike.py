"""Both insights stores count the same of histories that nobody thought of: recalls, transcripts, verdicts, purges."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sidecar.domain.disputes import Challenge
from sidecar.domain.evidence import (
    Channel,
    EvidenceEvent,
    RecallCalled,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    UnknownReason,
)
from sidecar.domain.judge_jobs import DueRule
from sidecar.domain.judgement import Verdict
from sidecar.domain.memory import Link, Relation
from sidecar.domain.metrics import ClientCounts, MetricCounts, make_metrics, window_of
from tests.store_builders import NOW, OWNER, SetClock, Store, batch, event, new_memory, open_store, recall_of, settle

STEPS = 60
HOURS = 150
THREADS = [
    SessionThread(client, f"{client}-{number}", project="app", agent_id=agent)
    for client in ("codex", "claude-code")
    for number in range(2)
    for agent in ("", "sub")
]
UNSEEN = (
    Shown(ShownState.NOTHING),
    Shown(ShownState.UNKNOWN, reason=UnknownReason.SPILLED),
    Shown(ShownState.CANNOT_RECORD),
)


class History:
    """Steps by chance; the same seed plays the same ones on any store."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.memory_ids: list[str] = []
        self.number = 0

    async def play(self) -> None:
        for number in range(6):
            await self._add(f"memory {number}")
        steps: list[Callable[[], Awaitable[None]]] = [
            self._recall, self._recall, self._brief, self._read, self._read, self._judge, self._replace,
            self._challenge, self._forget,
        ]  # fmt: skip
        for self.number in range(STEPS):
            await self.chance.choice(steps)()

    @property
    def _at(self) -> datetime:
        return NOW - timedelta(hours=self.chance.randrange(HOURS))

    @property
    def _some(self) -> list[str]:
        return self.chance.sample(self.memory_ids, self.chance.randrange(4))

    async def _add(self, content: str, *links: Link, client: str = "", session: str = "") -> None:
        memory = new_memory(content, at=self._at, links=links, client=client, session=session)
        self.memory_ids.append((await self.store.add(memory)).memory_id)

    async def _recall(self, channel: Channel = Channel.RECALL) -> None:
        thread = self.chance.choice(THREADS)
        session = self.chance.choice([thread.session, "", "another"])
        record = recall_of(self._some, at=self._at, client=thread.client, session=session, channel=channel)
        await self.store.record_recall(record)
        await settle(self.store)

    async def _brief(self) -> None:
        await self._recall(Channel.BRIEFING)

    async def _read(self) -> None:
        at, thread, call_id = self._at, self.chance.choice(THREADS), f"call-{self.number}"
        memory_ids = self._some
        shown = Shown(ShownState.IDS, tuple(memory_ids)) if memory_ids else self.chance.choice(UNSEEN)
        tool = self.chance.choice(["recall", "build_context"])
        events: list[EvidenceEvent] = [
            replace(event(RecallCalled(call_id, tool), event_id=call_id, thread=thread), at=at),
            replace(event(ToolAnswered(call_id, shown, ""), event_id=call_id, thread=thread), at=at),
            replace(event(TextSpoken(SliceKind.AGENT_TEXT, "and so on"), thread=thread), at=at),
        ]
        self.chance.shuffle(events)
        await self.store.apply_batch(OWNER, batch(*events, offset=self.number), at=NOW)

    async def _judge(self) -> None:
        rule = DueRule(idle=timedelta(), lease=timedelta(days=1))
        jobs = await self.store.claim_judge_jobs(rule, now=NOW + timedelta(days=1), limit=99)
        jobs.sort(key=lambda job: (job.key.client, job.key.session, self.memory_ids.index(job.key.memory_id)))
        chance = self.chance.random
        verdicts = [(job, Verdict(job.key.memory_id, chance(), chance(), chance())) for job in jobs]
        await self.store.save_verdicts(verdicts, judge="test-1", now=NOW)

    async def _replace(self) -> None:
        thread = self.chance.choice(THREADS)
        relation = self.chance.choice([Relation.SUPERSEDES, Relation.DERIVED_FROM])
        link = Link(relation, self.chance.choice(self.memory_ids))
        await self._add(f"later {self.number}", link, client=thread.client, session=thread.session)

    async def _challenge(self) -> None:
        thread = self.chance.choice(THREADS)
        said = Challenge(
            self.chance.choice(self.memory_ids), "wrong", "", self._at, client=thread.client, session=thread.session
        )
        await self.store.open_dispute(OWNER, said)

    async def _forget(self) -> None:
        if len(self.memory_ids) < 5 or self.chance.random() < 0.5:
            return
        memory_id = self.memory_ids.pop(self.chance.randrange(len(self.memory_ids)))
        await self.store.forget(OWNER, [memory_id], is_forced=True, is_purge=True)


async def counted(store: Store, seed: int) -> list[tuple[MetricCounts, tuple[ClientCounts, ...]]]:
    """Return what is counted in several windows, in an order that does not depend on the store."""
    await History(store, seed).play()
    found = []
    for days in (1, 3, 365):
        window = window_of(days, now=NOW)
        counts = await store.metric_counts(OWNER, window)
        # As told: days without anything are the same, said or not.
        told = make_metrics(counts, window)
        found.append((replace(counts, series={}, clients=()), told.clients))
        assert {len(series) for series in told.series.values()} == {days}
        found.append((replace(counts, series=dict(told.series), clients=()), ()))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_both_stores_count_the_same(tmp_path: Path, seed: int) -> None:
    """Whatever was recalled, read, judged, replaced, challenged and purged, in whatever order."""
    results = []
    for kind in ("in-memory", "sqlite"):
        store = open_store(kind, tmp_path, SetClock())
        results.append(await counted(store, seed))
        await store.close()
    assert results[0] == results[1]
    assert any(counts.used and counts.verdicts for counts, _ in results[0])
