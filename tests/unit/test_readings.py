"""Requests to read a transcript now: who is told, which paths are let through, and which sessions are our own."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from watchdog.observers.polling import PollingObserver

from client_plugins.claude_code import PLUGIN
from client_plugins.kit.own_sessions import OWN_SESSION, marking_own, without_own
from client_plugins.kit.plugin import TranscriptContext
from client_plugins.kit.project import project_name
from client_plugins.kit.readings import Readings, confined_path
from client_plugins.kit.scanner import WatchedRoot
from client_plugins.kit.watch import Watch, WatchSettings
from sidecar.domain.evidence import BatchOutcome, EvidenceBatch, TranscriptCursor
from sidecar.domain.reading_request import ReadingRequest
from sidecar.errors import CallFailedError, InvalidInputError, UnavailableError
from sidecar.testing.transcripts import ClaudeCodeTranscript
from sidecar.use_cases.request_reading import RequestReading

OWNER = "dev"


def _wanted(path: Path | str, client: str = "claude-code") -> ReadingRequest:
    return ReadingRequest(client, str(path), "s1")


# --- the sidecar's side --------------------------------------------------------------------------------------------


async def test_readers_are_told_of_their_clients_only() -> None:
    """A reader of one client has no use for another's files, nor one owner for another owner's."""
    reading = RequestReading()
    async with aclosing(reading.watch(OWNER, ["codex"])) as codex, aclosing(reading.watch(OWNER, [])) as every:
        first = asyncio.ensure_future(anext(codex)), asyncio.ensure_future(anext(every))
        await asyncio.sleep(0)
        assert reading.run(OWNER, _wanted("/a")) == 1
        assert reading.run(OWNER, _wanted("/b", "codex")) == 2
        assert reading.run("someone else", _wanted("/c")) == 0
        assert [(await one).transcript_path for one in first] == ["/b", "/a"]
    assert reading.run(OWNER, _wanted("/d")) == 0
    assert reading.requests == 4


async def test_a_reader_that_stands_still_loses_the_oldest_and_it_is_counted() -> None:
    """Its next scan finds the files; memory must not grow meanwhile."""
    reading = RequestReading()
    async with aclosing(reading.watch(OWNER, [])) as watch:
        first = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        for number in range(1_005):
            reading.run(OWNER, _wanted(f"/{number}"))
        assert reading.lost == 5
        assert (await first).transcript_path == "/5"


@pytest.mark.parametrize(("client", "path"), [("", "/a"), ("x" * 65, "/a"), ("a\nb", "/a"), ("codex", ""), ("c", "\0")])
def test_a_request_without_client_or_path_is_refused(client: str, path: str) -> None:
    """Nobody could do anything with it."""
    with pytest.raises(InvalidInputError):
        ReadingRequest(client, path)


# --- which paths ---------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> WatchedRoot:
    """The folder of Claude Code's transcripts, with one in it, and a file beside it that is nobody's."""
    folder = tmp_path / "projects"
    (folder / "-work").mkdir(parents=True)
    (folder / "-work" / "s1.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "secret.jsonl").write_text("{}\n", encoding="utf-8")
    return WatchedRoot(PLUGIN, folder)


def test_a_transcript_of_the_client_is_let_through(root: WatchedRoot, tmp_path: Path) -> None:
    """Also by a path with links in it, which are resolved."""
    path = root.path / "-work" / "s1.jsonl"
    assert confined_path(_wanted(path), [root]) == path
    (tmp_path / "link").symlink_to(root.path)
    assert confined_path(_wanted(tmp_path / "link" / "-work" / "s1.jsonl"), [root]) == path


def test_no_other_path_is_let_through(root: WatchedRoot, tmp_path: Path) -> None:
    """Neither what lies outside, by whatever detour, nor what is no regular file or no transcript (T11)."""
    project = root.path / "-work"
    (project / "escape.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (project / "loop.jsonl").symlink_to("loop.jsonl")
    (project / "folder.jsonl").mkdir()
    os.mkfifo(project / "pipe.jsonl")
    (project / "notes.txt").write_text("", encoding="utf-8")
    paths: list[Path | str] = [
        tmp_path / "secret.jsonl",
        f"{project}/../../secret.jsonl",
        project / "escape.jsonl",
        project / "loop.jsonl",
        project / "folder.jsonl",
        project / "pipe.jsonl",
        project / "notes.txt",
        project / "gone.jsonl",
        "projects/-work/s1.jsonl",
        f"//host{project}/s1.jsonl",
        r"\\host\share\s1.jsonl",
        "/dev/stdin",
        "/" + "a/" * 2_000,
    ]
    assert [path for path in paths if confined_path(_wanted(path), [root]) is not None] == []


def test_another_clients_folder_is_not_let_through(root: WatchedRoot) -> None:
    """A file is read by its own client's reader or by none."""
    assert confined_path(_wanted(root.path / "-work" / "s1.jsonl", "codex"), [root]) is None


