"""Reading files that grow, break and are replaced: the same events at the end, whatever happened on the way."""

import os
import random
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from client_plugins.claude_code import PLUGIN
from client_plugins.kit.plugin import LineReading, TranscriptContext
from client_plugins.kit.project import ProjectFinder
from client_plugins.kit.tailer import TailLimits, TranscriptFile, TranscriptTail, path_key
from sidecar.domain.evidence import EvidenceEvent, SessionThread, SliceKind, TextSpoken, TranscriptCursor
from sidecar.errors import UntrustedPathError
from sidecar.testing.transcripts import ClaudeCodeTranscript, sample_memory_id, text_block

GOLDEN = Path(__file__).parents[1] / "golden" / "claude_code"
NOW = datetime(2026, 11, 30, tzinfo=UTC)
ONE, TWO = sample_memory_id(1), sample_memory_id(2)


@dataclass
class Reader:
    """Reads one file over and over, as the watcher and its sidecar would: keeps the cursor and all events by id."""

    path: Path
    limits: TailLimits = field(default_factory=TailLimits)
    cursor: TranscriptCursor | None = None
    events: dict[str, EvidenceEvent] = field(default_factory=dict)
    batch_sizes: list[int] = field(default_factory=list)
    repeated: int = 0
    tail: TranscriptTail | None = None

    def restart(self) -> None:
        """Forget everything but what the sidecar keeps."""
        self.tail = None

    def read(self) -> "Reader":
        """Read to the end of what is there."""
        if self.tail is None:
            file = TranscriptFile(self.path, self.path.parent.resolve(), TranscriptContext("session"))
            self.tail = TranscriptTail(file, PLUGIN, project_of=str, cursor=self.cursor, limits=self.limits)
        while (batch := self.tail.next_batch()) is not None:
            self.repeated += len(self.events.keys() & {event.event_id for event in batch.events})
            self.events.update((event.event_id, event) for event in batch.events)
            self.batch_sizes.append(len(batch.events))
            self.cursor = batch.cursor
            self.tail.acknowledge()
        return self

    @property
    def counts(self) -> dict[str, int]:
        """The counters of the cursor."""
        assert self.cursor is not None
        return dict(self.cursor.skipped)

    @property
    def generation(self) -> int:
        """How often the file was found rewritten."""
        assert self.cursor is not None
        return self.cursor.generation


def _conversation(seed: str = "main", *, turns: int = 3) -> ClaudeCodeTranscript:
    transcript = ClaudeCodeTranscript(seed=seed)
    for number in range(turns):
        transcript.user(f"Frage {number}: wann, 何時, 😀?")
        transcript.recall(ONE, TWO)
        transcript.agent_text(f"Antwort {number} — 火曜日 🚀")
    return transcript


def _read_whole(path: Path, content: bytes) -> Reader:
    path.write_bytes(content)
    return Reader(path).read()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the transcript lies."""
    return tmp_path / "session.jsonl"


def test_every_cut_with_a_restart_ends_in_the_same_state(path: Path) -> None:
    """Writes are torn anywhere, inside letters too, and the watcher may be killed at any moment (A11, B47, B48)."""
    content = _conversation().to_bytes()
    whole = _read_whole(path, content)
    assert len(whole.events) == 12
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        parts = Reader(path).read()
        parts.restart()
        with path.open("ab") as file:
            file.write(content[cut:])
        parts.read()
        assert (parts.events, parts.cursor) == (whole.events, whole.cursor), cut
        assert parts.repeated == 0


def test_sampled_cuts_of_a_recorded_session_end_in_the_same_state(path: Path) -> None:
    """What the real client wrote, cut in five places at once."""
    content = next((GOLDEN / "terminal").glob("*.jsonl")).read_bytes()
    whole = _read_whole(path, content)
    choose = random.Random(7)
    for _ in range(60):
        parts, begin = Reader(path), 0
        path.write_bytes(b"")
        for end in [*sorted(choose.sample(range(len(content)), 5)), len(content)]:
            with path.open("ab") as file:
                file.write(content[begin:end])
            begin = end
            parts.read()
            if choose.random() < 0.5:
                parts.restart()
        assert (parts.events, parts.cursor) == (whole.events, replace_id(whole.cursor, parts.cursor))


def replace_id(cursor: TranscriptCursor | None, other: TranscriptCursor | None) -> TranscriptCursor | None:
    """Return the cursor as of the other one's file."""
    return replace(cursor, file_id=other.file_id) if cursor and other else None


