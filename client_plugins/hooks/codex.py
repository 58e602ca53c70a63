"""Payloads of Codex's hooks, which it shaped after Claude Code's. Pure."""

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from client_plugins.hooks import claude_code
from client_plugins.hooks.payload import (
    JsonObject,
    is_of_codex,
    is_of_cursor,
    is_path,
    object_field,
    path_field,
    text_field,
)
from client_plugins.hooks.wishes import FileTouched, Hook, HookClient, Session, Wish

CLIENT: Final = "codex"

_ACTIONS: Final = {"Add": "WRITE", "Update": "EDIT", "Delete": "DELETE"}
# Lines of a patch that name a file; those of the files themselves begin with a space, `+` or `-`.
_PATCHED: Final = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|(Move to)): (.+?)[ \t\r]*$", re.MULTILINE)
_MAX_FILES: Final = 50
_WINDOWS_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
# By the names that the tool's argument has had; a patch may also be the whole input.
_PATCH_FIELDS: Final = ("command", "input", "patch")


def read(payload: JsonObject) -> Hook | None:
    """See `HookClient.read`."""
    # Codex may not have a transcript, but one of another name is another client's.
    if is_of_cursor(payload) or (path_field(payload, "transcript_path") and not is_of_codex(payload)):
        return None
    event = text_field(payload, "hook_event_name")
    session = claude_code.session_of(payload, CLIENT)
    if event == "PostToolUse":
        return Hook(session, tuple(_touched(payload, session)))
    return claude_code.read_session_event(payload, event, session)


def patched_files(patch: str) -> Iterator[tuple[str, str]]:
    """Give path and action of each file that a patch names, at most 50."""
    for number, found in enumerate(_PATCHED.finditer(patch)):
        if number >= _MAX_FILES:
            return
        kind, _, path = found.groups()
        if is_path(path):
            yield path, _ACTIONS.get(kind or "", "WRITE")


def _touched(payload: JsonObject, session: Session) -> Iterator[Wish]:
    tool = text_field(payload, "tool_name")
    if tool == "apply_patch":
        for path, action in patched_files(_patch(payload)):
            yield FileTouched(_absolute(path, session.cwd), action, session.cwd)
    elif tool in {"Edit", "Write"}:
        path = path_field(object_field(payload, "tool_input"), "file_path")
        if path:
            yield FileTouched(_absolute(path, session.cwd), tool.upper(), session.cwd)


def _patch(payload: JsonObject) -> str:
    arguments = object_field(payload, "tool_input")
    patches = (text_field(arguments, name) for name in _PATCH_FIELDS)
    return next(filter(None, patches), text_field(payload, "tool_input"))


def _absolute(path: str, cwd: str) -> str:
    """Return the path as seen from the session's folder, by its letters alone."""
    if path.startswith(("/", "\\")) or _WINDOWS_DRIVE.match(path) or not cwd:
        return path
    return posixpath.join(cwd, path)


HOOKS: Final = HookClient(read, claude_code.framed, claude_code.MAX_BRIEFING_BYTES)
