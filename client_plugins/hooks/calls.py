"""Turns wishes into calls of the contract, and the answer to a briefing into text. Pure but for the project's name."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from client_plugins.hooks.door import Call
from client_plugins.hooks.payload import JsonObject, text_field
from client_plugins.hooks.wishes import (
    AgentSaid,
    FileTouched,
    OwnToolAnswered,
    ReadTranscript,
    Session,
    SessionEnded,
    Wish,
)

BUILD_CONTEXT: Final = "BuildContext"
# With golden rules, of which there is room for a dozen, well below what clients take.
_BRIEFING_TOKENS: Final = 1_500
_PROMPT_TOKENS: Final = 800
# Of what agrees with a prompt no better than that, half is about something else; see `sidecar.domain.relevance`.
_PROMPT_RELEVANCE: Final = 0.5
_MAX_PROMPT_CHARACTERS: Final = 4_000
_CHANNEL_PATH: Final = "hooks"
# A session is told once, and whoever is ended before printing has told nothing.
_ONCE_PRINTED: Final = {"once_per_session": True, "await_acknowledgement": True}


def essentials(session: Session, *, is_retry: bool) -> Call:
    """Return the call for what an agent should know at the start of a session.

    Args:
        is_retry: Only if the hook that asked for it at the start did not come to print it.
    """
    request = {
        "kind": "CONTEXT_KIND_SESSION",
        "token_budget": _BRIEFING_TOKENS,
        **_ONCE_PRINTED,
        **({"only_unacknowledged": True} if is_retry else {}),
        "context": _context(session),
    }
    return Call(BUILD_CONTEXT, request)


def relevant(session: Session, prompt: str) -> Call:
    """Return the call for what is relevant to a prompt."""
    request = {
        "kind": "CONTEXT_KIND_TASK",
        "query": prompt[:_MAX_PROMPT_CHARACTERS],
        "token_budget": _PROMPT_TOKENS,
        # Those of the session's start were given already, and fewer than one cannot be asked for.
        "max_golden_rules": 1,
        "min_relevance": _PROMPT_RELEVANCE,
        **_ONCE_PRINTED,
        "context": _context(session),
    }
    return Call(BUILD_CONTEXT, request)


def printed(answer: JsonObject) -> Call:
    """Return the call that counts a briefing as given."""
    return Call("AcknowledgeContext", {"recall_id": text_field(answer, "recall_id")})


def report(session: Session, wishes: Sequence[Wish]) -> list[Call]:
    """Return the calls for all that needs no answer."""
    calls = [_call(session, wish) for wish in wishes if isinstance(wish, FileTouched | ReadTranscript | SessionEnded)]
    events = [event for wish in wishes for event in _events(session, wish)]
    if events and session.session:
        # A channel has no file; the cursor is there because every batch has one.
        cursor = {"client": session.client, "path": _CHANNEL_PATH}
        calls.append(Call("StreamEvidence", {"batch_id": 1, "cursor": cursor, "events": events}))
    return calls


def markdown(answer: JsonObject, *, max_bytes: int) -> str:
    """Return a briefing's text, whole lines of it where it is too long; the line that ends the fence stays.

    Every line of stored text begins with `> `, so that a cut between lines leaves all of them quoted.
    """
    text = text_field(answer, "markdown")
    if len(text.encode("utf-8", "replace")) <= max_bytes:
        return text
    *lines, closing = text.rstrip("\n").split("\n")
    left = max_bytes - len(closing.encode("utf-8", "replace")) - 1
    kept: list[str] = []
    for line in lines:
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([*kept, closing]) + "\n"


def _call(session: Session, wish: FileTouched | ReadTranscript | SessionEnded) -> Call:
    if isinstance(wish, SessionEnded):
        return Call("EndSession", {"client": wish.client, "session": session.session})
    if isinstance(wish, ReadTranscript):
        wanted = {"client": session.client, "transcript_path": wish.path, "session": session.session}
        return Call("RequestReading", wanted)
    request = {
        "path": wish.path,
        "action": f"FILE_ACTION_{wish.action}",
        "project_root": wish.project_root,
        "context": _context(session),
    }
    return Call("AddFileActivity", request)


def _events(session: Session, wish: Wish) -> list[JsonObject]:
    if not isinstance(wish, OwnToolAnswered | AgentSaid):
        return []
    thread = _context(session)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if isinstance(wish, AgentSaid):
        return [{"event_id": wish.event_id, "thread": thread, "time": now, "agent_text": {"text": wish.text}}]
    called: JsonObject = (
        {"remember_called": {"call_id": wish.call_id}}
        if wish.tool == "remember"
        else {"recall_called": {"call_id": wish.call_id, "tool": wish.tool}}
    )
    answered = {"call_id": wish.call_id, "shown": _shown(wish)}
    return [
        {"event_id": wish.call_id, "thread": thread, "time": now, **called},
        {"event_id": f"{wish.call_id}:result", "thread": thread, "time": now, "tool_answered": answered},
    ]


def _shown(wish: OwnToolAnswered) -> JsonObject:
    if wish.is_error:
        return {"unknown": {"reason": "UNKNOWN_REASON_ERRORED"}}
    return {"ids": {"memory_ids": list(wish.memory_ids)}} if wish.memory_ids else {"nothing": {}}


def _context(session: Session) -> JsonObject:
    """Return who calls; `SessionThread` has the same fields."""
    return {"client": session.client, "session": session.session, "project": _project(session.cwd)}


def _project(cwd: str) -> str:
    from client_plugins.kit.project import project_name  # noqa: PLC0415 - half of all hooks need no project

    try:
        home = Path.home()
    except RuntimeError:
        # No HOME, and no user of our number either.
        home = Path(os.sep)
    return project_name(cwd, home=home)
