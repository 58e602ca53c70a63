"""What every activity and maintenance store must do."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from sidecar.domain.confidence import ValidationKind
from sidecar.domain.context import ContextKind
from sidecar.domain.disputes import Challenge, Resolution, Verdict
from sidecar.domain.edges import EdgeOrigin, NewEdge
from sidecar.domain.evidence import Channel, MemoryCited, RecallCalled, Shown, ShownState, ToolAnswered
from sidecar.domain.exchange import EdgeRecord, ExportRecord, Imported, MemoryRecord, ReportRecord
from sidecar.domain.exchange_lines import decode_record, encode_record
from sidecar.domain.file_activity import FileAction, FileEvent, RecentFile, RecentFilesQuery
from sidecar.domain.health_report import ContradictionRow, EmbedJobRow, MemoryRow
from sidecar.domain.judge_jobs import DueRule
from sidecar.domain.judgement import Verdict as JudgeVerdict
from sidecar.domain.maintenance import HealthRow
from sidecar.domain.memory import Link, MemoryState, MemoryType, Relation
from sidecar.domain.metrics import window_of
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.validation import Report
from sidecar.domain.words import tokenise
from tests.store_builders import (
    ALL,
    EVERYTHING,
    NOW,
    OWNER,
    SetClock,
    Store,
    batch,
    event,
    new_memory,
    next_memory_id,
    open_store,
    recall_of,
    settle,
)

MODEL = ModelFingerprint("tiny", "0" * 64, 4, "mean", True, 256, "float32")
KINDS = ("in-memory", "sqlite")
SUPERSEDES = Relation.SUPERSEDES


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> AsyncIterator[Store]:
    opened = open_store(request.param, tmp_path, clock)
    yield opened
    await opened.close()


@pytest.fixture(params=KINDS)
async def other_store(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> AsyncIterator[Store]:
    folder = tmp_path / "other"
    folder.mkdir()
    opened = open_store(request.param, folder, clock)
    yield opened
    await opened.close()


async def stored(store: Store, content: str, **fields: object) -> str:
    return (await store.add(new_memory(content, **fields))).memory_id  # type: ignore[arg-type]


async def exported(store: Store, *, forgotten: bool = True, owner: str = OWNER, page_size: int = 7) -> list[str]:
    lines: list[str] = []
    total = 0
    async for page in store.export_records(owner, is_including_forgotten=forgotten, page_size=page_size):
        assert 0 < len(page.records) <= page_size
        lines += [encode_record(record) for record in page.records]
        assert page.done == len(lines)
        total = page.total
    assert total == len(lines)
    return lines


def decoded(lines: Sequence[str]) -> list[ExportRecord]:
    records = [decode_record(line) for line in lines]
    return [record for record in records if record is not None]


async def imported(store: Store, lines: Sequence[str], *, at_once: int = 5) -> list[Imported]:
    records = decoded(lines)
    outcomes = [
        await store.import_records(OWNER, records[start : start + at_once]) for start in range(0, len(records), at_once)
    ]
    await store.finish_import(OWNER)
    return outcomes


async def fill(store: Store, clock: SetClock) -> None:
    """Store something of everything, in every state."""
    rule = await stored(store, "never push", type=MemoryType.CONVENTION, confidence=0.85)
    old, said = await stored(store, "port 80"), await stored(store, "said before")
    new = await stored(store, "port 8080 😀", metadata={"a": [1, None, 2**70]}, client="codex", session="s")
    await stored(store, "theirs", owner="bob")
    await store.add(new_memory("newest", links=[Link(SUPERSEDES, new), Link(Relation.DERIVED_FROM, old)]))
    await store.put_edge(OWNER, NewEdge(new, old, SUPERSEDES, 0.5))
    key = {each: (await store.get(OWNER, each)).key for each in (rule, said)}
    await store.auto_link(key[rule], [(key[said], 0.75)])
    for number, kind in enumerate((ValidationKind.APPLIED, ValidationKind.SUCCEEDED, ValidationKind.FAILED)):
        texts = {"context": "running", "error": "E\n1"}
        await store.record_validation(OWNER, Report(rule, kind, NOW + timedelta(seconds=number), **texts))  # type: ignore[arg-type]
    await store.record_recall(recall_of([rule, said], at=NOW + timedelta(minutes=1)))
    await store.record_recall(recall_of([rule], channel=Channel.BRIEFING, context_kind=ContextKind.TASK))
    await settle(store)
    first, _ = await store.open_dispute(OWNER, Challenge(said, "no", "because", NOW, "codex", "s"))
    await store.open_dispute(OWNER, Challenge(said, "never", "", NOW))
    await store.resolve_dispute(OWNER, first.id, Verdict(Resolution.SUPERSEDE, rule), at=NOW + timedelta(hours=1))
    await store.promote(OWNER, rule, at=NOW)
    # Said again after it was replaced, and what replaced it forgotten: superseded without an edge that says so.
    tabs = await stored(store, "tabs")
    spaces = (await store.add(new_memory("spaces", links=[Link(SUPERSEDES, tabs)]))).memory_id
    again = await stored(store, "tabs")
    await store.forget(OWNER, [spaces], is_forced=False, is_purge=False)
    assert (await store.get(OWNER, tabs)).superseded_by == again
    gone, half_gone = await stored(store, "gone"), await stored(store, "half gone")
    await store.add(new_memory("heir", links=[Link(SUPERSEDES, half_gone)]))
    await store.forget(OWNER, [gone, half_gone], is_forced=False, is_purge=False)
    shown = Shown(ShownState.IDS, (rule, said))
    spoken = (RecallCalled("c", "recall"), ToolAnswered("c", shown, ""), MemoryCited(rule))
    await store.apply_batch(OWNER, batch(*(event(one) for one in spoken)), at=NOW + timedelta(minutes=2))
    clock.advance(timedelta(hours=2))
    for job in await store.claim_judge_jobs(DueRule(timedelta(), timedelta()), now=clock.now(), limit=9):
        verdict = JudgeVerdict(job.key.memory_id, used=0.9, relevant=0.75, misled=0.1)
        await store.save_verdicts([(job, verdict)], judge="local-2", now=clock.now())
    event_on_file = FileEvent("a/b.py", FileAction.EDIT, clock.now(), "s", "app")
    await store.add_file_activity(OWNER, event_on_file, client="codex", metadata={"lines": [1, "é"]})


# --- activity ---


async def test_recent_files_are_one_a_file_with_what_was_done_last(store: Store, clock: SetClock) -> None:
    """Latest first, of two things at once the later one, and only within the days asked for."""

    async def touched(path: str, action: FileAction, *, hours: int, project: str = "app", owner: str = OWNER) -> int:
        event = FileEvent(path, action, NOW - timedelta(hours=hours), "s", project)
        return await store.add_file_activity(owner, event, client="codex", metadata={})

    ids = [
        await touched("a.py", FileAction.READ, hours=3),
        await touched("a.py", FileAction.EDIT, hours=3),
        await touched("a.py", FileAction.WRITE, hours=5),
        await touched("b.py", FileAction.READ, hours=3),
        await touched("c.md", FileAction.DELETE, hours=1, project="web"),
        await touched("old", FileAction.READ, hours=24 * 15),
    ]
    await touched("theirs", FileAction.READ, hours=0, owner="bob")
    assert ids == sorted(set(ids))
    three_hours_ago = NOW - timedelta(hours=3)
    a, b = (
        RecentFile("a.py", FileAction.EDIT, three_hours_ago, 3),
        RecentFile("b.py", FileAction.READ, three_hours_ago, 1),
    )
    c = RecentFile("c.md", FileAction.DELETE, NOW - timedelta(hours=1), 1)
    assert await store.recent_files(OWNER, RecentFilesQuery()) == (c, a, b)
    assert await store.recent_files(OWNER, RecentFilesQuery(limit=1)) == (c,)
    assert await store.recent_files(OWNER, RecentFilesQuery("app")) == (a, b)
    assert [file.path for file in await store.recent_files(OWNER, RecentFilesQuery(days=15))][-1] == "old"
    clock.advance(timedelta(days=14))
    assert await store.recent_files(OWNER, RecentFilesQuery()) == ()


async def test_activity_that_cannot_be_asked_for_any_more_goes(store: Store, clock: SetClock) -> None:
    """A log that only grows would outweigh the memories."""
    event = FileEvent("a.py", FileAction.READ, NOW)
    await store.add_file_activity(OWNER, event, client="", metadata={})
    await store.add_file_activity(OWNER, replace(event, at=NOW + timedelta(days=366)), client="", metadata={})
    assert len(await exported(store)) == 1


# --- health ---


async def rows_of(store: Store, scope: NamespaceScope = EVERYTHING) -> list[HealthRow]:
    return [row async for page in store.health_rows(OWNER, scope) for row in page]


async def test_health_rows_tell_of_active_memories_and_their_last_outcome(store: Store) -> None:
    """Being acted upon is no outcome; superseded, forgotten and others' memories need no look."""
    await store.set_model(MODEL)
    plain = await stored(store, "plain")
    rule = await stored(store, "rule", type=MemoryType.GOLDEN_RULE)
    gone = await stored(store, "gone")
    await stored(store, "theirs", owner="bob")
    await store.forget(OWNER, [gone], is_forced=False, is_purge=False)
    keys = [(await store.get(OWNER, memory_id)).key for memory_id in (plain, rule)]
    for after_s, kind in ((2, ValidationKind.FAILED), (1, ValidationKind.SUCCEEDED), (3, ValidationKind.APPLIED)):
        report = Report(plain, kind, NOW + timedelta(seconds=after_s), adjustment=0.0)
        await store.record_validation(OWNER, report)
    await store.save_embeddings(MODEL.id, [(keys[1], np.eye(1, 4, dtype=np.float32))])
    await store.fail_job(keys[0], reason="broken", next_try_at=None)
    assert await rows_of(store) == [
        MemoryRow(plain, 0.3, False, NOW, NOW + timedelta(seconds=2)),
        MemoryRow(rule, 0.3, True, NOW, None),
        EmbedJobRow(plain, is_parked=True, queued_at=NOW),
    ]