def test_ten_restarts_over_an_unchanged_file_read_nothing_again(path: Path) -> None:
    """Nothing new means nothing sent (B45)."""
    reader = _read_whole(path, _conversation().to_bytes())
    sizes = list(reader.batch_sizes)
    for _ in range(10):
        reader.restart()
        reader.read()
    assert reader.batch_sizes == sizes


def test_an_unacknowledged_batch_is_read_again(path: Path) -> None:
    """What was sent and not acknowledged may not have arrived."""
    path.write_bytes(_conversation().to_bytes())
    file = TranscriptFile(path, path.parent.resolve(), TranscriptContext("session"))
    tail = TranscriptTail(file, PLUGIN, project_of=str)
    assert tail.next_batch() == tail.next_batch()
    tail.acknowledge()
    assert tail.next_batch() is None


def test_only_finished_lines_count(path: Path) -> None:
    """A line without newline may still grow."""
    content = _conversation(turns=1).to_bytes()
    reader = _read_whole(path, content[:-1])
    assert len(reader.events) == 3
    with path.open("ab") as file:
        file.write(b"\n")
    assert len(reader.read().events) == 4


def test_an_empty_file_is_no_event(path: Path) -> None:
    """Sessions begin with one."""
    assert _read_whole(path, b"").cursor is None


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("change", ["shorter", "same size", "longer", "new file", "emptied"])
def test_a_replaced_file_is_read_as_a_new_generation(path: Path, change: str, is_restarted: bool) -> None:
    """Migrations and restores put other content under the same name (hazard 16)."""
    old = _conversation("old", turns=3).to_bytes()
    new = {
        "shorter": _conversation("new", turns=2).to_bytes(),
        "same size": _conversation("new", turns=3).to_bytes(),
        "longer": _conversation("new", turns=5).to_bytes(),
        "new file": _conversation("new", turns=3).to_bytes(),
        "emptied": b"",
    }[change]
    reader = _read_whole(path, old)
    if is_restarted:
        reader.restart()
    if change == "new file":
        other = path.with_suffix(".new")
        other.write_bytes(new)
        other.replace(path)
    else:
        path.write_bytes(new)
    reader.read()
    if change == "emptied":
        path.write_bytes(old)
        assert reader.read().repeated == len(reader.events)
        return
    fresh = _read_whole(path.with_name("fresh.jsonl"), new)
    assert reader.events.keys() >= fresh.events.keys()
    assert reader.generation == 1
    assert reader.counts == fresh.counts
    assert reader.cursor is not None
    assert reader.cursor.offset == len(new)


def test_a_replaced_last_line_is_read_once(path: Path) -> None:
    """A client that rewrites its last line in place must not make us read all the others again."""
    lines = _conversation().lines()
    tail_line = b'{"type":"mode","mode":"normal"}\n'
    reader = _read_whole(path, b"".join([*lines, tail_line]))
    more = _conversation("more", turns=1).lines()
    path.write_bytes(b"".join([*lines, *more, tail_line]))
    reader.read()
    assert len(reader.events) == 12 + 4
    assert (reader.repeated, reader.generation) == (0, 1)
    assert reader.counts == _read_whole(path.with_name("fresh.jsonl"), path.read_bytes()).counts


def test_a_truncated_file_goes_on_from_what_is_left(path: Path) -> None:
    """A revert takes lines away and writes others."""
    lines = _conversation().lines()
    reader = _read_whole(path, b"".join(lines))
    path.write_bytes(b"".join(lines[:-2]))
    reader.read()
    path.write_bytes(b"".join([*lines[:-2], *_conversation("other", turns=1).lines()]))
    reader.read()
    assert len(reader.events) == 12 + 4


def test_another_device_number_alone_is_no_new_file(path: Path) -> None:
    """Device numbers of some file systems change when the system starts."""
    reader = _read_whole(path, _conversation().to_bytes())
    assert reader.cursor is not None
    reader.cursor = replace(reader.cursor, file_id="99999:" + reader.cursor.file_id.partition(":")[2])
    sizes = list(reader.batch_sizes)
    reader.restart()
    assert reader.read().batch_sizes == sizes


def test_a_new_parser_reads_files_again(path: Path) -> None:
    """What an older one did not understand may be understood now; what is known stays known."""
    reader = _read_whole(path, _conversation().to_bytes())
    assert reader.cursor is not None
    count = len(reader.events)
    reader.cursor = replace(reader.cursor, parser_version=0)
    reader.restart()
    reader.read()
    assert (len(reader.events), reader.repeated, reader.generation) == (count, count, 1)


