"""Codex's files as a disk shows them: growing, forked, archived, compressed. The end is always the same."""

import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from client_plugins.codex import PLUGIN
from client_plugins.kit.catalog import Catalog, Look
from client_plugins.kit.compression import open_decompressed
from client_plugins.kit.scanner import WatchedRoot, find_transcripts, found_at
from client_plugins.kit.tailer import TailLimits
from client_plugins.kit.transcript_file import open_transcript
from sidecar.domain.evidence import EvidenceEvent, TranscriptCursor
from sidecar.testing.codex_transcripts import CodexTranscript, codex_result, codex_text
from sidecar.testing.transcripts import sample_memory_id

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GOLDEN = Path(__file__).parents[1] / "golden" / "codex"
ONE, TWO, THREE = (sample_memory_id(number) for number in (1, 2, 3))
NAME = "rollout-2026-11-30T18-11-56-01a22da8-08e8-7561-841b-72e2a1f353aa.jsonl"


@dataclass
class Disk:
    """A Codex home, and what the sidecar keeps of it: events by id and cursors by path."""

    home: Path
    limits: TailLimits = field(default_factory=TailLimits)
    max_age_ns: int = 10**18
    events: dict[tuple[str, str], EvidenceEvent] = field(default_factory=dict)
    cursors: dict[str, TranscriptCursor] = field(default_factory=dict)
    repeated: int = 0
    batches: int = 0
    catalog: Catalog | None = None

    @property
    def path(self) -> Path:
        """Where a session of one day lies."""
        return self.home / "sessions" / "2026" / "11" / "30" / NAME

    @property
    def archived(self) -> Path:
        """Where the same lies once it is archived."""
        return self.home / "archived_sessions" / NAME

    def restart(self) -> None:
        """Forget everything but what the sidecar keeps."""
        self.catalog = None

    def read(self) -> "Disk":
        """Scan as the watcher does, and read to the end of what is there."""
        if self.catalog is None:
            cursors = list(self.cursors.values())
            self.catalog = Catalog(
                PLUGIN,
                cursors,
                project_of=lambda cwd: Path(cwd).name,
                oldest_mtime_ns=10**18 - self.max_age_ns,
                now=lambda: 0.0,
                limits=self.limits,
            )
        self.catalog.begin_scan()
        due = []
        for folder in PLUGIN.roots({"CODEX_HOME": str(self.home)}):
            root = WatchedRoot(PLUGIN, folder.resolve())
            for found in find_transcripts(root, self.catalog.is_settled):
                if self.catalog.look_at(found) is not Look.SETTLED:
                    due.append(found)
        self.catalog.end_scan()
        for found in due:
            tail = self.catalog.tail_of(found.file)
            while (batch := tail.next_batch()) is not None:
                self.batches += 1
                for event in batch.events:
                    key = (type(event.payload).__name__, event.event_id)
                    self.repeated += key in self.events
                    self.events.setdefault(key, event)
                self.cursors[batch.cursor.path] = batch.cursor
                tail.acknowledge()
                self.catalog.note_cursor(found.file, batch.cursor)
        return self

    def write(self, content: bytes, path: Path | None = None) -> None:
        """Replace what a file holds."""
        path = path or self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def append(self, content: bytes) -> None:
        """Append to the session's file."""
        with self.path.open("ab") as file:
            file.write(content)

    def compress(self) -> Path:
        """Do what the client does with files that rest: a compressed one beside it, then the plain one goes."""
        target = self.path.with_name(NAME + ".zst")
        target.write_bytes(zstd.compress(self.path.read_bytes(), level=3))
        self.path.unlink()
        return target


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """A home without sessions."""
    return Disk(tmp_path / "codex")


def _session() -> CodexTranscript:
    """Return a session with every shape of a call, and a script that goes on in the background."""
    rollout = CodexTranscript()
    rollout.head()
    rollout.begin_turn("wann, 何時, 😀?")
    rollout.direct_recall(ONE, TWO)
    rollout.scripted_recall(ONE, TWO, THREE, printed=f"{TWO}")
    script = rollout.script()
    rollout.mcp_item("", codex_result(THREE))
    rollout.script_output(script, head="Script running with cell ID 7")
    wait = rollout.call("wait", namespace="", arguments={"cell_id": "7"})
    rollout.output(wait, [codex_text("Script completed\nOutput:\n"), codex_text(f"{THREE} 火曜日")])
    rollout.mcp_end("call_alone_00001", {"Ok": codex_result(ONE)})
    rollout.message("assistant", "火曜日 🚀")
    rollout.end_turn()
    return rollout


