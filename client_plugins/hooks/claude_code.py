"""Payloads of Claude Code's hooks. Pure."""

from collections.abc import Iterator
from typing import Final

from client_plugins.hooks.payload import (
    JsonObject,
    identifier_field,
    is_of_codex,
    is_of_cursor,
    object_field,
    path_field,
    text_field,
)
from client_plugins.hooks.wishes import (
    Briefing,
    FileTouched,
    Hook,
    HookClient,
    ReadTranscript,
    Session,
    SessionEnded,
    Wish,
)

CLIENT: Final = "claude-code"
# Longer ones go to a file instead of to the model, from 10,000 characters in Claude Code and 2,500 tokens in Codex.
MAX_BRIEFING_BYTES: Final = 9_000

# A resumed, forked or compacted session was briefed when it began.
_BEGINNINGS: Final = frozenset({"startup", "clear"})
_SESSION_END: Final = "SessionEnd"
_ENDS: Final = frozenset({"Stop", "SubagentStop", _SESSION_END})
_ACTIONS: Final = {"Write": "WRITE", "Edit": "EDIT", "MultiEdit": "MULTIEDIT", "NotebookEdit": "EDIT"}


def read(payload: JsonObject) -> Hook | None:
    """See `HookClient.read`."""
    if is_of_cursor(payload) or is_of_codex(payload):
        return None
    event = text_field(payload, "hook_event_name")
    session = session_of(payload, CLIENT)
    if event == "PostToolUse":
        return Hook(session, tuple(_touched(payload, session)))
    return read_session_event(payload, event, session)


def framed(event: str, text: str) -> JsonObject:
    """See `HookClient.framed`."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def session_of(payload: JsonObject, client: str) -> Session:
    """Return whose hook it is, as Claude Code and Codex say it."""
    return Session(client, identifier_field(payload, "session_id"), path_field(payload, "cwd"))


def read_session_event(payload: JsonObject, event: str, session: Session) -> Hook | None:
    """Return what an event of the session's course says; they are the same in Claude Code and Codex."""
    if event == "SessionStart":
        begins = text_field(payload, "source") in _BEGINNINGS
        return Hook(session, (Briefing(event),), is_start=True) if begins else None
    if event == "UserPromptSubmit":
        prompt = text_field(payload, "prompt").strip()
        # A command of the client's own says nothing of the work.
        return Hook(session, (Briefing(event, prompt),)) if prompt and not prompt.startswith("/") else None
    if event not in _ENDS:
        return None
    said_end = (SessionEnded(session.client),) if event == _SESSION_END and session.session else ()
    return Hook(session, (*_ended(payload), *said_end))


def _ended(payload: JsonObject) -> Iterator[Wish]:
    # A sub-agent's own file comes beside that of its session; in Codex they can be the same.
    paths = (path_field(payload, "agent_transcript_path"), path_field(payload, "transcript_path"))
    yield from (ReadTranscript(path) for path in dict.fromkeys(paths) if path)


def _touched(payload: JsonObject, session: Session) -> Iterator[Wish]:
    action = _ACTIONS.get(text_field(payload, "tool_name"))
    arguments = object_field(payload, "tool_input")
    path = path_field(arguments, "file_path") or path_field(arguments, "notebook_path")
    if action is not None and path:
        yield FileTouched(path, action, session.cwd)


HOOKS: Final = HookClient(read, framed, MAX_BRIEFING_BYTES)
