"""The judge's queue: nothing is lost when the judge is away, and nothing is stuck when it stumbles."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.evidence import (
    RecallCalled,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    UsageSource,
    Valence,
)
from sidecar.domain.judgement import JudgeCase, Verdict
from sidecar.ports import Judge
from sidecar.testing.phrase_judge import PhraseJudge
from sidecar.use_cases.judge_usefulness import JudgePolicy, JudgeUsefulness
from tests.store_builders import OWNER, THREAD, SetClock, batch, event, new_memory

POLICY = JudgePolicy(idle_s=300, keep_text_s=3600, batch_size=2, max_attempts=2, backoff_s=60)


class Bench:
    """A store, a judge and the queue between them."""

    def __init__(self, judge: Judge) -> None:
        self.clock = SetClock()
        self.store = InMemoryStore(clock=self.clock)
        self.judging = JudgeUsefulness(store=self.store, judge=judge, clock=self.clock, policy=POLICY)

    async def show(self, *said: str) -> list[str]:
        """Store a memory for each text and have a session of its own say it after being shown the memory."""
        memory_ids = []
        for number, text in enumerate(said):
            memory_id = (await self.store.add(new_memory(f"memory {number} {text}"))).memory_id
            thread, call_id = replace(THREAD, session=f"session-{number}"), f"call-{number}"
            shown = Shown(ShownState.IDS, (memory_id,))
            await self.store.apply_batch(
                OWNER,
                batch(
                    event(RecallCalled(call_id, "recall"), event_id=call_id, thread=thread),
                    event(ToolAnswered(call_id, shown, ""), event_id=call_id, thread=thread),
                    event(TextSpoken(SliceKind.AGENT_TEXT, text), thread=thread, after_s=1),
                ),
                at=self.clock.now(),
            )
            memory_ids.append(memory_id)
        self.clock.advance(timedelta(minutes=6))
        return memory_ids

    async def work_off(self) -> None:
        """Work until nothing is due."""
        while await self.judging.work_off_batch():
            pass

    async def used(self, memory_id: str) -> bool:
        events = await self.store.usage_events(OWNER, memory_id)
        return any((e.source, e.valence) == (UsageSource.JUDGE, Valence.USEFUL) for e in events)


async def test_every_due_job_is_judged() -> None:
    """In batches; each gets its own verdict."""
    bench = Bench(PhraseJudge())
    memory_ids = await bench.show("used=0.9", "nothing of it", "used=0.7", "used=0.5")
    await bench.work_off()
    assert [await bench.used(memory_id) for memory_id in memory_ids] == [True, False, True, False]
    assert bench.judging.judged == 4
    assert bench.judging.failures == 0


async def test_judge_that_is_away_costs_no_attempts() -> None:
    """The jobs wait, the status tells, and all are judged once it is back."""
    judge = PhraseJudge()
    bench = Bench(judge)
    memory_ids = await bench.show("used=0.9")
    judge.is_away = True
    for _ in range(5):
        assert not await bench.judging.work_off_batch()
        bench.clock.advance(timedelta(hours=2))
    assert "cannot judge now" in bench.judging.problem
    assert (await bench.store.judge_job_counts(OWNER)).waiting == 1
    judge.is_away = False
    await bench.work_off()
    assert bench.judging.problem == ""
    assert await bench.used(memory_ids[0])


async def test_verdicts_reached_before_the_judge_went_away_are_kept() -> None:
    """A language model's were paid for; only the other session waits, and it alone is asked about again."""

    class OneAnswer(PhraseJudge):
        async def judge(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
            verdicts = await super().judge(cases)
            self.is_away = True
            return verdicts

    judge = OneAnswer()
    bench = Bench(judge)
    memory_ids = await bench.show("used=0.9", "used=0.8")
    await bench.work_off()
    assert [await bench.used(memory_id) for memory_id in memory_ids] == [True, False]
    counts = await bench.store.judge_job_counts(OWNER)
    assert (counts.waiting, counts.done, counts.parked) == (1, 1, 0)
    bench.clock.advance(timedelta(minutes=2))
    judge.is_away = False
    await bench.work_off()
    assert await bench.used(memory_ids[1])
    assert len(judge.asked) == 2


async def test_case_that_makes_the_judge_stumble_is_parked_alone() -> None:
    """With the kind of its failure, whose words may quote the session; those it came with are judged."""
    bench = Bench(PhraseJudge())
    memory_ids = await bench.show("out of order", "used=0.9")
    await bench.work_off()
    assert await bench.used(memory_ids[1])
    assert (await bench.store.judge_job_counts(OWNER)).waiting == 1
    bench.clock.advance(timedelta(seconds=61))
    await bench.work_off()
    (parked,) = await bench.store.parked_judge_jobs(OWNER, limit=9)
    assert (parked.key.memory_id, parked.attempts) == (memory_ids[0], 2)
    assert parked.reason == "ValueError"
    assert bench.judging.failures == 2


async def test_no_verdict_is_a_failed_attempt() -> None:
    """Asking again may help, asking for ever does not."""
    bench = Bench(PhraseJudge())
    await bench.show("undecided")
    await bench.work_off()
    bench.clock.advance(timedelta(seconds=61))
    await bench.work_off()
    (parked,) = await bench.store.parked_judge_jobs(OWNER, limit=9)
    assert parked.reason == "the judge reached no verdict"


async def test_texts_go_when_the_session_stays_quiet() -> None:
    """An hour after it was heard of last, not with the verdict: it may go on."""
    bench = Bench(PhraseJudge())
    (memory_id,) = await bench.show("used=0.9")
    await bench.work_off()
    thread = replace(THREAD, session="session-0")
    assert await bench.judging.drop_texts() == 0
    assert await bench.store.slices(OWNER, thread, memory_id)
    bench.clock.advance(timedelta(hours=1))
    assert await bench.judging.drop_texts() == 1
    assert not await bench.store.slices(OWNER, thread, memory_id)


async def test_judge_that_answers_too_little_stores_nothing() -> None:
    """A verdict must not go to another memory than it is about."""

    class Short(PhraseJudge):
        async def judge(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
            return (await super().judge(cases))[1:]

    bench = Bench(Short())
    memory_ids = await bench.show("used=0.9", "used=0.8")
    with pytest.raises(ValueError, match="zip"):
        await bench.judging.work_off_batch()
    assert not any([await bench.used(memory_id) for memory_id in memory_ids])
