"""Counts what was read of a transcript and what could not be, for its cursor. Holds names and numbers, never text.

The counters follow from the lines alone, so they are the same however often reading was interrupted:

- `recalls_called`, `remembers_called`, `tools_called`: calls seen;
- `results`, `results_with_memories`, `results_unknown.<reason>`: results of any tool, those with ids of our shape, and
  those that cannot be read;
- `skipped.<reason>`: lines from which nothing, or not everything, was taken;
- `unrecognised.<kind>`: kinds of records that the reader does not know. New ones mean that the client has changed;
- `texts`: what was said;
- `version.<version>`: of the client, with the number of the line that named it last.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from client_plugins.kit.plugin import LineReading
from sidecar.domain.coverage import SKIPPED, UNRECOGNISED, VERSION
from sidecar.domain.evidence import (
    EvidencePayload,
    MemoryCited,
    RecallCalled,
    RememberCalled,
    ShownState,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
)

_MAX_KINDS: Final = 24
_MAX_VERSIONS: Final = 8
# What a record calls itself is text of others; anything that does not look like a name is not repeated.
_KIND: Final = re.compile(r"[A-Za-z0-9_.:\-]{1,48}")


class Coverage:
    """The counters of one file."""

    def __init__(self, counts: Iterable[tuple[str, int]] = ()) -> None:
        self._counts: Counter[str] = Counter(dict(counts))

    def copy(self) -> "Coverage":
        """Return counters that go their own way from here."""
        return Coverage(self._counts.items())

    def as_pairs(self) -> tuple[tuple[str, int], ...]:
        """Return name and count, by name."""
        return tuple(sorted(self._counts.items()))

    def skip(self, reason: str) -> None:
        """Count a line that was left out."""
        self._counts[SKIPPED + reason] += 1

    def add(self, reading: LineReading, *, line_number: int) -> None:
        """Count what a line said; the first line of a file has number 1."""
        for event in reading.events:
            self._add_payload(event.payload)
        if reading.skipped is not None:
            self.skip(reading.skipped)
        if reading.unrecognised:
            self._counts[self._unrecognised_name(reading.unrecognised)] += 1
        self._note_version(reading, line_number)

    def _note_version(self, reading: LineReading, line_number: int) -> None:
        version = reading.client_version or next((e.thread.client_version for e in reading.events), "")
        if not _KIND.fullmatch(version):
            return
        self._counts[VERSION + version] = line_number
        seen = [(line, name) for name, line in self._counts.items() if name.startswith(VERSION)]
        if len(seen) > _MAX_VERSIONS:
            del self._counts[min(seen)[1]]

    def _add_payload(self, payload: EvidencePayload) -> None:
        if isinstance(payload, TextSpoken):
            self._counts["texts"] += 1
        elif isinstance(payload, RecallCalled):
            self._counts["recalls_called"] += 1
        elif isinstance(payload, RememberCalled):
            self._counts["remembers_called"] += 1
        elif isinstance(payload, ToolCalled):
            self._counts["tools_called"] += 1
        elif isinstance(payload, ToolAnswered):
            self._add_result(payload)
        elif isinstance(payload, MemoryCited):
            self._counts["memories_cited"] += 1

    def _add_result(self, answer: ToolAnswered) -> None:
        if answer.shown.state is ShownState.CANNOT_RECORD:
            # The reader's own statement; no result was read.
            return
        self._counts["results"] += 1
        if answer.shown.state is ShownState.IDS:
            self._counts["results_with_memories"] += 1
        elif answer.shown.reason is not None:
            self._counts[f"results_unknown.{answer.shown.reason}"] += 1

    def _unrecognised_name(self, kind: str) -> str:
        name = UNRECOGNISED + (kind if _KIND.fullmatch(kind) else "nameless")
        known = [key for key in self._counts if key.startswith(UNRECOGNISED)]
        return name if name in known or len(known) < _MAX_KINDS else f"{UNRECOGNISED}other"
