"""The parts of the watch that decide what is read when, and what becomes of it."""

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from client_plugins.claude_code import PLUGIN
from client_plugins.kit import plugin as plugins
from client_plugins.kit.blindness import Blindness
from client_plugins.kit.catalog import Catalog, Look
from client_plugins.kit.coverage import Coverage
from client_plugins.kit.plugin import installed_plugins, select_plugins
from client_plugins.kit.read_queue import ReadQueue
from client_plugins.kit.scanner import FoundFile, WatchedRoot, find_transcripts, found_at, resolved_roots
from client_plugins.kit.sink import SidecarSink
from client_plugins.kit.wire import batch_request, cursor_value
from sidecar.api.v1 import evidence_service_pb2 as pb
from sidecar.domain.evidence import (
    EvidenceBatch,
    EvidenceEvent,
    EvidencePayload,
    RecallCalled,
    RememberCalled,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
    TranscriptCursor,
    UnknownReason,
)
from sidecar.errors import DeadlineError, InvalidInputError, UnavailableError

CURSOR = TranscriptCursor(
    "claude-code", "/p/s.jsonl", "1:2", 10, "ab", 1, 1, 3, (("results", 2), ("skipped.blank", 1)), "carried"
)
THREAD = SessionThread("claude-code", "s", "a", "shop", "2.1")


# --- the queue ---------------------------------------------------------------------------------------------------


def test_live_files_go_first_but_old_ones_get_their_turn() -> None:
    """Whoever works now sees it at once; yet a busy day must not keep the past unread for ever."""
    queue: ReadQueue[str] = ReadQueue()
    queue.add_old(["old 1", "old 2"])
    taken = []
    for number in range(8):
        queue.add_live(f"live {number}")
        taken.append(queue.take()[0])
    assert taken[:3] == ["live 0", "live 1", "live 2"]
    assert [item for item in taken if item.startswith("old")] == ["old 1", "old 2"]


def test_files_with_more_to_read_take_turns() -> None:
    """One huge file must not hold up the others."""
    queue: ReadQueue[str] = ReadQueue()
    queue.add_old(["huge", "small"])
    taken = []
    for _ in range(4):
        item, is_live = queue.take()
        taken.append(item)
        queue.put_back(item, is_live=is_live)
    assert taken == ["huge", "small", "huge", "small"]
    queue.add_live("huge")
    assert len(queue) == 2


# --- events that do not come -------------------------------------------------------------------------------------


def test_changes_without_events_prove_blindness_at_the_second_time() -> None:
    """Once may be a coincidence, and watching anew may help."""
    blindness, path = Blindness(), Path("s")
    assert not blindness.grows({path})
    assert blindness.grows({path})
    assert not blindness.is_proven
    assert blindness.grows(set())
    assert blindness.is_proven


def test_events_may_come_before_or_after_the_scan() -> None:
    """A scan and an event of the same change race with each other."""
    blindness, path = Blindness(), Path("s")
    blindness.noticed({path})
    assert not blindness.grows({path})
    assert not blindness.grows({path})
    blindness.noticed({path})
    assert not blindness.grows(set())


# --- the catalog -------------------------------------------------------------------------------------------------


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


@pytest.fixture
def root(tmp_path: Path) -> WatchedRoot:
    """A root with one transcript."""
    (tmp_path / "-p").mkdir()
    (tmp_path / "-p" / "s.jsonl").write_bytes(b"{}\n")
    return WatchedRoot(PLUGIN, tmp_path.resolve())


def _catalog(*cursors: TranscriptCursor, clock: Clock | None = None, oldest_mtime_ns: int = 0) -> Catalog:
    return Catalog(PLUGIN, cursors, project_of=str, oldest_mtime_ns=oldest_mtime_ns, now=clock or Clock())


def _scan(root: WatchedRoot, catalog: Catalog) -> list[tuple[str, Look]]:
    catalog.begin_scan()
    looks = [(found.file.path.name, catalog.look_at(found)) for found in find_transcripts(root, catalog.is_settled)]
    catalog.end_scan()
    return looks


def _found(root: WatchedRoot) -> FoundFile:
    found = found_at(root, root.path / "-p" / "s.jsonl")
    assert found is not None
    return found


def test_a_file_is_read_when_new_and_when_changed(root: WatchedRoot) -> None:
    """In between, it costs one look."""
    catalog = _catalog()
    assert _scan(root, catalog) == [("s.jsonl", Look.CHANGED)]
    assert _scan(root, catalog) == []
    (root.path / "-p" / "s.jsonl").write_bytes(b"{}\n{}\n")
    assert _scan(root, catalog) == [("s.jsonl", Look.CHANGED)]


