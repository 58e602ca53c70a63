"""After judging, no text is left but the memories themselves: not in database or journal, usage, logs or figures."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import apsw

from sidecar.adapters.redaction import SecretRedactor
from sidecar.domain.evidence import (
    EvidenceEvent,
    RecallCalled,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
)
from sidecar.domain.store_values import RankedCandidate
from sidecar.server.logs import logging_to
from sidecar.testing.phrase_judge import PhraseJudge
from sidecar.use_cases.collect_evidence import CollectEvidence
from sidecar.use_cases.export_metrics import ExportMetrics
from sidecar.use_cases.judge_usefulness import JudgePolicy, JudgeUsefulness
from sidecar.use_cases.run_hygiene import HygienePolicy, RunHygiene
from tests.store_builders import OWNER, THREAD, SetClock, batch, event, new_memory, open_store, recall_of, settle

MEMORY_MARKS = [b"quokkaport", b"8123-zz"]
TALK_MARKS = [b"walrusquestion", b"narwhalanswer", b"puffincommand", b"lemuroutput", b"ocelotfailure", b"ibexlate"]
CONTENT_TABLES = {"memories", "memory_words", "embed_jobs", "words", "words_data", "words_idx", "words_vocabulary"}


def transcript(memory_id: str, thread_name: str, said: str) -> list[EvidenceEvent]:
    thread = replace(THREAD, session=thread_name)
    call = f"call-{thread_name}"

    def at(second: float, payload: object) -> EvidenceEvent:
        return event(payload, thread=thread, after_s=second)  # type: ignore[arg-type]

    return [
        at(0, TextSpoken(SliceKind.USER_TEXT, "walrusquestion: which port?")),
        replace(at(1, RecallCalled(call, "recall")), event_id=call),
        replace(at(2, ToolAnswered(call, Shown(ShownState.IDS, (memory_id,)), "quokkaport 8123-zz")), event_id=call),
        at(3, TextSpoken(SliceKind.AGENT_TEXT, f"narwhalanswer {said}")),
        at(4, ToolCalled(f"t-{thread_name}", "Bash", "puffincommand --port 8123")),
        at(5, ToolAnswered(f"t-{thread_name}", Shown(ShownState.NOTHING), "lemuroutput")),
    ]


def found_in(folder: Path, marks: list[bytes]) -> dict[str, list[bytes]]:
    contents = {path.name: path.read_bytes().lower() for path in folder.iterdir() if path.is_file()}
    return {name: hits for name, text in contents.items() if (hits := [mark for mark in marks if mark in text])}


def texts_outside_memories(path: Path) -> list[str]:
    """Return every table that holds a text of the memories although it is none of those that must."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    holding = [
        table
        for table in tables
        if table not in CONTENT_TABLES
        and any(
            mark in (value if isinstance(value, bytes) else str(value).encode()).lower()
            for row in connection.execute(f'SELECT * FROM "{table}"')
            for value in row
            for mark in (*MEMORY_MARKS, *TALK_MARKS)
        )
    ]
    connection.close()
    return sorted(holding)


async def test_no_text_is_left_after_judging(tmp_path: Path) -> None:
    """With verdicts, late talk, a case that fails, hygiene and figures; searched with the store open and closed."""
    folder, log_path = tmp_path / "data", tmp_path / "logs" / "sidecar.log"
    folder.mkdir()
    log_path.parent.mkdir()
    clock = SetClock()
    store = open_store("sqlite", folder, clock)
    collect = CollectEvidence(evidence=store, redactor=SecretRedactor(), clock=clock)
    policy = JudgePolicy(max_attempts=1)
    judging = JudgeUsefulness(store=store, judge=PhraseJudge(), clock=clock, policy=policy)
    hygiene = RunHygiene(store=store, judging=store, insights=store, clock=clock, policy=HygienePolicy())
    with logging_to(log_path, level="debug"):
        memory = new_memory("quokkaport is 8123-zz")
        memory_id = (await store.add(memory)).memory_id
        key = (await store.get(OWNER, memory_id)).key
        await store.record_recall(replace(recall_of([memory_id]), candidates=(RankedCandidate(key, 0.9, 1.0, True),)))
        for name, said in (("one", "used=0.9"), ("two", "misled=0.9"), ("three", "ocelotfailure out of order")):
            await collect.run(OWNER, batch(*transcript(memory_id, name, said)))
        assert found_in(folder, TALK_MARKS)
        clock.advance(timedelta(minutes=6))
        while await judging.work_off_batch():
            pass
        late = event(TextSpoken(SliceKind.AGENT_TEXT, "ibexlate"), thread=replace(THREAD, session="one"), after_s=400)
        await collect.run(OWNER, batch(late))
        clock.advance(timedelta(minutes=6))
        while await judging.work_off_batch():
            pass
        # What was given up is kept for a week, should somebody want it judged again.
        assert await store.retry_parked_judge_jobs(OWNER) == 1
        clock.advance(timedelta(days=8))
        await judging.drop_texts()
        await hygiene.run_once()
        await settle(store)
        metrics = await ExportMetrics(insights=store, clock=clock).run(OWNER)
    assert len(await store.verdicts(OWNER, memory_id)) == 2
    assert judging.failures == 1
    marks = [*MEMORY_MARKS, *TALK_MARKS]
    assert found_in(folder, TALK_MARKS) == {}
    assert found_in(log_path.parent, marks) == {}
    assert not [mark for mark in marks if mark in repr(metrics).encode()]
    assert texts_outside_memories(folder / "memories.db") == []
    await store.close()
    assert found_in(folder, TALK_MARKS) == {}
