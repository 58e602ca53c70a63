"""Reads samples as the watcher would, without a sidecar: line by line, or through the kit's tailer from a real file."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from client_plugins.kit.plugin import ClientPlugin, LineReading, TranscriptContext
from client_plugins.kit.tailer import TranscriptFile, TranscriptTail
from sidecar.domain.evidence import (
    EvidenceEvent,
    RecallCalled,
    RememberCalled,
    Shown,
    TextSpoken,
    ToolAnswered,
    TranscriptCursor,
)
from sidecar.testing.conformance.cases import SampleFile

EventKey = tuple[str, str]
"""Kind and id of an event: what tells it from every other one."""

# Files are put back to it after every write, since a reader may take times from there.
_WRITTEN_AT: Final = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)


def project_of(cwd: str) -> str:
    """Name the project of a working directory without looking at this machine's disk."""
    return cwd.replace("\\", "/").rstrip("/").rpartition("/")[2]


def context_of(plugin: ClientPlugin, file: SampleFile) -> TranscriptContext:
    """Return what the plugin knows of a file by its path; fails if it does not take it for a transcript."""
    context = plugin.transcript_at(file.parts)
    assert context is not None, f"transcript_at does not know {'/'.join(file.parts)}"
    return TranscriptContext(context.session, context.agent_id, context.form, _WRITTEN_AT)


def fold(
    plugin: ClientPlugin, lines: Iterable[bytes], context: TranscriptContext, state: str = ""
) -> Iterator[LineReading]:
    """Give the reading of each line, its state passed on to the next."""
    for line in lines:
        reading = plugin.read_line(line, context, state, project_of)
        state = reading.state
        yield reading


def read_file(plugin: ClientPlugin, file: SampleFile) -> list[EvidenceEvent]:
    """Return all events of a file in order, repetitions included."""
    lines = file.content.splitlines(keepends=True)
    return [event for reading in fold(plugin, lines, context_of(plugin, file)) for event in reading.events]


def by_key(events: Iterable[EvidenceEvent]) -> dict[EventKey, EvidenceEvent]:
    """Return each event once, the first of its key, as the ledger takes them."""
    found: dict[EventKey, EvidenceEvent] = {}
    for event in events:
        found.setdefault((type(event.payload).__name__, event.event_id), event)
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """What events say, calls and results brought together as the ledger does; ids left out."""

    recalls: tuple[tuple[str, Shown | None], ...]
    remembers: int
    texts: tuple[str, ...]


def found_in(events: Iterable[EvidenceEvent]) -> Found:
    """Return what events say."""
    payloads = [event.payload for event in by_key(events).values()]
    answers: Mapping[str, Shown] = {one.call_id: one.shown for one in payloads if isinstance(one, ToolAnswered)}
    return Found(
        recalls=tuple((one.tool, answers.get(one.call_id)) for one in payloads if isinstance(one, RecallCalled)),
        remembers=sum(isinstance(one, RememberCalled) for one in payloads),
        texts=tuple(one.text for one in payloads if isinstance(one, TextSpoken)),
    )


@dataclass
class TailedFile:
    """A real file that is read as the watcher would, its cursor and events kept as the sidecar would."""

    plugin: ClientPlugin
    path: Path
    context: TranscriptContext
    cursor: TranscriptCursor | None = None
    events: dict[EventKey, EvidenceEvent] = field(default_factory=dict)
    _tail: TranscriptTail | None = None

    def write(self, content: bytes) -> None:
        """Put other content into the file, in place."""
        self.path.write_bytes(content)
        os.utime(self.path, (_WRITTEN_AT.timestamp(), _WRITTEN_AT.timestamp()))

    def restart(self) -> None:
        """Forget everything but what the sidecar keeps."""
        self._tail = None

    def read(self) -> None:
        """Read to the end of what is there."""
        if self._tail is None:
            file = TranscriptFile(self.path, self.path.parent.resolve(), self.context)
            self._tail = TranscriptTail(file, self.plugin, project_of=project_of, cursor=self.cursor)
        while (batch := self._tail.next_batch()) is not None:
            for key, event in by_key(batch.events).items():
                self.events.setdefault(key, event)
            self.cursor = batch.cursor
            self._tail.acknowledge()