def test_a_file_that_failed_is_tried_again_later_and_later(root: WatchedRoot) -> None:
    """It must not keep us busy, nor be given up."""
    clock = Clock()
    catalog = _catalog(clock=clock)
    file = _found(root).file
    _scan(root, catalog)
    waits = []
    for _ in range(9):
        catalog.note_failure(file)
        begun = clock.now
        while _scan(root, catalog) != [("s.jsonl", Look.RETRY)]:
            clock.now += 30
        waits.append(clock.now - begun)
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    catalog.note_cursor(file, CURSOR)
    assert _scan(root, catalog) == []


def test_a_moved_file_takes_its_cursor_along(root: WatchedRoot) -> None:
    """Unless something is still at the old path: then this is another name of the file, or a reused number."""
    found = _found(root)
    gone = dataclasses.replace(CURSOR, path="/nowhere/s.jsonl", file_id=found.state.file_id, offset=3)
    catalog = _catalog(gone)
    catalog.look_at(found)
    assert catalog.tail_of(found.file).offset == 3
    there = root.path / "-p" / "other.jsonl"
    there.write_bytes(b"")
    catalog = _catalog(dataclasses.replace(gone, path=str(there)))
    catalog.look_at(found)
    assert catalog.tail_of(found.file).offset == 0


def test_old_files_are_left_unread_unless_they_were_begun(root: WatchedRoot) -> None:
    """What was half read is finished, whatever its age."""
    found = _found(root)
    limit = found.state.mtime_ns + 1
    assert _catalog(oldest_mtime_ns=limit).look_at(found) is Look.SETTLED
    begun = dataclasses.replace(CURSOR, path=str(found.file.path))
    assert _catalog(begun, oldest_mtime_ns=limit).look_at(found) is Look.CHANGED


# --- the scan ----------------------------------------------------------------------------------------------------


def test_a_scan_finds_transcripts_and_nothing_else(tmp_path: Path) -> None:
    """Sub-agents too; no links, pipes or folders, and not what lies beside transcripts."""
    for name in ("-p/s.jsonl", "-p/s/subagents/agent-a.jsonl", "-p/s/tool-results/x.jsonl", "-p/s/x.txt", "y.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "-p" / "link.jsonl").symlink_to(tmp_path / "y.jsonl")
    (tmp_path / "-q").symlink_to(tmp_path / "-p")
    (tmp_path / "-p" / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "-p" / "pipe.jsonl")
    root = WatchedRoot(PLUGIN, tmp_path.resolve())
    found = {file.file.path.name for file in find_transcripts(root, lambda path, status: False)}
    assert found == {"s.jsonl", "agent-a.jsonl"}
    assert found_at(root, root.path / "-p" / "link.jsonl") is None
    assert found_at(root, root.path / "-p" / "gone.jsonl") is None
    assert found_at(root, root.path.with_name(root.path.name + "-twin") / "-p" / "s.jsonl") is None


def test_a_root_reached_by_two_paths_is_one(tmp_path: Path) -> None:
    """Sessions must not appear twice because of a link (B62)."""
    (tmp_path / "real" / "projects").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (root,) = resolved_roots(PLUGIN, {"CLAUDE_CONFIG_DIR": str(tmp_path / "link")})
    assert root.path == (tmp_path / "real" / "projects").resolve()
    assert resolved_roots(PLUGIN, {"CLAUDE_CONFIG_DIR": str(tmp_path / "none")}) == []


# --- plugins -----------------------------------------------------------------------------------------------------


def test_the_built_in_client_is_found_by_name() -> None:
    """Also from a source tree, where no entry point is installed."""
    assert select_plugins(["claude-code"]) == [PLUGIN]
    assert PLUGIN in select_plugins([])
    with pytest.raises(InvalidInputError, match="claude-code"):
        select_plugins(["no-such"])


def test_a_plugin_that_fails_to_load_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Third parties ship theirs, with all the faults there are."""
    ours = "client_plugins.claude_code:PLUGIN"
    targets = {"a": "no.such.module:PLUGIN", "b": "json:no_such", "c": "json:dumps", "d": ours, "claude-code": ours}
    monkeypatch.setattr(plugins, "_targets", lambda: targets)
    assert installed_plugins() == {"claude-code": PLUGIN}
    assert len(caplog.records) == 4


def test_nobody_takes_the_place_of_a_built_in_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that calls itself `claude-code` too would otherwise read all sessions its own way."""
    impostor = EntryPoint("claude-code", "impostor:PLUGIN", plugins.ENTRY_POINT_GROUP)
    monkeypatch.setattr("client_plugins.kit.plugin.entry_points", lambda group: [impostor])
    assert plugins._targets()["claude-code"] == "client_plugins.claude_code:PLUGIN"


# --- the wire ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        TextSpoken(SliceKind.AGENT_TEXT, "hello"),
        TextSpoken(SliceKind.USER_TEXT, "hello"),
        RecallCalled("c", "recall"),
        RememberCalled("c"),
        ToolCalled("c", "Bash", "command: ls"),
        ToolAnswered("c", Shown(ShownState.IDS, ("mem_1",)), "text"),
        ToolAnswered("c", Shown(ShownState.NOTHING), ""),
        ToolAnswered("c", Shown(ShownState.CANNOT_RECORD), ""),
        *(ToolAnswered("c", Shown(ShownState.UNKNOWN, reason=reason), "") for reason in UnknownReason),
    ],
)
def test_every_payload_has_its_message(payload: EvidencePayload) -> None:
    """What the reader says arrives as it was said."""
    event = EvidenceEvent("e", THREAD, datetime(2026, 1, 2, tzinfo=UTC), payload)
    (message,) = batch_request(EvidenceBatch(CURSOR, (event,)), 7).events
    assert message.thread.project == "shop"
    assert message.time.ToDatetime(UTC) == event.at
    sent = getattr(message, str(message.WhichOneof("payload")))
    for name in ("call_id", "tool", "name", "text"):
        assert getattr(sent, name, None) == getattr(payload, name, None)
    if isinstance(payload, TextSpoken):
        assert message.WhichOneof("payload") == payload.kind
    if isinstance(payload, ToolAnswered):
        assert message.tool_answered.shown.WhichOneof("state") == payload.shown.state
        assert tuple(message.tool_answered.shown.ids.memory_ids) == payload.shown.memory_ids
        reason = pb.UnknownReason.Name(message.tool_answered.shown.unknown.reason)
        assert reason == f"UNKNOWN_REASON_{payload.shown.reason or 'unspecified'}".upper()


