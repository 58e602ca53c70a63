"""What is carried from line to line of a Cursor transcript: the turn, and how many of our calls it has. Pure.

Records hold neither ids nor times, so events are named by what they say and by the prompt that they answer. A prompt
that is written again, as after a compaction, goes on with the turn that it began; a text that stands twice in one turn
is one event. Our own calls are numbered within their turn, since an agent may well ask twice for the same.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from client_plugins.kit.fields import digest, text_field

# Of so many turns the calls are remembered; 27 bytes each stay far below what a state may take.
_MAX_TURNS: Final = 300
_TIMESTAMP: Final = re.compile(
    r"<timestamp>\s*(?:\w+,\s*)?(\w{3})\w*\.? (\d{1,2}),? (\d{4}),? (\d{1,2}):(\d{2})(?::\d{2})? ?([AP]M)?"
    r"(?: \(UTC(?:([+-]\d{1,2})(?::?(\d{2}))?)?\))?\s*</timestamp>"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class Turns:
    """Where in the conversation a line stands.

    Attributes:
        prompt: Digest of the prompt that is being answered; empty before the first.
        at: When it was given, UTC; None if it does not say.
        calls: How many calls of ours were seen, by digest of the prompt that they answer; the latest last.
        speaker: In plain text: who is speaking, empty for nobody who counts.
        is_call: In plain text: whether the lines are those of a call of another server's tool.
    """

    prompt: str = ""
    at: datetime | None = None
    calls: tuple[tuple[str, int], ...] = ()
    speaker: str = ""
    is_call: bool = False

    def prompted(self, raw_text: str) -> "Turns":
        """Return the turns with this prompt as the latest, which may have been given before."""
        return replace(self, prompt=digest(raw_text), at=prompt_time(raw_text))

    def numbered_call(self) -> tuple[int, "Turns"]:
        """Return which of the turn's calls of ours the next one is, from 0, and the turns with it counted."""
        counts = dict(self.calls)
        number = counts.pop(self.prompt, 0)
        counts[self.prompt] = number + 1
        return number, replace(self, calls=tuple(counts.items())[-_MAX_TURNS:])

    def to_state(self) -> str:
        """Return the turns as a reader's state."""
        at = int(self.at.timestamp()) if self.at else None
        return json.dumps([self.prompt, at, dict(self.calls), self.speaker, self.is_call], separators=(",", ":"))

    @classmethod
    def from_state(cls, state: str) -> "Turns":
        """Return the turns of a state; those of a file's beginning for an empty one or one of another form."""
        try:
            prompt, at, calls, speaker, is_call = json.loads(state)
            return cls(
                prompt=str(prompt),
                at=datetime.fromtimestamp(at, UTC) if at is not None else None,
                calls=tuple((str(name), int(count)) for name, count in calls.items()),
                speaker=str(speaker),
                is_call=bool(is_call),
            )
        except (ValueError, TypeError, AttributeError, OverflowError, OSError, RecursionError):
            return cls()


def prompt_time(raw_text: str) -> datetime | None:
    """Return the time that Cursor writes ahead of a prompt, to the minute, UTC; None if there is none."""
    found = _TIMESTAMP.search(raw_text[:400])
    if found is None or found[1].lower() not in _MONTHS:
        return None
    month, day, year, hour, minute = _MONTHS.index(found[1].lower()) + 1, *map(int, found.group(2, 3, 4, 5))
    if found[6]:
        hour = hour % 12 + (12 if found[6] == "PM" else 0)
    offset_hours, offset_minutes = int(found[7] or 0), int(found[8] or 0)
    offset = timedelta(hours=offset_hours, minutes=offset_minutes if offset_hours >= 0 else -offset_minutes)
    try:
        return datetime(year, month, day, hour, minute, tzinfo=timezone(offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def tool_name(name: str, arguments: Mapping[str, object]) -> str:
    """Return the name of the tool that was called; of another server's, as `mcp__<server>__<tool>`."""
    if name not in ("CallMcpTool", "CallDynamicTool"):
        return name
    tool = text_field(arguments, "toolName")
    server = text_field(arguments, "server") or text_field(arguments, "namespace")
    return f"mcp__{server}__{tool}" if tool else name
