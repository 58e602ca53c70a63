"""Checks a hooks.json as Cursor does, which ignores the whole file, silently, if one entry is invalid."""

from typing import Final

from sidecar.api.plain import JsonValue

VERSION: Final = 1
_COMMAND: Final = "command"
_PROMPT: Final = "prompt"
# Name of an entry's value -> what it must be, and how that is called. Values that are not here are left to Cursor.
_KINDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "timeout": ((int, float), "a number of seconds"),
    "matcher": ((str, dict), "a pattern"),
    "failClosed": ((bool,), "true or false"),
    "loop_limit": ((int, type(None)), "a number or null"),
}


def problem_of_hooks(document: JsonValue) -> str:
    """Return what makes Cursor ignore the file, naming the entry; empty if nothing does."""
    if not isinstance(document, dict):
        return "it is not an object"
    if document.get("version") != VERSION or isinstance(document.get("version"), bool):
        return f"`version` is {document.get('version')!r}, Cursor knows {VERSION} only"
    events = document.get("hooks")
    if not isinstance(events, dict):
        return "`hooks` is not an object"
    for event, entries in events.items():
        if not isinstance(entries, list):
            return f"hooks.{event} is not a list"
        for number, entry in enumerate(entries):
            problem = _problem_of_entry(entry)
            if problem:
                return f"hooks.{event}[{number}] {problem}"
    return ""


def _problem_of_entry(entry: JsonValue) -> str:
    if not isinstance(entry, dict):
        return "is not an object"
    kind = entry.get("type", _COMMAND)
    if kind not in (_COMMAND, _PROMPT):
        return f"has the type {kind!r}, which Cursor does not know"
    text = entry.get(_PROMPT if kind == _PROMPT else _COMMAND)
    if not isinstance(text, str) or not text.strip():
        return f"has no `{kind}`"
    if "//" in text:
        return f"has `//` in its {kind}, which Cursor takes for the beginning of a comment"
    for name, (types, called) in _KINDS.items():
        value = entry.get(name)
        is_odd_bool = isinstance(value, bool) and bool not in types
        if name in entry and (is_odd_bool or not isinstance(value, types)):
            return f"has a `{name}` that is not {called}"
    return ""
