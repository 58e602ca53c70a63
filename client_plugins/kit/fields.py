"""Takes values out of a transcript's records. Every field is optional and may be wrong; nothing here ever fails."""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from client_plugins.kit.json_line import JsonObject

UNKNOWN_TIME: Final = datetime.fromtimestamp(0, UTC)
"""Of a record that does not say when: the same at every reading."""

# Ids go into keys and logs; what does not look like one is not used as one.
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}")


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


def digest(*texts: str) -> str:
    """Return 16 hexadecimal digits that stand for one text, or for several in their order."""
    whole = "\x1f".join(texts)
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def recorded_at(record: JsonObject) -> datetime:
    """Return the record's time, UTC; `UNKNOWN_TIME` if it does not say, so that every reading gives the same."""
    try:
        at = datetime.fromisoformat(text_field(record, "timestamp"))
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return UNKNOWN_TIME
