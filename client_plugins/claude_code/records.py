"""The shapes of Claude Code's transcript records, as far as they are used. Every field is optional and may be wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from client_plugins.kit.fields import text_field
from client_plugins.kit.json_line import JsonObject

SYNTHETIC_MODEL: Final = "<synthetic>"
INLINE_AGENT: Final = "sidechain"
"""Agent id for sub-agent turns inside the main file, which had none up to 1.0."""

SPEAKING_KINDS: Final = frozenset({"assistant", "user"})
KNOWN_KINDS: Final = SPEAKING_KINDS | frozenset(
    {
        *(
            "summary",
            "system",
            "progress",
            "attachment",
            "queue-operation",
            "file-history-snapshot",
            "started",
            "result",
        ),
        *("custom-title", "ai-title", "agent-name", "agent-setting", "last-prompt", "mode", "permission-mode"),
        *("pr-link", "frame-link", "bridge-session", "cost-state", "atis-latch", "relocated", "worktree-state"),
    }
)
"""`type` of records seen from 1.0 to 2.1.239. Of those that do not speak, nothing is taken."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a message: its kind, and the object it is."""

    kind: str
    content: JsonObject


def blocks_of(content: object) -> Iterator[Block]:
    """Give the blocks of a message's content, which is a string or a list."""
    if isinstance(content, str):
        yield Block("text", {"text": content})
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, Mapping):
                yield Block(text_field(item, "type"), item)
            elif isinstance(item, str):
                yield Block("text", {"text": item})
