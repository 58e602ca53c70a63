"""Where Cursor keeps its transcripts, by the paths alone. Opens nothing.

Beside them lie databases that hold results, `store.db` and `state.vscdb`. They are not read: their form is nobody's
promise, they are locked while in use, and they hold whole files and outputs that are none of our business.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from client_plugins.kit.fields import as_identifier
from client_plugins.kit.plugin import TranscriptContext

JSON_LINES: Final = "jsonl"
PLAIN_TEXT: Final = "txt"
"""The form of the oldest transcripts."""

_TRANSCRIPTS: Final = "agent-transcripts"
_SUB_AGENTS: Final = "subagents"


def transcript_roots(environment: Mapping[str, str]) -> list[Path]:
    """Return the `projects` folder of the user's `.cursor`; Cursor has no variable that moves it."""
    del environment
    return [Path.home() / ".cursor" / "projects"]


def transcript_at(parts: Sequence[str]) -> TranscriptContext | None:
    """Return what a path below the root says; None if it is none of these.

    `<slug>/agent-transcripts/` and then `<id>/<id>.jsonl`, `<id>.jsonl`, `<id>.txt` or `<id>/subagents/<child>.jsonl`.
    """
    if len(parts) < 3 or parts[1] != _TRANSCRIPTS:
        return None
    stem, _, form = parts[-1].rpartition(".")
    if not stem or form not in (JSON_LINES, PLAIN_TEXT):
        return None
    if len(parts) == 3 or (len(parts) == 4 and form == JSON_LINES and parts[2] == stem):
        return TranscriptContext(as_identifier(stem), form=form)
    if len(parts) == 5 and parts[3] == _SUB_AGENTS and form == JSON_LINES:
        return TranscriptContext(as_identifier(parts[2]), agent_id=as_identifier(stem), form=form)
    return None


def may_hold_transcripts(parts: Sequence[str]) -> bool:
    """Tell whether a folder below the root is one that transcripts lie in or under."""
    expected = (None, _TRANSCRIPTS, None, _SUB_AGENTS)
    return len(parts) <= len(expected) and all(
        wanted in (None, part) for wanted, part in zip(expected, parts, strict=False)
    )