async def test_health_rows_tell_whether_a_contradiction_is_open(store: Store, clock: SetClock) -> None:
    """It is settled by a successor, by forgetting one, or by a person who ended a dispute about one since."""
    ids = [await stored(store, str(number)) for number in range(8)]
    pairs = list(zip(ids[::2], ids[1::2], strict=True))
    dispute, _ = await store.open_dispute(OWNER, Challenge(pairs[3][1], "which?", "", NOW))
    early, _ = await store.open_dispute(OWNER, Challenge(pairs[0][1], "which?", "", NOW))
    await store.resolve_dispute(OWNER, early.id, Verdict(Resolution.KEEP), at=NOW - timedelta(seconds=1))
    for source, target in pairs:
        await store.put_edge(OWNER, NewEdge(source, target, Relation.CONTRADICTS))
    await store.put_edge(OWNER, NewEdge(pairs[1][1], pairs[1][0], SUPERSEDES))
    await store.forget(OWNER, [pairs[2][0]], is_forced=False, is_purge=False)
    await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.KEEP), at=NOW)
    rows = [row for row in await rows_of(store) if isinstance(row, ContradictionRow)]
    assert rows == [
        ContradictionRow(*pairs[0], NOW),
        ContradictionRow(*pairs[1], NOW, is_between_active=False, has_successor_edge=True),
        ContradictionRow(*pairs[2], NOW, is_between_active=False),
        ContradictionRow(*pairs[3], NOW, is_resolved=True),
    ]
    assert [row.is_open for row in rows] == [True, False, False, False]