def _check_cuts(disk: Disk, content: bytes, cuts: Sequence[int]) -> None:
    disk.write(content)
    whole = disk.read()
    for cut in cuts:
        parts = Disk(disk.home)
        parts.write(content[:cut])
        parts.read().restart()
        parts.append(content[cut:])
        parts.read()
        assert parts.events == whole.events, cut
        assert parts.repeated == 0
        assert [replace(cursor, file_id="") for cursor in parts.cursors.values()] == [
            replace(cursor, file_id="") for cursor in whole.cursors.values()
        ]


def test_every_cut_around_lines_with_a_restart_ends_in_the_same_state(disk: Disk) -> None:
    """Writes are torn anywhere, inside letters too; what is carried is never lost."""
    content = _session().to_bytes()
    ends = [place for place, byte in enumerate(content) if byte == ord("\n")]
    near = {place + shift for place in ends for shift in range(-2, 3)}
    letters = {place for place, byte in enumerate(content) if byte > 0x7F}
    _check_cuts(disk, content, sorted(place for place in near | letters if 0 <= place <= len(content)))


@pytest.mark.slow
def test_every_cut_with_a_restart_ends_in_the_same_state(disk: Disk) -> None:
    """The same at every byte."""
    content = _session().to_bytes()
    _check_cuts(disk, content, range(len(content) + 1))


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir()))
def test_recorded_sessions_line_by_line_with_restarts(disk: Disk, name: str) -> None:
    """What the real client wrote, each line read by another process."""
    for path in sorted((GOLDEN / name).glob("*.jsonl")):
        disk.write(path.read_bytes(), disk.path.with_name(path.name))
    whole = disk.read()
    parts = Disk(disk.home.with_name("parts"))
    for path in sorted((GOLDEN / name).glob("*.jsonl")):
        target = parts.path.with_name(path.name)
        parts.write(b"", target)
        for line in path.read_bytes().splitlines(keepends=True):
            with target.open("ab") as file:
                file.write(line)
            parts.read().restart()
    assert parts.events == whole.events
    assert parts.repeated == 0


def test_batches_of_any_size_end_in_the_same_state(disk: Disk) -> None:
    """Where a batch ends must not matter."""
    disk.write(_session().to_bytes())
    whole = disk.read()
    for lines in (1, 2, 3, 7):
        parts = Disk(disk.home, limits=TailLimits(batch_lines=lines)).read()
        assert (parts.events, list(parts.cursors.values())) == (whole.events, list(whole.cursors.values()))
        assert parts.batches > whole.batches


def test_ten_readings_with_copies_add_nothing(disk: Disk) -> None:
    """Restarts, a legacy fork and a rewritten file beside the original."""
    rollout = _session()
    disk.write(rollout.to_bytes())
    whole = dict(disk.read().events)
    fork = rollout.legacy_fork("01a22da9-0000-7000-8000-000000000002")
    disk.write(fork.to_bytes(), disk.path.with_name("rollout-2026-12-01T18-00-00-fork.jsonl"))
    for number in range(10):
        disk.restart()
        # A file that is replaced is read from its beginning, as a new generation.
        temporary = disk.path.with_suffix(".tmp")
        temporary.write_bytes(rollout.to_bytes())
        temporary.replace(disk.path)
        disk.read()
        assert disk.cursors[str(disk.path.resolve())].generation <= number + 1
    assert disk.events == whole


def test_doubled_and_torn_lines_add_nothing(disk: Disk) -> None:
    """After a failed write the client writes the line again, behind the torn part of it."""
    lines = _session().lines()
    disk.write(b"".join(lines))
    whole = disk.read()
    torn = Disk(disk.home.with_name("torn"))
    choose = random.Random(3)
    torn.write(b"".join(line + line[: choose.randrange(len(line) - 1)] + line for line in lines))
    assert torn.read().events == whole.events
    alone = Disk(disk.home.with_name("alone"))
    alone.write(b"".join(line[: choose.randrange(len(line) - 1)] + line for line in lines))
    assert alone.read().events == whole.events


