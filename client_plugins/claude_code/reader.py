"""Reads lines of Claude Code transcripts into neutral events. Pure: no files, no state, no memory of other lines.

Only `message.content` of `assistant` and `user` records speaks. Left out are thinking, what the client itself wrote in
the user's or the model's name (meta records, synthetic answers, summaries of compactions, command output), and every
copy of a message elsewhere (`progress`, `attachment`, `toolUseResult`, `mcpMeta`, `wireToolInputs`).
"""

import re
from collections.abc import Iterator
from typing import Final

from client_plugins.claude_code.records import (
    INLINE_AGENT,
    KNOWN_KINDS,
    SPEAKING_KINDS,
    SYNTHETIC_MODEL,
    Block,
    blocks_of,
)
from client_plugins.claude_code.results import read_result
from client_plugins.kit.fields import (
    as_identifier,
    digest,
    identifier_field,
    object_field,
    recorded_at,
    text_field,
)
from client_plugins.kit.json_line import JsonObject, decode_line
from client_plugins.kit.plugin import LineReading, TranscriptContext
from client_plugins.kit.project import ProjectFinder
from client_plugins.kit.recognition import describe_call
from client_plugins.kit.texts import cut
from sidecar.domain.evidence import (
    EvidenceEvent,
    EvidencePayload,
    SessionThread,
    SliceKind,
    TextSpoken,
    ToolAnswered,
)

CLIENT: Final = "claude-code"
PARSER_VERSION: Final = 1

_SILENT_BLOCKS: Final = frozenset(
    {"thinking", "redacted_thinking", "image", "document", "server_tool_use", "web_search_tool_result", "fallback"}
)
# What the client writes as if the user had said it: command echoes, their output, reminders, interruptions.
_CLIENT_TEXT: Final = re.compile(
    r"\s*(?:<(?:command-(?:name|message|args)|local-command-\w+|bash-(?:input|stdout|stderr)|system-reminder|"
    r"task-notification|user-memory-input|ide_\w+)>|\[Request interrupted)"
)
_MAX_VERSION_CHARACTERS: Final = 40


def read_line(line: bytes, context: TranscriptContext, project_of: ProjectFinder) -> LineReading:
    """Return what a line says; see `ClientPlugin.read_line`."""
    decoded = decode_line(line)
    readings = [_read_record(record, context, project_of) for record in decoded.records]
    reasons = [reading.skipped for reading in readings if reading.skipped] + [decoded.problem]
    return LineReading(
        events=tuple(event for reading in readings for event in reading.events),
        # A problem of the line weighs more than a record that has nothing to say.
        skipped=decoded.problem or reasons[0] or None,
        unrecognised=next((reading.unrecognised for reading in readings if reading.unrecognised), ""),
    )


def _read_record(record: JsonObject, context: TranscriptContext, project_of: ProjectFinder) -> LineReading:
    kind = text_field(record, "type")
    if kind not in SPEAKING_KINDS:
        return LineReading(skipped="silent", unrecognised="" if kind in KNOWN_KINDS else kind or "untyped")
    message = object_field(record, "message")
    reason = _reason_to_skip(record, message)
    if reason:
        return LineReading(skipped=reason)
    if not isinstance(message.get("content"), str | list):
        return LineReading(skipped="no_content", unrecognised=f"{kind}:no_content")
    return _read_message(record, message, _thread(record, context, project_of))


def _reason_to_skip(record: JsonObject, message: JsonObject) -> str:
    """Return why a message was not written by the user or the model; empty if it was."""
    if record.get("isCompactSummary") is True:
        return "summary"
    if record.get("isMeta") is True:
        return "meta"
    if text_field(message, "model") == SYNTHETIC_MODEL or record.get("isApiErrorMessage") is True:
        return "synthetic"
    if text_field(object_field(record, "origin"), "kind") not in {"", "human"}:
        return "client_text"
    return ""


def _thread(record: JsonObject, context: TranscriptContext, project_of: ProjectFinder) -> SessionThread:
    agent_id = identifier_field(record, "agentId") or context.agent_id
    if record.get("isSidechain") is True:
        agent_id = agent_id or INLINE_AGENT
    return SessionThread(
        client=CLIENT,
        # The file's name goes wrong where two sessions share a file; a sub-agent's record names its parent's.
        session=identifier_field(record, "sessionId") or context.session,
        agent_id=agent_id,
        project=project_of(text_field(record, "cwd")),
        client_version=identifier_field(record, "version")[:_MAX_VERSION_CHARACTERS],
    )


def _read_message(record: JsonObject, message: JsonObject, thread: SessionThread) -> LineReading:
    at = recorded_at(record)
    is_agent = text_field(record, "type") == "assistant"
    events: list[EvidenceEvent] = []
    skipped, unrecognised = "", ""
    for block in blocks_of(message.get("content")):
        found = list(_payloads(block, anchor=_anchor(record, message), is_agent=is_agent))
        events += [EvidenceEvent(event_id, thread, at, payload) for event_id, payload in found]
        if not found and block.kind in _SPEAKING_BLOCKS | _SILENT_BLOCKS:
            skipped = skipped or ("client_text" if block.kind == "text" else "silent_block")
        elif not found:
            unrecognised = unrecognised or f"block:{block.kind}"
    return LineReading(tuple(events), skipped=None if events else skipped or "silent_block", unrecognised=unrecognised)


_SPEAKING_BLOCKS: Final = frozenset({"text", "tool_use", "tool_result"})


def _payloads(block: Block, *, anchor: str, is_agent: bool) -> Iterator[tuple[str, EvidencePayload]]:
    """Give a block's event id and payload; nothing if it does not speak."""
    if block.kind == "text":
        text = cut(text_field(block.content, "text"))
        if text and (is_agent or not _CLIENT_TEXT.match(text)):
            kind = SliceKind.AGENT_TEXT if is_agent else SliceKind.USER_TEXT
            yield f"{anchor}:{digest(text)}", TextSpoken(kind, text)
    elif block.kind == "tool_use" and is_agent:
        call_id, name = as_identifier(text_field(block.content, "id")), text_field(block.content, "name")
        if call_id and name:
            yield call_id, describe_call(call_id, name, block.content.get("input"))
    elif block.kind == "tool_result" and not is_agent:
        call_id = as_identifier(text_field(block.content, "tool_use_id"))
        if call_id:
            result = read_result(block.content)
            yield f"{call_id}:result", ToolAnswered(call_id, result.shown, cut(result.text))


def _anchor(record: JsonObject, message: JsonObject) -> str:
    """Return what ties a text to its message in every copy of it.

    The message's own id, since some copies get fresh uuids, and a message may be written several times as it grows; the
    text's digest then tells its blocks apart. The user's messages have a uuid only.
    """
    return (
        identifier_field(message, "id")
        or identifier_field(record, "uuid")
        or digest(f"{text_field(record, 'sessionId')} {text_field(record, 'timestamp')}")
    )
