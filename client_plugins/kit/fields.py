"""Takes values out of records of others: every field is optional and may be of any type. Knows no client."""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from client_plugins.kit.json_line import JsonObject

# Ids go into keys and logs; what does not look like one is not used as one.
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}")
_UNKNOWN_TIME: Final = datetime.fromtimestamp(0, UTC)


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
