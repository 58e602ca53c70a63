"""Where Claude Code keeps its transcripts, by the paths alone. Opens nothing."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from client_plugins.kit.fields import as_identifier
from client_plugins.kit.plugin import TranscriptContext

CONFIG_FOLDER_VARIABLE: Final = "CLAUDE_CONFIG_DIR"
_SUFFIX: Final = ".jsonl"
_AGENT_PREFIX: Final = "agent-"
# Repeats its parent's messages word for word.
_COMPACTING_AGENT_PREFIX: Final = "agent-acompact-"
_AGENT_FOLDER: Final = "subagents"
# <project>/<session>/subagents/workflows/<workflow>/agent-<id>.jsonl
_MAX_PARTS: Final = 6


def transcript_roots(environment: Mapping[str, str]) -> list[Path]:
    """Return the `projects` folder of the configuration folder; an empty or relative setting is ignored."""
    configured = environment.get(CONFIG_FOLDER_VARIABLE, "")
    folder = Path(configured).expanduser() if configured else Path.home() / ".claude"
    return [folder / "projects"] if folder.is_absolute() else []


def transcript_at(parts: Sequence[str]) -> TranscriptContext | None:
    """Return what a path below the root says: `<project>/<session>.jsonl` or a sub-agent's file; else None."""
    name = parts[-1] if parts else ""
    if not name.endswith(_SUFFIX) or len(parts) > _MAX_PARTS:
        return None
    stem = name.removesuffix(_SUFFIX)
    if len(parts) == 2:
        return TranscriptContext(session=as_identifier(stem))
    if len(parts) < 4 or parts[2] != _AGENT_FOLDER or not _is_agent(stem):
        return None
    return TranscriptContext(as_identifier(parts[1]), agent_id=as_identifier(stem.removeprefix(_AGENT_PREFIX)))


def may_hold_transcripts(parts: Sequence[str]) -> bool:
    """Tell whether a folder below the root is one that transcripts or sub-agents' files lie in or under."""
    return len(parts) < 3 or (len(parts) < _MAX_PARTS and parts[2] == _AGENT_FOLDER)


def _is_agent(stem: str) -> bool:
    return stem.startswith(_AGENT_PREFIX) and not stem.startswith(_COMPACTING_AGENT_PREFIX)
