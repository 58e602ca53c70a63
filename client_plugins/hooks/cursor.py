"""Payloads of Cursor's hooks. Pure.

Cursor's transcripts hold no results, so what our own tools showed is known from their hooks alone. That is a channel
of its own, named `cursor-hooks`, with its own sessions and coverage: nothing it reports is counted with what the reader
of transcripts reports as `cursor`.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from client_plugins.hooks.payload import (
    JsonObject,
    decode_object,
    identifier_field,
    is_of_cursor,
    is_path,
    path_field,
    text_field,
)
from client_plugins.hooks.wishes import (
    AgentSaid,
    Briefing,
    FileTouched,
    Hook,
    HookClient,
    OwnToolAnswered,
    ReadTranscript,
    Session,
    SessionEnded,
    Wish,
)
from sidecar.domain.ids import RECALL_PREFIX, find_memory_ids

CLIENT: Final = "cursor"
HOOK_CHANNEL: Final = "cursor-hooks"
MAX_BRIEFING_BYTES: Final = 9_000

_OWN_TOOLS: Final = {
    "recall": "recall",
    "memory_recall": "recall",
    "build_context": "build_context",
    "memory_context": "build_context",
    "remember": "remember",
    "memory_remember": "remember",
}
_START: Final = "sessionStart"
_EVIDENCE: Final = frozenset({"postToolUse", "afterMCPExecution", "afterAgentResponse"})
_MCP_PREFIX: Final = "MCP:"
_MAX_IDS: Final = 1_000
_MAX_TEXT_CHARACTERS: Final = 8_000


def read(payload: JsonObject) -> Hook | None:
    """See `HookClient.read`."""
    event = text_field(payload, "hook_event_name")
    wishes = _WISHES.get(event)
    if wishes is None or not is_of_cursor(payload):
        return None
    client = HOOK_CHANNEL if event in _EVIDENCE else CLIENT
    session = _session(payload, client)
    return Hook(session, tuple(wishes(payload, session)), is_start=event == _START)


def framed(event: str, text: str) -> JsonObject:
    """See `HookClient.framed`; only `sessionStart` takes a context."""
    del event
    return {"additional_context": text}


def _session(payload: JsonObject, client: str) -> Session:
    conversation = identifier_field(payload, "conversation_id") or identifier_field(payload, "session_id")
    return Session(client, conversation, path_field(payload, "cwd") or next(iter(_workspaces(payload)), ""))


def _workspaces(payload: JsonObject) -> list[str]:
    roots = payload.get("workspace_roots")
    return [root for root in roots if isinstance(root, str) and is_path(root)] if isinstance(roots, list) else []


def _begun(payload: JsonObject, session: Session) -> Iterator[Wish]:
    del payload, session
    # It is not sent for a session that is resumed.
    yield Briefing(_START)


def _ended(payload: JsonObject, session: Session) -> Iterator[Wish]:
    del session
    path = path_field(payload, "transcript_path")
    if path:
        yield ReadTranscript(path)


def _closed(payload: JsonObject, session: Session) -> Iterator[Wish]:
    yield from _ended(payload, session)
    if session.session:
        yield from (SessionEnded(client) for client in (CLIENT, HOOK_CHANNEL))


def _touched(payload: JsonObject, session: Session) -> Iterator[Wish]:
    path = path_field(payload, "file_path")
    if path:
        around = (root for root in _workspaces(payload) if path.startswith(root.rstrip("/") + "/"))
        yield FileTouched(path, "EDIT", next(around, session.cwd))


def _said(payload: JsonObject, session: Session) -> Iterator[Wish]:
    del session
    text = text_field(payload, "text")
    if text.strip():
        yield AgentSaid(_digest(*_turn(payload), text), text[:_MAX_TEXT_CHARACTERS])


def _answered(payload: JsonObject, session: Session) -> Iterator[Wish]:
    del session
    tool = _OWN_TOOLS.get(text_field(payload, "tool_name").removeprefix(_MCP_PREFIX))
    if tool is None:
        return
    output = text_field(payload, "tool_output") or text_field(payload, "result_json")
    texts, is_error = _result(output)
    ids = tuple(find_memory_ids(_without_escapes("\n".join(texts))))[:_MAX_IDS]
    # The tool's name comes without its server's, and other servers have a `recall` too: ours says what it is.
    if is_error or ids or tool == "build_context" or any(RECALL_PREFIX in text for text in texts):
        call_id = _digest(*_turn(payload), tool, _canonical(payload.get("tool_input")), *texts)
        yield OwnToolAnswered(call_id, tool, () if is_error else ids, is_error)


def _result(output: str) -> tuple[list[str], bool]:
    """Return the texts of a result, and whether it is an error."""
    result = decode_object(output)
    content = result.get("content")
    if not isinstance(content, list):
        return [output], False
    texts = [text_field(part, "text") for part in content if isinstance(part, Mapping)]
    return texts, result.get("isError") is True


def _turn(payload: JsonObject) -> tuple[str, str]:
    return text_field(payload, "conversation_id"), text_field(payload, "generation_id")


def _canonical(arguments: object) -> str:
    """Return a tool's input in one form: one hook has it as an object, another as JSON text."""
    if isinstance(arguments, str):
        arguments = decode_object(arguments) or arguments
    return json.dumps(arguments, sort_keys=True)


def _without_escapes(text: str) -> str:
    # JSON inside a string leaves `\n` as two characters, and the `n` would stick to an id that follows.
    return text.replace("\\n", " ").replace("\\t", " ").replace("\\r", " ")


def _digest(*parts: str) -> str:
    """Return an id made of what happened: Cursor's own are not unique, and may hold a line feed."""
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return "hook-" + hashlib.blake2b(joined, digest_size=16).hexdigest()


_WISHES: Final[Mapping[str, Callable[[JsonObject, Session], Iterator[Wish]]]] = {
    _START: _begun,
    "postToolUse": _answered,
    "afterMCPExecution": _answered,
    "afterAgentResponse": _said,
    "afterFileEdit": _touched,
    "stop": _ended,
    "sessionEnd": _closed,
}
HOOKS: Final = HookClient(read, framed, MAX_BRIEFING_BYTES)
