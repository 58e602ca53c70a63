"""What a client hands to a hook, read without trust: every field may be missing, of another type, or hostile. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Final

JsonObject = Mapping[str, object]
"""Nothing in it is to be trusted: check the type of every value before use."""

MAX_PATH_CHARACTERS: Final = 4_096
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}")


def decode_object(content: bytes | str) -> JsonObject:
    """Return the JSON object that a text holds; an empty one if it holds none."""
    try:
        value = json.loads(content)
    # A RecursionError comes from thousands of brackets.
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def text_field(payload: JsonObject, key: str) -> str:
    """Return a field that should be a string; empty if it is not there or something else."""
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def object_field(payload: JsonObject, key: str) -> JsonObject:
    """Return a field that should be an object; empty if it is not there or something else."""
    value = payload.get(key)
    return value if isinstance(value, Mapping) else {}


def identifier_field(payload: JsonObject, key: str) -> str:
    """Return a field that should be an id; empty if it does not look like one."""
    value = text_field(payload, key)
    return value if _IDENTIFIER.fullmatch(value) else ""


def path_field(payload: JsonObject, key: str) -> str:
    """Return a field that should be a path; empty if it can be none."""
    value = text_field(payload, key)
    return value if is_path(value) else ""


def is_path(text: str) -> bool:
    """Tell whether a text could be a path."""
    return 0 < len(text) <= MAX_PATH_CHARACTERS and "\0" not in text and bool(text.strip())


def is_of_codex(payload: JsonObject) -> bool:
    """Tell whether this comes from Codex, which may run hooks of a Claude Code plugin."""
    name = re.split(r"[\\/]", text_field(payload, "transcript_path"))[-1]
    return "turn_id" in payload or name.startswith("rollout-")


def is_of_cursor(payload: JsonObject) -> bool:
    """Tell whether this comes from Cursor, which also runs the hooks of Claude Code's settings."""
    return "cursor_version" in payload or text_field(payload, "hook_event_name")[:1].islower()
