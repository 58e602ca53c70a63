"""Reads lines of Cursor's JSON transcripts into neutral events. Pure: no files; what is carried is in the state.

Calls are seen, results are not: Cursor writes none. So of every recall it is said that what it showed cannot be
recorded, which is not the same as that it showed nothing.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Final

import orjson

from client_plugins.cursor.turns import Turns, tool_name
from client_plugins.kit.fields import UNKNOWN_TIME, digest, object_field, text_field
from client_plugins.kit.json_line import JsonObject, decode_line
from client_plugins.kit.plugin import LineReading, TranscriptContext
from client_plugins.kit.recognition import describe_call, is_remembering_tool, recalling_tool
from client_plugins.kit.texts import cut, render_input
from sidecar.domain.evidence import (
    EvidenceEvent,
    EvidencePayload,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
)

CLIENT: Final = "cursor"
PARSER_VERSION: Final = 1

_CANNOT_RECORD: Final = Shown(ShownState.CANNOT_RECORD)
_KINDS: Final = {"user": SliceKind.USER_TEXT, "assistant": SliceKind.AGENT_TEXT}
# Records that say how a turn ended, or what went wrong.
_SILENT_TYPES: Final = frozenset({"turn_ended", "error"})
_QUERY: Final = re.compile(r"<user_query>\s*(.*?)\s*(?:</user_query>|\Z)", re.DOTALL)
_TIMESTAMP: Final = re.compile(r"\s*<timestamp>[^<]*</timestamp>\s*")
# What Cursor writes as if the user had said it: lists of tools, open files, rules, attached skills, reminders.
_CLIENT_TEXT: Final = re.compile(r"\s*<[a-z][a-z0-9_-]*>")
_REDACTED: Final = "[REDACTED]"
# More of a text is neither kept nor needed to know it again, and copies of it would take a lot of memory.
_MAX_TEXT_CHARACTERS: Final = 1 << 18

Named = tuple[str, EvidencePayload]
"""An event's id and what happened."""


def read_line(line: bytes, context: TranscriptContext, state: str) -> LineReading:
    """Return what a line says; see `ClientPlugin.read_line`."""
    turns = Turns.from_state(state)
    decoded = decode_line(line)
    readings: list[LineReading] = []
    for record in decoded.records:
        reading, turns = _read_record(record, context, turns)
        readings.append(reading)
    reasons = [reading.skipped for reading in readings if reading.skipped] + [decoded.problem]
    return LineReading(
        events=tuple(event for reading in readings for event in reading.events),
        skipped=decoded.problem or reasons[0] or None,
        unrecognised=next((reading.unrecognised for reading in readings if reading.unrecognised), ""),
        state=turns.to_state() if turns != Turns() else "",
    )


def events_of(context: TranscriptContext, turns: Turns, named: list[Named]) -> tuple[EvidenceEvent, ...]:
    """Return the events of a place in the conversation; their time is that of its prompt, else the file's."""
    thread = SessionThread(CLIENT, context.session, context.agent_id)
    at = turns.at or context.written_at or UNKNOWN_TIME
    return tuple(EvidenceEvent(event_id, thread, at, payload) for event_id, payload in named)


def name_text(context: TranscriptContext, turns: Turns, kind: SliceKind, text: str) -> Named:
    """Return a text as an event that every repetition of it within its turn names alike."""
    return digest("text", *_place(context, turns), kind, text), TextSpoken(kind, cut(text))


def name_call(context: TranscriptContext, turns: Turns, name: str, arguments: JsonObject) -> tuple[list[Named], Turns]:
    """Return a call, and that it has no result, as events; and the turns after it."""
    is_ours = recalling_tool(name) is not None or is_remembering_tool(name)
    number = 0
    if is_ours:
        number, turns = turns.numbered_call()
    call_id = "call-" + digest(*_place(context, turns), name, _whole(arguments), str(number))
    named: list[Named] = [(call_id, describe_call(call_id, name, arguments))]
    if is_ours:
        named.append((f"{call_id}:result", ToolAnswered(call_id, _CANNOT_RECORD, "")))
    return named, turns


