"""Reading what is there already: everything once, in the order in which it was written, whatever comes between."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from client_plugins.claude_code import PLUGIN as CLAUDE
from client_plugins.codex import PLUGIN as CODEX
from client_plugins.cursor import PLUGIN as CURSOR
from client_plugins.kit.backfill import Backfill, BackfillReport
from client_plugins.kit.plugin import ClientPlugin
from client_plugins.kit.tailer import TailLimits
from client_plugins.kit.watch import Watch, WatchSettings
from sidecar.cli.ingesting import since_time
from sidecar.domain.evidence import BatchOutcome, EvidenceBatch, TranscriptCursor
from sidecar.domain.reading_request import ReadingRequest
from sidecar.errors import ContentTooLargeError, InvalidInputError, UnavailableError
from sidecar.testing.conformance import SampleFile
from sidecar.testing.transcripts import ClaudeCodeTranscript
from tests.client_cases import CASES

SMALL = TailLimits(batch_events=3)


class Collected:
    """Takes evidence as the sidecar would; fails after so many batches, or on a file, if told to."""

    def __init__(self, *, fails_after: int = 10**9, refused: str = "") -> None:
        self.cursors_by_path: dict[tuple[str, str], TranscriptCursor] = {}
        self.sessions: dict[tuple[str, str, str], str] = {}
        self.left = fails_after
        self.refused = refused

    async def cursors(self, client: str) -> list[TranscriptCursor]:
        return [cursor for (name, _), cursor in self.cursors_by_path.items() if name == client]

    async def send(self, batch: EvidenceBatch) -> BatchOutcome:
        if self.refused and self.refused in batch.cursor.path:
            raise ContentTooLargeError("events", 2, 1)
        if not self.left:
            raise UnavailableError("gone")
        self.left -= 1
        new = 0
        for event in batch.events:
            key = (event.thread.client, type(event.payload).__name__, event.event_id)
            new += key not in self.sessions
            self.sessions.setdefault(key, event.thread.session)
        self.cursors_by_path[batch.cursor.client, batch.cursor.path] = batch.cursor
        return BatchOutcome(new, len(batch.events) - new, recalls=0, shown=0, unknown=0, used_memory_ids=())

    async def reading_requests(self, clients: Sequence[str]) -> AsyncGenerator[ReadingRequest, None]:
        await asyncio.Event().wait()
        yield ReadingRequest("", "", "")

    @property
    def counters(self) -> Counter[str]:
        """What the files' counters say together."""
        total: Counter[str] = Counter()
        for cursor in self.cursors_by_path.values():
            total.update(dict(cursor.skipped))
        return total


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The folders of three clients, with samples, forks and moved files in them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    variables = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "CODEX_HOME": str(tmp_path / "codex")}
    number = 0
    for case in CASES:
        root = case.plugin.roots(variables)[0]
        for sample in case.samples:
            for file in (sample.file, *sample.repetitions):
                number += 1
                _write(root, file, at=1_790_000_000 + number)
    return variables


def _write(root: Path, file: SampleFile, *, at: int) -> None:
    path = root.joinpath(*file.parts)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.content)
    os.utime(path, (at, at))


async def _fill(
    sink: Collected,
    environment: Mapping[str, str],
    *paths: Path,
    plugins: Sequence[ClientPlugin] = (CLAUDE, CODEX, CURSOR),
    oldest: int = 0,
) -> BackfillReport:
    backfill = Backfill(plugins, sink, environment=environment, oldest_mtime_ns=oldest * 10**9, limits=SMALL)
    await backfill.run(paths)
    return backfill.report


async def test_ten_times_is_as_good_as_once(environment: Mapping[str, str]) -> None:
    """Nothing is sent again, and every counter stays."""
    sink = Collected()
    first = await _fill(sink, environment)
    events, counters = dict(sink.sessions), sink.counters
    assert first.files > 10
    assert first.new_events == len(events) > 50
    for _ in range(9):
        report = await _fill(sink, environment)
        assert (report.files, report.unchanged, report.bytes_read) == (first.files, first.files, 0)
        assert (sink.sessions, sink.counters) == (events, counters)


async def test_it_goes_on_where_it_was_stopped(environment: Mapping[str, str]) -> None:
    """However often the sidecar is lost, the end is the same, and each event belongs to the same session."""
    whole = Collected()
    await _fill(whole, environment)
    parts = Collected(fails_after=0)
    for _ in range(200):
        parts.left = 3
        try:
            await _fill(parts, environment)
        except UnavailableError:
            continue
        break
    assert (parts.sessions, parts.counters) == (whole.sessions, whole.counters)


