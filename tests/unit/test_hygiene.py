"""Looking after the evidence: one run at a time, in pages, and what is too old goes."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.confidence import ValidationKind
from sidecar.domain.hygiene import HYGIENE_LEASE
from sidecar.domain.store_values import RankedCandidate
from sidecar.domain.validation import Report
from sidecar.use_cases.run_hygiene import HygienePolicy, RunHygiene
from tests.store_builders import NOW, OWNER, SetClock, new_memory, recall_of

POLICY = HygienePolicy(recorded_recalls=2)


class Bench:
    """A store and the one who looks after it."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.store = InMemoryStore(clock=self.clock)
        self.hygiene = RunHygiene(
            store=self.store, judging=self.store, insights=self.store, clock=self.clock, policy=POLICY
        )

    async def add_used(self, count: int) -> list[str]:
        """Store memories that were each used once."""
        memory_ids = [(await self.store.add(new_memory(f"memory {number}"))).memory_id for number in range(count)]
        for memory_id in memory_ids:
            report = Report(memory_id, ValidationKind.SUCCEEDED, NOW, client="c", session="s")
            await self.store.record_validation(OWNER, report)
        return memory_ids


async def test_all_pages_are_looked_at_and_old_evidence_falls_out() -> None:
    """However many there are; a second run finds nothing to do."""
    bench = Bench()
    memory_ids = await bench.add_used(450)
    first = await bench.hygiene.run_once()
    assert (first.looked_at, first.changed) == (450, 0)
    bench.clock.advance(timedelta(days=91))
    second = await bench.hygiene.run_once()
    assert (second.looked_at, second.changed) == (450, 450)
    assert await bench.store.multipliers(memory_ids) == {}
    assert (await bench.hygiene.run_once()).changed == 0


async def test_two_runs_are_never_under_way_at_once() -> None:
    """The other one does nothing and says so; a lease of one that died ends."""
    bench = Bench()
    await bench.add_used(3)
    until = NOW + timedelta(minutes=10)
    assert await bench.store.take_lease(HYGIENE_LEASE, "another", now=NOW, until=until)
    refused = await bench.hygiene.run_once()
    assert (refused.is_refused, refused.looked_at) == (True, 0)
    bench.clock.advance(timedelta(minutes=10))
    assert (await bench.hygiene.run_once()).looked_at == 3
    assert await bench.store.take_lease(HYGIENE_LEASE, "another", now=bench.clock.now(), until=until)


async def test_runs_side_by_side_do_the_work_once() -> None:
    """The lease is what keeps them apart, not the process."""
    bench = Bench()
    await bench.add_used(5)
    bench.clock.advance(timedelta(days=91))
    reports = await asyncio.gather(bench.hygiene.run_once(), bench.hygiene.run_once())
    assert sum(report.changed for report in reports) == 5


async def test_recorded_recalls_beyond_the_limit_go() -> None:
    """The newest ones stay."""
    bench = Bench()
    (memory_id,) = await bench.add_used(1)
    key = (await bench.store.get(OWNER, memory_id)).key
    for minute in range(5):
        recall = recall_of([memory_id], at=NOW + timedelta(minutes=minute))
        await bench.store.record_recall(replace(recall, candidates=(RankedCandidate(key, 0.5, 1.0, False),)))
    assert (await bench.hygiene.run_once()).dropped_recalls == 3