def _read_record(record: JsonObject, context: TranscriptContext, turns: Turns) -> tuple[LineReading, Turns]:
    role, kind = text_field(record, "role"), text_field(record, "type")
    if role not in _KINDS:
        is_known = not role and kind in _SILENT_TYPES
        return LineReading(skipped="silent", unrecognised="" if is_known else role or kind or "untyped"), turns
    content = object_field(record, "message").get("content")
    if not isinstance(content, str | list):
        return LineReading(skipped="no_content", unrecognised=f"{role}:no_content"), turns
    blocks = list(_blocks(content))
    if role == "user":
        return _read_prompt(blocks, context, turns)
    named: list[Named] = []
    unrecognised = ""
    for block in blocks:
        found, turns = _read_block(block, context, turns)
        named += found
        if not found and text_field(block, "type") not in ("text", "tool_use"):
            unrecognised = unrecognised or f"block:{text_field(block, 'type')}"
    skipped = None if named else "silent_block"
    return LineReading(events_of(context, turns, named), skipped, unrecognised), turns


def _read_prompt(blocks: list[JsonObject], context: TranscriptContext, turns: Turns) -> tuple[LineReading, Turns]:
    unknown = next((kind for block in blocks if (kind := text_field(block, "type")) not in ("text", "image")), None)
    unrecognised = "" if unknown is None else f"block:{unknown}"
    raw = "\n".join(text_field(block, "text")[:_MAX_TEXT_CHARACTERS] for block in blocks)[:_MAX_TEXT_CHARACTERS]
    text = spoken_prompt(raw)
    if not text:
        return LineReading(skipped="client_text" if raw.strip() else "silent_block", unrecognised=unrecognised), turns
    turns = turns.prompted(raw)
    named = [name_text(context, turns, SliceKind.USER_TEXT, text)]
    return LineReading(events_of(context, turns, named), unrecognised=unrecognised), turns


def spoken_prompt(raw: str) -> str:
    """Return what the user said in a prompt, without what Cursor wraps around it; empty if it is all Cursor's."""
    queries = _QUERY.findall(raw)
    if queries:
        return "\n".join(queries).strip()
    text = _TIMESTAMP.sub("", raw).strip()
    return "" if _CLIENT_TEXT.match(text) else text


def _read_block(block: JsonObject, context: TranscriptContext, turns: Turns) -> tuple[list[Named], Turns]:
    kind = text_field(block, "type")
    if kind == "text":
        text = text_field(block, "text")[:_MAX_TEXT_CHARACTERS].strip()
        # Cursor writes this in place of what the model thought, also at the end of a text.
        text = text.removesuffix(_REDACTED).strip()
        return ([name_text(context, turns, SliceKind.AGENT_TEXT, text)] if text else []), turns
    name = text_field(block, "name")
    if kind != "tool_use" or not name:
        return [], turns
    arguments = object_field(block, "input")
    name = tool_name(name, arguments)
    passed = object_field(arguments, "arguments") if name.startswith("mcp__") else arguments
    return name_call(context, turns, name, passed)


def _blocks(content: str | list[object]) -> Iterator[JsonObject]:
    for item in [content] if isinstance(content, str) else content:
        if isinstance(item, str):
            yield {"type": "text", "text": item}
        elif isinstance(item, dict):
            yield item


def _place(context: TranscriptContext, turns: Turns) -> tuple[str, str, str]:
    return context.session, context.agent_id, turns.prompt


def _whole(arguments: JsonObject) -> str:
    """Return what stands for all of the arguments, and what the order of their keys does not change."""
    try:
        return hashlib.blake2b(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()
    except orjson.JSONEncodeError:
        return render_input(arguments)
