"""The shapes of Claude Code's transcript records, as far as they are used. Every field is optional and may be wrong."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

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

# Ids go into keys and logs; what does not look like one is not used as one.
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}")
_UNKNOWN_TIME: Final = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a message: its kind, and the object it is."""

    kind: str
    content: JsonObject


def text_field(record: JsonObject, key: str) -> str:
    """Return a field that should be a string; empty if it is not there or something else."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def object_field(record: JsonObject, key: str) -> JsonObject:
    """Return a field that should be an object; empty if it is not there or something else."""
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def identifier_field(record: JsonObject, key: str) -> str:
    """Return a field that should be an id; empty if it does not look like one."""
    value = text_field(record, key)
    return value if _IDENTIFIER.fullmatch(value) else ""


def as_identifier(value: str) -> str:
    """Return a value that must serve as an id. An odd one is hashed, so that a call and its result still meet."""
    return value if not value or _IDENTIFIER.fullmatch(value) else f"odd-{digest(value)}"


def digest(text: str) -> str:
    """Return 16 hexadecimal digits that stand for a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def recorded_at(record: JsonObject) -> datetime:
    """Return the record's time, UTC; 1970 if it does not say, so that every reading gives the same."""
    try:
        at = datetime.fromisoformat(text_field(record, "timestamp"))
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return _UNKNOWN_TIME


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