def test_duplicated_and_reordered_lines_add_nothing(path: Path) -> None:
    """Compactions write history again, and a result may stand before its call."""
    lines = _conversation().lines()
    clean = _read_whole(path, b"".join(lines))
    mixed = [*lines, *lines, *reversed(lines)]
    assert _read_whole(path, b"".join(mixed)).events == clean.events


def test_damaged_lines_cost_only_themselves(path: Path) -> None:
    """Glued, torn, blank, foreign and binary lines between good ones; CR LF, BOM and NUL around them."""
    lines = _conversation().lines()
    clean = _read_whole(path, b"".join(lines))
    glued = lines[0].rstrip(b"\n") + lines[1]
    damaged = [
        *(b"\xef\xbb\xbf" + glued, b"\n", b"\0\0\0\n", b'{"type":"user","mess\n', b"\xff\xfe\xfd\n", b"[1,2]\n"),
        *(b'{"a":' * 100_000 + b"\n", lines[2].rstrip(b"\n") + b"\r\n", b"\0" + lines[3], *lines[4:]),
    ]
    reader = _read_whole(path, b"".join(damaged))
    assert reader.events == clean.events
    counts = {name: count for name, count in reader.counts.items() if name.startswith("skipped.")}
    assert counts == {
        "skipped.blank": 2,
        "skipped.not_json": 2,
        "skipped.not_an_object": 1,
        "skipped.too_deep": 1,
    }


def test_batches_stay_within_their_limits(path: Path) -> None:
    """A batch must fit into one message and one turn, and none of them may lose anything."""
    content = _conversation(turns=200).to_bytes()
    whole = _read_whole(path, content)
    for limits in (
        TailLimits(batch_events=7),
        TailLimits(batch_lines=5),
        TailLimits(batch_bytes=3_000),
        TailLimits(batch_text_bytes=3_000),
    ):
        reader = Reader(path, limits).read()
        assert reader.events == whole.events
        assert len(reader.batch_sizes) > 50
        assert max(reader.batch_sizes) <= 12


def test_a_line_with_too_much_on_it_is_cut_and_counted(path: Path) -> None:
    """One record of a thousand results must not make a batch that nobody takes."""
    transcript = ClaudeCodeTranscript()
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": ONE} for n in range(1_000)]
    transcript.user(results)
    transcript.agent_text("still here")
    reader = _read_whole(path, transcript.to_bytes())
    assert max(reader.batch_sizes) <= 500
    assert reader.counts["skipped.too_much_on_line"] == 1
    assert any("still here" in str(event.payload) for event in reader.events.values())


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_line_over_the_limit_is_skipped_and_counted(path: Path, is_restarted: bool) -> None:
    """Its neighbours stay whole, also when it arrives in pieces and the watcher is restarted in between."""
    lines = _conversation(turns=1).lines()
    giant = b'{"type":"user","message":{"content":"' + b"x" * 3_000_000 + b'"}}\n'
    limits = TailLimits(line_bytes=100_000)
    path.write_bytes(b"".join([*lines[:2], giant, *lines[2:]]))
    whole = Reader(path, limits).read()
    assert len(whole.events) == 4
    assert whole.counts["skipped.too_long"] == 1
    pieces = Reader(path, limits)
    content = path.read_bytes()
    for end in range(1, len(content) + 400_000, 400_000):
        path.write_bytes(content[:end])
        pieces.read()
        if is_restarted:
            pieces.restart()
    assert (pieces.events, pieces.cursor) == (whole.events, replace_id(whole.cursor, pieces.cursor))