async def test_health_rows_keep_to_the_scope(store: Store) -> None:
    """A project's health is not that of the others; an edge belongs to both of its ends'."""
    app, web = await stored(store, "app"), await stored(store, "web", namespace="project:web")
    await store.put_edge(OWNER, NewEdge(app, web, Relation.CONTRADICTS))
    for namespace, memory_id in (("project:app", app), ("project:web", web)):
        rows = await rows_of(store, NamespaceScope((namespace,)))
        assert [row.memory_id for row in rows if not isinstance(row, ContradictionRow)] == [memory_id, memory_id]
        assert sum(isinstance(row, ContradictionRow) for row in rows) == 1
    assert await rows_of(store, NamespaceScope(("global",))) == []


# --- export and import ---


async def test_round_trip_is_identical_between_any_two_stores(
    store: Store, other_store: Store, clock: SetClock
) -> None:
    """Line for line: states, times, pointers, edges with their origins, reports, disputes, use, files."""
    await fill(store, clock)
    lines = await exported(store)
    assert {line.split('"')[3] for line in lines} == {
        "memory", "edge", "report", "dispute", "delivery", "use", "verdict", "claim", "multiplier", "file",
    }  # fmt: skip
    outcomes = await imported(other_store, lines)
    assert [outcome.refused for outcome in outcomes if outcome.refused] == []
    assert sum(outcome.imported for outcome in outcomes) == len(lines)
    assert await exported(other_store, page_size=1000) == lines
    assert await other_store.check_integrity() == ()