def test_archiving_is_a_move(disk: Disk) -> None:
    """The file goes on in another folder, and perhaps comes back."""
    rollout = _session()
    disk.write(rollout.to_bytes())
    disk.read()
    disk.archived.parent.mkdir(parents=True)
    disk.path.rename(disk.archived)
    disk.read()
    assert disk.repeated == 0
    disk.archived.rename(disk.path)
    count = len(rollout.lines())
    rollout.begin_turn("More?")
    call_id = rollout.scripted_recall(ONE)
    disk.restart()
    disk.append(b"".join(rollout.lines()[count:]))
    disk.read()
    assert disk.repeated == 0
    assert ("RecallCalled", call_id) in disk.events
    assert len({event.thread for event in disk.events.values()}) == 1


def test_a_compressed_transcript_is_read_like_a_plain_one(disk: Disk) -> None:
    """Old sessions are compressed before anyone has read them."""
    plain = Disk(disk.home.with_name("plain"))
    for one in (disk, plain):
        one.write(_session().to_bytes())
    disk.compress()
    disk.limits = TailLimits(batch_lines=4)
    assert disk.read().events == plain.read().events
    disk.read().restart()
    assert disk.read().repeated == 0


def test_compressing_what_was_read_makes_no_work(disk: Disk) -> None:
    """The same lines stand in another file; what was not read yet still is."""
    rollout = _session()
    lines = rollout.lines()
    disk.write(b"".join(lines[:-4]))
    disk.read()
    disk.append(b"".join(lines[-4:]))
    disk.compress()
    disk.restart()
    disk.read()
    assert disk.repeated == 0
    plain = Disk(disk.home.with_name("plain"))
    plain.write(rollout.to_bytes())
    assert disk.events == plain.read().events


def test_the_plain_file_wins_over_the_compressed_one(disk: Disk) -> None:
    """While it is being compressed, and once the session was taken up again, both are there."""
    rollout = _session()
    disk.write(rollout.to_bytes())
    compressed = disk.compress()
    disk.read()
    rollout.begin_turn("More?")
    disk.write(rollout.to_bytes())
    disk.restart()
    disk.read()
    assert set(disk.cursors) == {str(compressed.resolve()), str(disk.path.resolve())}
    root = WatchedRoot(PLUGIN, (disk.home / "sessions").resolve())
    assert found_at(root, compressed.resolve()) is None
    assert [found.file.path.name for found in find_transcripts(root, lambda *_: False)] == [NAME]
    assert len([event for event in disk.events.values() if "More?" in getattr(event.payload, "text", "")]) == 1


def test_a_compressed_file_that_is_cut_short_counts_as_far_as_it_goes(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that was full, or bytes that turned: what stands before the damage is read, and nothing fails."""
    choose = random.Random(1)
    rollout = _session()
    rollout.message("assistant", "".join(chr(choose.randrange(0x20, 0x7E)) for _ in range(400_000)))
    disk.write(rollout.to_bytes())
    whole = Disk(disk.home).read()
    content = disk.compress().read_bytes()
    disk.path.with_name(NAME + ".zst").write_bytes(content[: len(content) - 100_000])
    damaged = disk.read()
    assert 0 < len(damaged.events) < len(whole.events)
    assert set(damaged.events) < set(whole.events)
    assert "damaged" in caplog.text
    (disk.path.with_name(NAME + ".zst")).write_bytes(b"no zstd at all" * 100)
    assert not Disk(disk.home).read().events


def test_an_old_compressed_file_is_not_opened_again(disk: Disk) -> None:
    """Finding the place in it takes reading all of it, and nobody writes to it any more."""
    disk.write(_session().to_bytes())
    path = disk.compress()
    disk.read()
    os.utime(path, ns=(0, 0))
    disk.max_age_ns = 0
    disk.restart()
    path.write_bytes(b"not read")
    os.utime(path, ns=(0, 0))
    assert disk.read().repeated == 0


def test_seeking_in_a_compressed_file(tmp_path: Path) -> None:
    """Forwards and backwards, past the end, and line by line as in a plain one."""
    content = b"".join(b"%d\n" % number for number in range(100_000))
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(zstd.compress(content))
    with path.open("rb") as raw, open_decompressed(raw) as file:
        assert file.readline() == b"0\n"
        assert (file.seek(500_000), file.read(6)) == (500_000, content[500_000:500_006])
        assert (file.seek(3), file.readline()) == (3, content[3:].split(b"\n")[0] + b"\n")
        assert file.seek(10**9) == len(content)
        assert file.readline() == b""
    with open_transcript(path, tmp_path.resolve()) as (file, state):
        assert file.read() == content
        assert state.size > len(content)