def test_a_cursor_comes_back_as_it_was_sent() -> None:
    """The next watcher goes on from exactly there."""
    assert cursor_value(batch_request(EvidenceBatch(CURSOR, ()), 1).cursor) == CURSOR


# --- the sink ----------------------------------------------------------------------------------------------------


class Calls:
    """A stream that answers as a test says: with an id, by ending, or not at all."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)
        self.streams = 0

    async def stream_evidence(
        self, requests: AsyncIterator[pb.StreamEvidenceRequest]
    ) -> AsyncIterator[pb.StreamEvidenceResponse]:
        """Answer each request with the next answer; None ends the stream, a negative one never comes."""
        self.streams += 1
        async for request in requests:
            answer = self.answers.pop(0) if self.answers else request.batch_id
            if answer is None:
                return
            if answer < 0:
                await asyncio.Event().wait()
            yield pb.StreamEvidenceResponse(batch_id=answer or request.batch_id, new_events=2)

    async def list_cursors(self, request: pb.ListCursorsRequest) -> pb.ListCursorsResponse:
        """Return none."""
        return pb.ListCursorsResponse()


@pytest.mark.parametrize(("answer", "error"), [(None, UnavailableError), (99, UnavailableError), (-1, DeadlineError)])
async def test_a_batch_that_is_not_acknowledged_is_an_error_and_the_next_one_goes_through(
    answer: int | None, error: type[Exception]
) -> None:
    """Whoever sent it keeps its place and sends it again, over a new stream."""
    calls = Calls(0, answer)
    sink = SidecarSink(calls, acknowledged_within_s=0.05)
    batch = EvidenceBatch(CURSOR, ())
    assert (await sink.send(batch)).new_events == 2
    with pytest.raises(error):
        await sink.send(batch)
    assert (await sink.send(batch)).new_events == 2
    assert calls.streams == 2
    await sink.close()


# --- the counters ------------------------------------------------------------------------------------------------


def test_counters_go_on_from_a_cursor() -> None:
    """They are about the whole file, however often reading was interrupted."""
    coverage = Coverage(CURSOR.skipped)
    coverage.skip("blank")
    assert coverage.as_pairs() == (("results", 2), ("skipped.blank", 2))