async def test_imported_history_comes_to_the_same_figures(store: Store, other_store: Store, clock: SetClock) -> None:
    """Verdicts that found nothing are counted, too; when each thing was known and settled comes along."""
    await fill(store, clock)
    await imported(other_store, await exported(store))
    window = window_of(3, now=clock.now())
    before, after = [await each.metric_counts(OWNER, window) for each in (store, other_store)]
    assert (before.verdicts, before.relevant) == (2, 2)
    of_deliveries = ("surfaced", "used", "recurring", "judged", "relevant", "verdicts")
    assert {name: getattr(after, name) for name in of_deliveries} == {
        name: getattr(before, name) for name in of_deliveries
    }
    memories = [record for record in decoded(await exported(store)) if isinstance(record, MemoryRecord)]
    for memory in memories:
        assert await other_store.usage_events(OWNER, memory.id) == await store.usage_events(OWNER, memory.id)
        assert await other_store.verdicts(OWNER, memory.id) == await store.verdicts(OWNER, memory.id)


async def test_importing_again_adds_nothing(store: Store, clock: SetClock) -> None:
    """Into the store it came from, or twice into another: everything is there already."""
    await fill(store, clock)
    lines = await exported(store)
    for _ in range(2):
        outcomes = await imported(store, lines)
        assert sum(outcome.unchanged for outcome in outcomes) == len(lines)
        assert not any(outcome.changed or outcome.refused for outcome in outcomes)
    assert await exported(store) == lines


async def test_imported_memories_are_whole_memories(store: Store, other_store: Store) -> None:
    """Found by words, waiting for a vector, known to the catalog, with states that can be undone."""
    old, gone = await stored(store, "port eighty"), await stored(store, "gone")
    new = await store.add(new_memory("port other", links=[Link(SUPERSEDES, old)]))
    await store.forget(OWNER, [gone], is_forced=False, is_purge=False)
    await other_store.set_model(MODEL)
    await stored(other_store, "one before")
    outcomes = await imported(other_store, await exported(store), at_once=100)
    assert {row.key: row for row in outcomes[0].changed} == {row.key: row for row in (await other_store.catalog())[1:]}
    assert (await other_store.job_counts()).pending == 4
    query = await other_store.word_query(tokenise("eighty"))
    (hit,) = await other_store.search_words(query, ALL, limit=5)
    assert (await other_store.get(OWNER, old)).key == hit.key
    restored, _ = await other_store.restore(OWNER, gone)
    assert restored.content == "gone"
    await other_store.forget(OWNER, [new.memory_id], is_forced=False, is_purge=False)
    assert (await other_store.get(OWNER, old)).state is MemoryState.ACTIVE


async def test_forgotten_memories_can_be_left_out(store: Store, other_store: Store, clock: SetClock) -> None:
    """With all that hangs on them, so that the import lacks nothing it refers to."""
    await fill(store, clock)
    lines = await exported(store, forgotten=False)
    outcomes = await imported(other_store, lines)
    assert not any(outcome.refused for outcome in outcomes)
    memories = [record for record in decoded(lines) if isinstance(record, MemoryRecord)]
    assert MemoryState.FORGOTTEN not in {record.state for record in memories}
    assert await exported(other_store) == lines


async def test_exports_are_the_owners_own(store: Store, clock: SetClock) -> None:
    """Another owner's id cannot be taken over by importing it either."""
    await fill(store, clock)
    lines = await exported(store, owner="bob")
    (record,) = decoded(lines)
    outcome = await store.import_records(OWNER, [record])
    assert (outcome.imported, outcome.unchanged, [place for place, _ in outcome.refused]) == (0, 0, [0])
    assert await exported(store, owner="carol") == []


