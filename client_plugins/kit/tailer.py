"""Reads one transcript from where it was left, in batches that end behind a newline. Sends nothing itself.

The next batch begins where the last *acknowledged* one ended, so whatever happens between them is read again, and since
events carry the same ids again, nothing is counted twice.
"""

import logging
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from client_plugins.kit.coverage import Coverage
from client_plugins.kit.plugin import ClientPlugin, LineReading, TranscriptContext
from client_plugins.kit.project import ProjectFinder
from client_plugins.kit.transcript_file import (
    FileState,
    has_newline_from,
    hash_line,
    hash_line_before,
    is_same_file,
    open_transcript,
    skip_line,
)
from sidecar.domain.evidence import (
    MAX_READER_STATE_BYTES,
    EvidenceBatch,
    EvidenceEvent,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
    TranscriptCursor,
)

TOO_LONG: Final = "too_long"
TOO_MUCH_ON_LINE: Final = "too_much_on_line"
READER_FAILED: Final = "reader_failed"
UNSOUND_STATE: Final = "unsound_reader_state"

# Clients rewrite at most the last few lines in place (Cursor replaces one).
_REMEMBERED_LINES: Final = 8
_LONG_LINE_BYTES: Final = 1 << 20
_BARE_EVENT_BYTES: Final = 300
_ID_BYTES: Final = 32

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TailLimits:
    """How much is read at once.

    Attributes:
        line_bytes: Longer lines are skipped and counted.
        batch_events: A batch ends when it has this many events; a single line gives no more than that either.
        batch_text_bytes: Of the events' texts, so that a batch fits into one message.
    """

    line_bytes: int = 64 << 20
    batch_events: int = 500
    batch_text_bytes: int = 1 << 20
    batch_lines: int = 5_000
    batch_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A transcript that was found: where it is, below which root (links resolved), and what its path says."""

    path: Path
    root: Path
    context: TranscriptContext


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place just behind a line, and what had been counted and was carried up to there."""

    offset: int
    line_hash: str
    lines_read: int
    coverage: Coverage
    state: str = ""


def path_key(path: Path) -> str:
    """Return a path as cursors name it; a byte of it that is no UTF-8 is spelled out."""
    return str(path).encode("utf-8", "backslashreplace").decode()


class _Filling:
    """A batch being filled."""

    def __init__(self, limits: TailLimits, start: _Mark) -> None:
        self._limits = limits
        self._start = start
        self._weight_bytes = 0
        self.events: list[EvidenceEvent] = []
        self.marks: deque[_Mark] = deque([start], maxlen=_REMEMBERED_LINES + 1)

    @property
    def position(self) -> _Mark:
        """Where the batch ends so far."""
        return self.marks[-1]

    @property
    def is_full(self) -> bool:
        """Whether it has enough for one message or one turn."""
        return (
            len(self.events) >= self._limits.batch_events
            or self._weight_bytes >= self._limits.batch_text_bytes
            or self.position.lines_read - self._start.lines_read >= self._limits.batch_lines
            or self.position.offset - self._start.offset >= self._limits.batch_bytes
        )

    def has_room_for(self, reading: LineReading) -> bool:
        """Tell whether the batch stays within its limits with this line; an empty one takes any line."""
        weight = self._weight_bytes + sum(map(_weight_bytes, reading.events))
        is_within = (
            len(self.events) + len(reading.events) <= self._limits.batch_events
            and weight <= self._limits.batch_text_bytes
        )
        return is_within or not self.events

    def add(self, reading: LineReading, *, length: int, line_hash: str) -> None:
        """Take in a line of `length` bytes."""
        before = self.position
        coverage = before.coverage.copy()
        coverage.add(reading)
        self.marks.append(_Mark(before.offset + length, line_hash, before.lines_read + 1, coverage, reading.state))
        self.events.extend(reading.events)
        self._weight_bytes += sum(map(_weight_bytes, reading.events))


