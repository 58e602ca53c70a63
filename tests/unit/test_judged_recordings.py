"""From recorded sessions of the real clients to verdicts, events and multipliers; read twice, nothing is added."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sidecar.adapters.redaction import SecretRedactor
from sidecar.domain.disputes import Challenge
from sidecar.domain.evidence import EvidenceEvent, RememberCalled, SliceKind, UsageSource, Valence
from sidecar.domain.judgement import JudgeCase, Verdict
from sidecar.domain.memory import Link, Relation
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.domain.weighing import Standing
from sidecar.use_cases.collect_evidence import CollectEvidence
from sidecar.use_cases.judge_usefulness import JudgePolicy, JudgeUsefulness
from tests.store_builders import OWNER, SetClock, Store, batch, new_memory, open_store
from tests.unit import test_claude_code_recordings as claude_code
from tests.unit import test_codex_recordings as codex

DEPLOYS, STAGING, FLAGS = claude_code.DEPLOYS, claude_code.STAGING, claude_code.FLAGS
MOVED = codex.STORED
CONTENTS = {
    DEPLOYS: "Deploys go out on Tuesday at 10:00 UTC, never on Friday.",
    STAGING: "Staging is restored from production every night.",
    FLAGS: "Feature flags live in flags.toml.",
}
JUDGED = 0.9


class OverlapJudge:
    """Finds a memory used if the agent said one of its longer words that the user had not said before."""

    name = "overlap-1"

    async def judge(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
        """See `Judge.judge`."""
        return [self._verdict(case) for case in cases]

    def _verdict(self, case: JudgeCase) -> Verdict:
        known = _words(" ".join(piece.text for piece in case.before))
        said = _words(" ".join(piece.text for piece in case.after if piece.kind is SliceKind.AGENT_TEXT))
        used = JUDGED if (_words(case.content) - known) & said else 0.0
        return Verdict(case.memory_id, used=used, relevant=used, misled=0.0)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z][a-z.]{4,}[a-z]", text.lower()))


def claude_code_session() -> list[EvidenceEvent]:
    return list(claude_code._events(claude_code.SHIPPED / "memory_round"))


def codex_session() -> list[EvidenceEvent]:
    paths = sorted((codex.SHIPPED / "memory_round").glob("rollout-*.jsonl"))
    return [event for path in paths for event in codex._events_of(path)]


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_store(request.param, tmp_path, SetClock())
    yield opened
    await opened.close()


async def work(store: Store, events: Sequence[EvidenceEvent], clock: SetClock) -> None:
    """Read a session and judge it once it is quiet."""
    collect = CollectEvidence(evidence=store, redactor=SecretRedactor(), clock=clock)
    await collect.run(OWNER, batch(*events))
    clock.advance(timedelta(minutes=6))
    judging = JudgeUsefulness(store=store, judge=OverlapJudge(), clock=clock, policy=JudgePolicy())
    while await judging.work_off_batch():
        pass
    clock.advance(timedelta(hours=2))
    await judging.drop_texts()


async def prepare(store: Store, events: Sequence[EvidenceEvent]) -> SetClock:
    """Do what the session's own calls did to the store: memories, one that replaces another, a challenge."""
    clock = SetClock()
    clock.time = max(event.at for event in events)
    day_before = min(event.at for event in events) - timedelta(days=1)
    for memory_id, content in CONTENTS.items():
        new = new_memory(content, at=day_before)
        await store.add(replace(new, memory=replace(new.memory, id=memory_id)))
    called_at = next(event.at for event in events if isinstance(event.payload, RememberCalled))
    new = new_memory("Deploys go out at 11:00.", at=called_at, links=[Link(Relation.SUPERSEDES, DEPLOYS)])
    thread = events[0].thread
    await store.add(replace(new, memory=replace(new.memory, id=MOVED, client=thread.client)))
    said = Challenge(STAGING, "restored weekly", "", called_at, client=thread.client, session=thread.session)
    await store.open_dispute(OWNER, said)
    return clock


async def state(store: Store, at: datetime) -> list[object]:
    """Everything that the session came to."""
    ids = (*CONTENTS, MOVED)
    verdicts = [
        (stored.key, stored.verdict, stored.shown_at)
        for memory_id in ids
        for stored in await store.verdicts(OWNER, memory_id)
    ]
    evidence = [await store.memory_evidence(OWNER, memory_id, at=at) for memory_id in ids]
    counts = await store.judge_job_counts(OWNER)
    return [verdicts, evidence, sorted((await store.multipliers(ids)).items()), counts]


@pytest.mark.parametrize("session", [claude_code_session, codex_session], ids=["claude-code", "codex"])
async def test_recorded_session_comes_to_the_expected_evidence(
    store: Store, session: Callable[[], list[EvidenceEvent]]
) -> None:
    """In band for what it replaced, a challenge over the judge, the judge for the rest; twice is the same as once."""
    events = session()
    clock = await prepare(store, events)
    await work(store, events, clock)
    used = {
        memory_id: [stored.verdict.used for stored in await store.verdicts(OWNER, memory_id)] for memory_id in CONTENTS
    }
    assert used[FLAGS] == [JUDGED]
    assert all(len(found) == 1 for found in used.values())
    factors = await store.multipliers([*CONTENTS, MOVED])
    assert factors == {
        MOVED: multiplier(Evidence(useful=1)),
        FLAGS: multiplier(Evidence(useful=JUDGED)),
        STAGING: multiplier(Evidence(misled=1)),
    }
    found = await store.memory_evidence(OWNER, DEPLOYS, at=clock.now())
    assert {
        (each.event.source, each.event.valence): each.standing
        for each in found.weighed
        if each.event.valence is not Valence.RELEVANT
    } == {
        (UsageSource.IN_BAND, Valence.USEFUL): Standing.PASSED_ON,
        **({(UsageSource.JUDGE, Valence.USEFUL): Standing.OVERRULED} if used[DEPLOYS] == [JUDGED] else {}),
    }
    at = clock.now()
    before = await state(store, at)
    await work(store, events, clock)
    assert await state(store, at) == before