@dataclass
class _ScriptedSink:
    """Gives requests, then fails as it is told to."""

    turns: list[tuple[Sequence[ReadingRequest], Exception | None]]
    asked: list[Sequence[str]] = field(default_factory=list)

    async def cursors(self, client: str) -> list[TranscriptCursor]:
        raise NotImplementedError(client)

    async def send(self, batch: EvidenceBatch) -> BatchOutcome:
        raise NotImplementedError(batch)

    async def reading_requests(self, clients: Sequence[str]) -> AsyncGenerator[ReadingRequest, None]:
        self.asked.append(clients)
        wanted, error = self.turns.pop(0)
        for one in wanted:
            yield one
        if error is not None:
            raise error


async def test_requests_are_followed_over_a_lost_connection(
    root: WatchedRoot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is refused is counted and logged, without a word of its path; what is not there yet is not refused."""
    path = root.path / "-work" / "s1.jsonl"
    sink = _ScriptedSink(
        [
            ([_wanted(tmp_path / "secret.jsonl"), _wanted(root.path / "late.jsonl")], UnavailableError("gone")),
            ([_wanted(path)], CallFailedError("no such method")),
        ]
    )
    readings = Readings(sink, ["claude-code"], roots=lambda: [root])
    read: list[Path] = []
    with caplog.at_level(logging.INFO):
        await readings.follow(read.append)
    assert (read, readings.refused, sink.asked) == ([path], 1, [["claude-code"]] * 2)
    assert "request to read refused" in caplog.text
    assert "secret" not in caplog.text + "".join(str(record.__dict__) for record in caplog.records)


# --- our own sessions ----------------------------------------------------------------------------------------------


def test_sessions_in_the_data_folder_are_no_evidence(tmp_path: Path) -> None:
    """An agent that the sidecar itself started would otherwise be watched by it (B54)."""
    home = tmp_path / "data"
    find = marking_own(lambda cwd: project_name(cwd, home=tmp_path), home)
    for cwd, is_own in ((home, True), (home / "logs", True), (tmp_path / "data-2", False), (tmp_path / "x", False)):
        transcript = ClaudeCodeTranscript(session="s1", seed="own", cwd=str(cwd))
        transcript.agent_text("I judge that it was used.")
        (line,) = transcript.to_bytes().splitlines(keepends=True)
        reading = without_own(PLUGIN.read_line(line, TranscriptContext("s1"), "", find))
        assert (not reading.events, reading.skipped == OWN_SESSION) == (is_own, is_own), cwd


# --- the watch -----------------------------------------------------------------------------------------------------


@dataclass
class _AskingSink:
    """Asks for one transcript as soon as something else has been read; knows no cursors."""

    path: Path
    sent: list[str] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def cursors(self, client: str) -> list[TranscriptCursor]:
        del client
        return []

    async def send(self, batch: EvidenceBatch) -> BatchOutcome:
        async with self.changed:
            self.sent.append(batch.cursor.path)
            self.changed.notify_all()
        return BatchOutcome(len(batch.events), 0, 0, 0, 0, ())

    async def reading_requests(self, clients: Sequence[str]) -> AsyncGenerator[ReadingRequest, None]:
        assert clients == ["claude-code"]
        async with self.changed:
            await self.changed.wait_for(lambda: self.sent)
        transcript = ClaudeCodeTranscript(session="late", seed="late")
        transcript.agent_text("written while nobody looked")
        self.path.write_bytes(transcript.to_bytes())
        yield _wanted(self.path)
        await asyncio.Event().wait()


async def test_the_watch_reads_what_is_asked_for_without_an_event_or_a_scan(tmp_path: Path) -> None:
    """Folders are looked at once an hour here, so that only the request can have led to the file."""
    project = tmp_path / "projects" / "-work"
    project.mkdir(parents=True)
    first = ClaudeCodeTranscript(session="s1", seed="first")
    first.agent_text("here from the beginning")
    (project / "s1.jsonl").write_bytes(first.to_bytes())
    sink = _AskingSink(project / "late.jsonl")
    settings = WatchSettings(scan_interval_s=3_600.0, make_observer=lambda: PollingObserver(timeout=3_600))
    watch = Watch([PLUGIN], sink, environment={"CLAUDE_CONFIG_DIR": str(tmp_path)}, settings=settings)
    watching = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(30), sink.changed:
            await sink.changed.wait_for(lambda: str(sink.path) in sink.sent)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    assert sink.sent == [str(project / "s1.jsonl"), str(sink.path)]