def test_a_growing_unfinished_line_is_found_when_it_ends(path: Path) -> None:
    """While it has no newline it is not read again from its beginning, but its end must not be missed."""
    transcript = ClaudeCodeTranscript()
    transcript.user("long " * 800_000)
    (line,) = transcript.lines()
    reader = Reader(path)
    for end in range(1, len(line), 200_000):
        path.write_bytes(line[:end])
        assert not reader.read().events
    path.write_bytes(line + line)
    assert len(reader.read().events) == 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_giant_line_is_read_in_bounded_memory(path: Path) -> None:
    """A line of 300 MB, more than a process of this kind should ever take, passes through (B49)."""
    lines = _conversation(turns=1).lines()
    with path.open("wb") as file:
        file.write(lines[0])
        for _ in range(300):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + lines[1])
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.unit.test_tailer import Reader\n"
        "reader = Reader(Path(sys.argv[1])).read()\n"
        "assert len(reader.events) == 2, reader.events\n"
        "assert reader.counts['skipped.too_long'] == 1\n"
        # Not getrusage: its figure begins with that of the process that started this one.
        "status = Path('/proc/self/status').read_text()\n"
        "peak = int(status.split('VmHWM:')[1].split()[0])\n"
        "sys.exit(0 if peak < 400_000 else f'peak {peak} KiB')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_files_that_are_no_transcripts_of_the_root_are_not_opened(tmp_path: Path) -> None:
    """Links out of the root, pipes, folders and twins of the root's name stay closed (B62, B73)."""
    root, twin = tmp_path / "root", tmp_path / "root-twin"
    root.mkdir()
    twin.mkdir()
    secret = twin / "secret.jsonl"
    secret.write_bytes(_conversation().to_bytes())
    (root / "link.jsonl").symlink_to(secret)
    (root / "linked").symlink_to(twin)
    (root / "folder.jsonl").mkdir()
    os.mkfifo(root / "pipe.jsonl")
    names = ["link.jsonl", "linked/secret.jsonl", "folder.jsonl", "pipe.jsonl", "../root-twin/secret.jsonl"]
    for name in [*names, str(secret), "/dev/zero"]:
        file = TranscriptFile(root / name, root.resolve(), TranscriptContext("s"))
        with pytest.raises((UntrustedPathError, OSError)):
            TranscriptTail(file, PLUGIN, project_of=str).next_batch()


def test_a_path_that_is_no_utf8_can_be_told(tmp_path: Path) -> None:
    """File names are bytes, and a cursor's path must fit a message (B56)."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    reader = _read_whole(path, _conversation().to_bytes())
    assert reader.cursor is not None
    assert reader.cursor.path == path_key(path) == f"{tmp_path}/\\udcff.jsonl"


class FaultyPlugin:
    """A plugin whose reader fails on some lines."""

    name = "faulty"
    parser_version = 1

    def read_line(self, line: bytes, context: TranscriptContext, state: str, project_of: ProjectFinder) -> LineReading:
        """Fail on user records."""
        if b'"type":"user"' in line:
            raise ValueError(line)
        return PLUGIN.read_line(line, context, state, project_of)


def test_a_reader_that_fails_costs_the_line_and_is_counted(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody else's plugin must not stop a file; and what the line said must not get into the log."""
    path.write_bytes(_conversation(turns=1).to_bytes())
    file = TranscriptFile(path, path.parent.resolve(), TranscriptContext("s"))
    batch = TranscriptTail(file, FaultyPlugin(), project_of=str).next_batch()  # type: ignore[arg-type]
    assert batch is not None
    assert len(batch.events) == 2
    assert dict(batch.cursor.skipped)["skipped.reader_failed"] == 2
    assert "Frage" not in caplog.text


class CountingPlugin:
    """A plugin whose reader carries the number of lines so far, or too much of a state."""

    name = "counting"
    parser_version = 1

    def __init__(self, *, wrong_state: str = "", parser_version: int = 1) -> None:
        self.parser_version = parser_version
        self._wrong_state = wrong_state

    def read_line(self, line: bytes, context: TranscriptContext, state: str, project_of: ProjectFinder) -> LineReading:
        """Say which line it is; fail on lines with `fail`."""
        if b"fail" in line:
            raise ValueError(line)
        if b"wrong" in line:
            return LineReading(state=self._wrong_state)
        number = int(state or "0") + 1
        thread = SessionThread(self.name, context.session)
        said = TextSpoken(SliceKind.AGENT_TEXT, f"{number} {line.decode().strip()}")
        return LineReading((EvidenceEvent(f"{number}", thread, NOW, said),), state=str(number))


def _tail(path: Path, plugin: CountingPlugin, cursor: TranscriptCursor | None = None) -> TranscriptTail:
    file = TranscriptFile(path, path.parent.resolve(), TranscriptContext("s"))
    limits = TailLimits(line_bytes=100, batch_lines=2)
    return TranscriptTail(file, plugin, project_of=str, cursor=cursor, limits=limits)  # type: ignore[arg-type]


def _said(tail: TranscriptTail) -> list[str]:
    texts = []
    while (batch := tail.next_batch()) is not None:
        texts += [payload.text for event in batch.events if isinstance(payload := event.payload, TextSpoken)]
        tail.acknowledge()
    return texts