class TranscriptTail:
    """Reads one file. Blocking; call it from one thread at a time."""

    def __init__(
        self,
        file: TranscriptFile,
        plugin: ClientPlugin,
        *,
        project_of: ProjectFinder,
        cursor: TranscriptCursor | None = None,
        limits: TailLimits | None = None,
    ) -> None:
        self.file = file
        self._plugin = plugin
        self._project_of = project_of
        self._limits = limits or TailLimits()
        self._file_id = cursor.file_id if cursor else ""
        self._generation = cursor.generation if cursor else 0
        self._marks: deque[_Mark] = deque(maxlen=_REMEMBERED_LINES)
        self._marks.append(_mark_of(cursor) if cursor else _BEGINNING)
        self._pending: _Filling | None = None
        # A stretch without newline, from the beginning of an unfinished line; saves reading a long one each time.
        self._barren = range(0)
        if cursor is not None and cursor.parser_version != plugin.parser_version:
            self._start_again_from([_BEGINNING])

    @property
    def offset(self) -> int:
        """Bytes that were read and acknowledged."""
        return self._marks[-1].offset

    def next_batch(self) -> EvidenceBatch | None:
        """Read on from the last acknowledged place; None if no finished line is there.

        Raises:
            UntrustedPathError: If the file is not what it should be.
            OSError: If it cannot be read now.
        """
        self._pending = None
        with open_transcript(self.file.path, self.file.root) as (file, state):
            self._find_place(file, state)
            if not self._has_line(file, state):
                return None
            filling = self._fill(file)
        if filling.position.offset == self.offset:
            return None
        self._pending = filling
        return EvidenceBatch(self._cursor(filling.position), tuple(filling.events))

    def acknowledge(self) -> None:
        """Take the last batch as safe: the next one begins behind it."""
        if self._pending is not None:
            self._marks.extend(list(self._pending.marks)[1:])
            self._pending = None

    def _find_place(self, file: BinaryIO, state: FileState) -> None:
        """Step back, to the beginning if need be, if what was read is no longer what stands there."""
        is_same = self.offset == 0 or is_same_file(self._file_id, state.file_id)
        self._file_id = state.file_id
        if is_same and self._stands(file, state, self._marks[-1]):
            return
        standing = [mark for mark in self._marks if is_same and self._stands(file, state, mark)]
        self._start_again_from(standing or [_BEGINNING])
        log.info("transcript was rewritten", extra={"file": self.file.path.name, "offset": self.offset})

    def _start_again_from(self, marks: list[_Mark]) -> None:
        self._generation += 1
        self._barren = range(0)
        self._marks = deque(marks, maxlen=_REMEMBERED_LINES)

    def _stands(self, file: BinaryIO, state: FileState, mark: _Mark) -> bool:
        return mark.offset <= state.size and hash_line_before(file, mark.offset) == mark.line_hash

    def _has_line(self, file: BinaryIO, state: FileState) -> bool:
        if state.size <= self.offset:
            return False
        is_known_barren = self._barren.start == self.offset and self._barren.stop <= state.size
        if not is_known_barren or len(self._barren) < _LONG_LINE_BYTES:
            return True
        if has_newline_from(file, self._barren.stop):
            return True
        self._barren = range(self.offset, file.tell())
        return False

    def _fill(self, file: BinaryIO) -> _Filling:
        filling = _Filling(self._limits, self._marks[-1])
        file.seek(self.offset)
        while not filling.is_full:
            line = file.readline(self._limits.line_bytes + 1)
            if line.endswith(b"\n"):
                reading = self._read(line, filling.position.state)
                if not filling.has_room_for(reading):
                    break
                filling.add(reading, length=len(line), line_hash=hash_line(line))
                continue
            skipped = skip_line(file, line) if len(line) > self._limits.line_bytes else None
            if skipped is None:
                self._barren = range(filling.position.offset, file.tell())
                break
            more, line_hash = skipped
            reading = LineReading(skipped=TOO_LONG, state=filling.position.state)
            filling.add(reading, length=len(line) + more, line_hash=line_hash)
        return filling

    def _read(self, line: bytes, state: str) -> LineReading:
        try:
            reading = self._plugin.read_line(line, self.file.context, state, self._project_of)
        except Exception:  # noqa: BLE001 - a fault in a reader, perhaps someone else's, costs this line only; counted.
            # No traceback: its last line may quote the transcript.
            log.warning("reader failed on a line", extra={"client": self._plugin.name, "file": self.file.path.name})
            return LineReading(skipped=READER_FAILED, state=state)
        if not _is_sound(reading.state):
            log.warning("reader carries too much", extra={"client": self._plugin.name, "file": self.file.path.name})
            reading = replace(reading, state="", skipped=UNSOUND_STATE)
        return _bounded(reading, self._limits)

    def _cursor(self, mark: _Mark) -> TranscriptCursor:
        return TranscriptCursor(
            client=self._plugin.name,
            path=path_key(self.file.path),
            file_id=self._file_id,
            offset=mark.offset,
            line_hash=mark.line_hash,
            generation=self._generation,
            parser_version=self._plugin.parser_version,
            lines_read=mark.lines_read,
            skipped=mark.coverage.as_pairs(),
            reader_state=mark.state,
        )


_BEGINNING: Final = _Mark(offset=0, line_hash="", lines_read=0, coverage=Coverage())


def _mark_of(cursor: TranscriptCursor) -> _Mark:
    return _Mark(cursor.offset, cursor.line_hash, cursor.lines_read, Coverage(cursor.skipped), cursor.reader_state)


def _bounded(reading: LineReading, limits: TailLimits) -> LineReading:
    """Return the reading with no more events than fit into one batch; the first ones are kept."""
    weight = 0
    for count, event in enumerate(reading.events):
        weight += _weight_bytes(event)
        if count >= limits.batch_events or weight > limits.batch_text_bytes:
            return replace(reading, events=reading.events[:count], skipped=TOO_MUCH_ON_LINE)
    return reading


def _is_sound(state: str) -> bool:
    """Tell whether a state can be kept with the cursor; lone surrogates cannot."""
    try:
        return len(state.encode()) <= MAX_READER_STATE_BYTES
    except UnicodeEncodeError:
        return False


def _weight_bytes(event: EvidenceEvent) -> int:
    """Return about how much an event takes on the wire."""
    payload = event.payload
    weight = _BARE_EVENT_BYTES
    if isinstance(payload, TextSpoken | ToolCalled | ToolAnswered):
        weight += len(payload.text.encode())
    if isinstance(payload, ToolAnswered):
        weight += _ID_BYTES * len(payload.shown.memory_ids)
    return weight
