"""Where Codex keeps its transcripts, by the paths alone. Opens nothing."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from client_plugins.kit.fields import as_identifier
from client_plugins.kit.plugin import TranscriptContext
from client_plugins.kit.transcript_file import COMPRESSED_SUFFIX

HOME_VARIABLE: Final = "CODEX_HOME"
# Archiving moves a file from the one, below year, month and day, to the other, which is flat.
_FOLDERS: Final = ("sessions", "archived_sessions")
_DAY_PARTS: Final = 3
_NAME: Final = re.compile(r"rollout-.+\.jsonl")
_THREAD: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)


def transcript_roots(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders of open and archived sessions; an empty or relative setting is ignored."""
    configured = environment.get(HOME_VARIABLE, "")
    home = Path(configured).expanduser() if configured else Path.home() / ".codex"
    return [home / folder for folder in _FOLDERS] if home.is_absolute() else []


def transcript_at(parts: Sequence[str]) -> TranscriptContext | None:
    """Return what a path below a root says: `[<year>/<month>/<day>/]rollout-<time>-<thread>.jsonl[.zst]`; else None.

    The session is the thread that the name tells; the head of the file says whose sub-agent it is.
    """
    name = parts[-1].removesuffix(COMPRESSED_SUFFIX) if parts else ""
    if not _NAME.fullmatch(name) or not _is_day(parts[:-1]):
        return None
    stem = name.removesuffix(".jsonl")
    thread = _THREAD.search(stem)
    return TranscriptContext(session=as_identifier(thread.group() if thread else stem))


def may_hold_transcripts(parts: Sequence[str]) -> bool:
    """Tell whether a folder below a root is a year, a month or a day."""
    return len(parts) <= _DAY_PARTS and all(part.isdecimal() for part in parts)


def _is_day(folders: Sequence[str]) -> bool:
    return len(folders) in (0, _DAY_PARTS) and may_hold_transcripts(folders)