def test_what_a_reader_carries_survives_restarts_and_lines_that_fail(path: Path) -> None:
    """A restart between any two lines is unseen, and a line that cannot be read takes nothing away."""
    lines = [b"a\n", b"fail\n", b"b\n", b"x" * 200 + b"\n", b"c\n"]
    path.write_bytes(b"".join(lines))
    assert _said(_tail(path, CountingPlugin())) == ["1 a", "2 b", "3 c"]
    path.write_bytes(b"")
    cursor, texts = None, []
    for line in lines:
        with path.open("ab") as file:
            file.write(line)
        tail = _tail(path, CountingPlugin(), cursor)
        batch = tail.next_batch()
        assert batch is not None
        texts += [event.event_id for event in batch.events]
        cursor = batch.cursor
    assert cursor is not None
    assert (texts, cursor.reader_state) == (["1", "2", "3"], "3")


def test_a_batch_that_was_not_acknowledged_is_read_again_with_the_state_before_it(path: Path) -> None:
    """What was carried goes back together with the place."""
    path.write_bytes(b"a\nb\nc\n")
    tail = _tail(path, CountingPlugin())
    first = tail.next_batch()
    assert first is not None
    again = tail.next_batch()
    assert again == first
    tail.acknowledge()
    assert _said(tail) == ["3 c"]


def test_a_rewritten_line_is_read_with_the_state_before_it(path: Path) -> None:
    """In another last line the count goes on; in another file, or with another reader, it starts anew."""
    path.write_bytes(b"a\nb\nend\n")
    tail = _tail(path, CountingPlugin())
    assert _said(tail) == ["1 a", "2 b", "3 end"]
    path.write_bytes(b"a\nb\nmore\n")
    assert _said(tail) == ["3 more"]
    path.write_bytes(b"something else\n")
    assert _said(tail) == ["1 something else"]
    batch = _tail(path, CountingPlugin()).next_batch()
    assert batch is not None
    assert _said(_tail(path, CountingPlugin(parser_version=2), batch.cursor)) == ["1 something else"]


@pytest.mark.parametrize("wrong_state", ["x" * (16 * 1024 + 1), "é" * (8 * 1024 + 1), "\ud800"])
def test_a_state_that_cannot_be_kept_is_dropped_and_counted(path: Path, wrong_state: str) -> None:
    """A fault of the reader's: it must stop neither the file nor the cursor."""
    path.write_bytes(b"a\nwrong\nb\n")
    tail = _tail(path, CountingPlugin(wrong_state=wrong_state))
    first = tail.next_batch()
    assert first is not None
    assert first.cursor.reader_state == ""
    assert dict(first.cursor.skipped)["skipped.unsound_reader_state"] == 1
    tail.acknowledge()
    assert _said(tail) == ["1 b"]


def test_unknown_kinds_are_counted_but_not_without_end(path: Path) -> None:
    """A file of nothing but new kinds must not grow the cursor without end, nor put its words there (B51)."""
    transcript = ClaudeCodeTranscript()
    for number in range(100):
        transcript.add(f"novelty-{number}")
    transcript.add("a text with spaces\n")
    counts = _read_whole(path, transcript.to_bytes()).counts
    unrecognised = {name: count for name, count in counts.items() if name.startswith("unrecognised.")}
    assert len(unrecognised) <= 25
    assert sum(unrecognised.values()) == 101


def test_mutated_lines_never_fail_and_spare_their_neighbours(path: Path) -> None:
    """20,000 lines with bytes changed, taken out, doubled or moved (A10)."""
    choose = random.Random(11)
    seeds = [
        line for file in sorted(GOLDEN.rglob("*.jsonl")) for line in file.read_bytes().splitlines() if len(line) < 2_000
    ]
    good = ClaudeCodeTranscript()
    for number in range(200):
        good.agent_text(f"neighbour {number}")
    mixed: list[bytes] = []
    for line in good.lines():
        mixed += [_mutated(choose.choice(seeds), choose) + b"\n" for _ in range(100)]
        mixed.append(line)
    reader = _read_whole(path, b"".join(mixed))
    texts = {getattr(event.payload, "text", "") for event in reader.events.values()}
    assert {f"neighbour {number}" for number in range(200)} <= texts
    assert "skipped.reader_failed" not in reader.counts


def _mutated(line: bytes, choose: random.Random) -> bytes:
    data = bytearray(line)
    for _ in range(choose.randint(1, 6)):
        at = choose.randrange(len(data)) if data else 0
        length = choose.randint(1, 12)
        kind = choose.randrange(5)
        if kind == 0:
            data[at : at + length] = choose.randbytes(length)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length * 8]
        elif kind == 3:
            data[at:at] = choose.choice([b'"', b"{", b"[", b"\\u0000", b"null", b"\\ud800", b"1e999", b"\0", b"}{"])
        else:
            data[at:at] = text_block("x")["type"].__repr__().encode()
    return bytes(data).replace(b"\n", b" ")