async def test_text_that_is_said_already_is_imported_as_superseded(store: Store, other_store: Store) -> None:
    """Two active memories must not say the same; what refers to the imported one still finds it."""
    twin = await stored(other_store, "use tabs")
    said, beside = await stored(store, "use tabs"), await stored(store, "beside")
    await store.put_edge(OWNER, NewEdge(said, beside, Relation.CAUSED_BY))
    await imported(other_store, await exported(store))
    memory = await other_store.get(OWNER, said)
    assert (memory.state, memory.superseded_by) == (MemoryState.SUPERSEDED, twin)
    assert [edge.source_id for edge in await other_store.edges(OWNER, beside)] == [said]
    assert await other_store.check_integrity() == ()


async def test_imported_edge_supersedes_what_was_there(store: Store, other_store: Store) -> None:
    """A target that the other store had active stands aside now."""
    old = new_memory("port 80")
    for each in (store, other_store):
        await each.add(old)
    new = await store.add(new_memory("port 8080", links=[Link(SUPERSEDES, old.memory.id)]))
    await imported(other_store, await exported(store))
    memory = await other_store.get(OWNER, old.memory.id)
    assert (memory.state, memory.superseded_by) == (MemoryState.SUPERSEDED, new.memory_id)


async def test_unimportable_records_are_refused_one_by_one(store: Store, other_store: Store) -> None:
    """Each with its place and why; the others are taken."""
    a, b = await stored(store, "a"), await stored(store, "b")
    await store.put_edge(OWNER, NewEdge(a, b, SUPERSEDES))
    records = decoded(await exported(store))
    missing = next_memory_id()
    edge = EdgeRecord(a, missing, Relation.RELATES_TO, 1.0, EdgeOrigin.DECLARED, NOW)
    bad: list[ExportRecord] = [
        edge,
        replace(edge, target_id=a),
        replace(edge, source_id=b, target_id=a, relation=SUPERSEDES),
        ReportRecord("u", missing, ValidationKind.APPLIED, False, "", "", "", "", NOW),
    ]
    outcome = await other_store.import_records(OWNER, [*records, *bad, replace(edge, source_id=b, target_id=a)])
    assert (outcome.imported, outcome.unchanged) == (len(records) + 1, 0)
    places = [place - len(records) for place, _ in outcome.refused]
    assert places == [0, 1, 2, 3]
    assert missing in outcome.refused[0][1]


async def test_memory_whose_successor_never_came_is_settled(store: Store, other_store: Store) -> None:
    """A file that was cut short must not hide a memory behind one that is not there."""
    old = await stored(store, "old")
    await store.add(new_memory("new", links=[Link(SUPERSEDES, old)]))
    first, *_ = decoded(await exported(store))
    await other_store.import_records(OWNER, [first])
    assert (await other_store.get(OWNER, old)).state is MemoryState.SUPERSEDED
    assert [row.state for row in await other_store.finish_import(OWNER)] == [MemoryState.ACTIVE]
    assert (await other_store.get(OWNER, old)).state is MemoryState.ACTIVE
    assert await other_store.finish_import(OWNER) == ()


async def test_what_is_stored_during_an_export_is_left_out(store: Store) -> None:
    """Nothing in the export refers to what is not in it."""
    ids = [await stored(store, f"memory {number}") for number in range(6)]
    records: list[ExportRecord] = []
    async for page in store.export_records(OWNER, is_including_forgotten=True, page_size=2):
        records += page.records
        late = await stored(store, f"late {len(records)}")
        await store.put_edge(OWNER, NewEdge(ids[0], late, Relation.RELATES_TO))
    assert [record.id for record in records if isinstance(record, MemoryRecord)] == ids
    assert len(records) == len(ids)


async def test_purge_takes_what_files_quote_along(store: Store) -> None:
    """Metadata is anything a caller attached, so it may hold a memory's text."""
    doomed = await stored(store, 'the "pass\\word"\nis swordfish')
    event = FileEvent("a.py", FileAction.READ, NOW)
    quoting = {"note": 'said: the "pass\\word"\nis swordfish!'}
    await store.add_file_activity(OWNER, event, client="", metadata=quoting)
    await store.add_file_activity(OWNER, event, client="", metadata={"note": "kept"})
    await store.forget(OWNER, [doomed], is_forced=False, is_purge=True)
    notes = [line.partition('"metadata":')[2].partition(',"at"')[0] for line in await exported(store)]
    assert notes == ["{}", '{"note":"kept"}']