async def test_it_may_run_beside_the_watcher(environment: Mapping[str, str]) -> None:
    """Both send the same; whoever comes second adds nothing."""
    whole, both = Collected(), Collected()
    await _fill(whole, environment)
    settings = WatchSettings(max_age_days=36_500, limits=SMALL)
    watch = Watch((CLAUDE, CODEX, CURSOR), both, environment=environment, settings=settings)
    stopped = Collected(fails_after=9)
    stopped.sessions, stopped.cursors_by_path = both.sessions, both.cursors_by_path
    with pytest.raises(UnavailableError):
        await _fill(stopped, environment)
    await watch.run_once()
    report = await _fill(both, environment)
    assert (report.new_events, report.unchanged) == (0, report.files)
    assert both.sessions.keys() == whole.sessions.keys()
    assert both.counters == whole.counters


async def test_copies_belong_to_the_session_that_was_written_first(tmp_path: Path) -> None:
    """A fork's file may come first by name; its calls are its parent's."""
    first = ClaudeCodeTranscript("ffffffff-0000-4000-8000-000000000001")
    first.recall()
    fork = first.fork("00000000-0000-4000-8000-000000000002")
    fork.agent_text("own")
    for transcript, at in ((first, 1_790_000_000), (fork, 1_790_000_100)):
        file = SampleFile(("-shop", f"{transcript.session}.jsonl"), transcript.to_bytes())
        _write(tmp_path / "projects", file, at=at)
    sink = Collected()
    report = await _fill(sink, {"CLAUDE_CONFIG_DIR": str(tmp_path)}, plugins=[CLAUDE])
    assert Counter(sink.sessions.values()) == {first.session: 2, fork.session: 1}
    assert report.repeated_events == 2


async def test_what_is_skipped_is_counted_with_its_reason(tmp_path: Path) -> None:
    """Damaged lines, unknown records, old files, files that cannot be read or that the sidecar refuses."""
    transcript = ClaudeCodeTranscript()
    transcript.agent_text("hello")
    transcript.add("novel")
    content = transcript.to_bytes() + b"{torn\n"
    root = tmp_path / "projects"
    for number, name in enumerate(("old", "new", "refused")):
        _write(root, SampleFile(("-shop", f"{name}.jsonl"), content), at=1_790_000_000 + 1_000 * number)
    sink = Collected(refused="refused")
    variables = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    report = await _fill(sink, variables, plugins=[CLAUDE], oldest=1_790_000_500)
    assert (report.files, report.lines, report.new_events) == (2, 3, 1)
    assert report.left_out == {"too_old": 1, "content_too_large": 1}
    assert report.skipped == {"not_json": 1, "silent": 1}
    assert report.unrecognised == {"novel": 1}
    again = await _fill(replace_refused(sink), variables, plugins=[CLAUDE])
    assert (again.files, again.unchanged, again.new_events) == (3, 1, 0)


def replace_refused(sink: Collected) -> Collected:
    """Let through what was refused."""
    sink.refused = ""
    return sink


async def test_paths_choose_what_is_read(environment: Mapping[str, str], tmp_path: Path) -> None:
    """A file, a folder below a client's root, one above it, and a copy that lies elsewhere."""
    root = CLAUDE.roots(environment)[0]
    everything = await _fill(Collected(), environment)
    assert (await _fill(Collected(), environment, tmp_path)).files == everything.files
    (folder,) = [path for path in root.iterdir() if path.name == "-home-dev-other"]
    assert (await _fill(Collected(), environment, folder)).files == 1
    (file,) = folder.iterdir()
    assert (await _fill(Collected(), environment, file, folder, root)).files < everything.files
    elsewhere = {"CLAUDE_CONFIG_DIR": str(tmp_path / "nowhere"), "CODEX_HOME": str(tmp_path / "nowhere")}
    agent = next(root.rglob("agent-*.jsonl"))
    sink = Collected()
    assert (await _fill(sink, elsewhere, agent, plugins=[CLAUDE])).files == 1
    assert set(sink.sessions.values()) == {agent.parents[1].name}
    assert (await _fill(Collected(), elsewhere, root, plugins=[CLAUDE, CODEX])).new_events > 0


async def test_a_path_without_transcripts_is_refused(environment: Mapping[str, str], tmp_path: Path) -> None:
    """Rather than reading nothing without a word."""
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "not-there"):
        with pytest.raises(InvalidInputError):
            await _fill(Collected(), environment, path)


async def test_progress_is_told_in_bytes(environment: Mapping[str, str]) -> None:
    """It only grows, and ends at all there is."""
    told: list[tuple[int, int]] = []
    backfill = Backfill([CLAUDE], Collected(), environment=environment, limits=SMALL)
    await backfill.run(progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > 0


def test_since_is_a_date_or_a_time_ago() -> None:
    """Anything else is refused."""
    now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    assert since_time("", now=now) is None
    assert since_time("90d", now=now) == datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
    assert since_time("2W", now=now) == datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    assert since_time("2026-11-01T00:00:00Z", now=now) == datetime(2026, 11, 1, tzinfo=UTC)
    assert since_time("2026-11-01", now=now) is not None
    for wrong in ("soon", "90", "99999y", "d"):
        with pytest.raises(InvalidInputError):
            since_time(wrong, now=now)
