"""Tells what the model saw of a call's result in Codex, or why there is none. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

from client_plugins.codex.quotation import marks_of
from client_plugins.codex.records import texts_of
from client_plugins.kit.fields import object_field, text_field
from client_plugins.kit.json_line import JsonObject
from client_plugins.kit.recognition import shown_memories, unknown
from sidecar.domain.evidence import Shown, ShownState, UnknownReason

# Notices stand at the beginning; further in, they would be a quotation.
_NOTICE_CHARACTERS: Final = 400
_HEADER: Final = re.compile(r"\s*(?:Wall time: [^\n]*\n)?(?:Output:\s*)?")
_REFUSED: Final = re.compile(
    r"(?:(?:Error: |err: |MCP tool call error: |tool call error: )*)"
    r"(?:user (?:rejected|cancelled|declined) MCP|MCP tool call (?:requires approval|cancelled|was rejected|blocked)|"
    r"(?:Tool call|Command) blocked by|aborted\b|rejected by user|command aborted)",
    re.IGNORECASE,
)
_ERRORED: Final = re.compile(
    r"(?:MCP tool call error: |tool call error: |tool call failed\b|Error executing tool |err: |Error: |"
    r"failed to parse function arguments|unsupported (?:custom tool )?call: |Mcp error: )",
    re.IGNORECASE,
)
_CUT: Final = re.compile(
    r"…(?:\d+ (?:tokens|chars|lines)|output) truncated…|\[omitted \d+ text items|output limit reached: omitted |"
    r"\A\s*(?:Wall time: [^\n]*\nOutput:\s*)?(?:Truncated tool output:|Warning: truncated output \()"
)
_CUT_WORDS: Final = ("truncated", "Truncated", "omitted")
_MAX_NUMBER: Final = 1_000_000_000
_SCRIPT_HEADER: Final = re.compile(r"\s*Script (?:completed|failed|terminated|(running))\b")


@dataclass(frozen=True, slots=True)
class Output:
    """A result as the model received it."""

    shown: Shown
    text: str


@dataclass(frozen=True, slots=True)
class ScriptOutput:
    """What a script gave to the model so far.

    Attributes:
        memory_ids: In what it printed, in order.
        is_last: The script has ended with it.
        is_extra: It came while the script went on, by the script's own wish.
        is_cut: Part of it was cut away.
    """

    memory_ids: tuple[str, ...]
    text: str
    is_last: bool
    is_extra: bool
    is_cut: bool


@dataclass(frozen=True, slots=True)
class McpCall:
    """A call of an MCP tool as the client's own event tells it, in whatever mode the model made it.

    Attributes:
        reason: Why there is no result; None if there is.
        memory_ids: In all of the result.
        output: What the model was given of it, if it called the tool directly.
        is_cut: The event's copy of the result was cut.
        marks: Of its structured texts; see `marks_of`.
        took_ms: How long the call took.
    """

    call_id: str
    server: str
    tool: str
    arguments: object
    reason: UnknownReason | None
    memory_ids: tuple[str, ...]
    output: str
    is_cut: bool
    marks: tuple[str, ...]
    took_ms: float

    @property
    def name(self) -> str:
        """The tool's name as models know it."""
        return f"{self.server}__{self.tool}"

    @property
    def shown(self) -> Shown:
        """What the result showed to whoever got the whole of it."""
        return _shown(self.output, reason=self.reason)


def read_output(output: object, *, reason: UnknownReason | None = None) -> Output:
    """Return what the output of a direct call gave to the model.

    Args:
        reason: Why it is no result, where an event said so; else it is told from the text.
    """
    if isinstance(output, Mapping):
        # Early versions wrapped it: `{content, success}`.
        reason = reason or (UnknownReason.ERRORED if output.get("success") is False else None)
        output = output.get("content")
    text = "\n".join(texts_of(output))
    if not isinstance(output, str | list):
        return Output(unknown(reason or UnknownReason.UNREADABLE), text)
    return Output(_shown(text, reason=reason or _reason_in(text)), text)


def is_script_output(output: object) -> bool:
    """Tell by its head whether an output is a script's."""
    return _SCRIPT_HEADER.match(next(texts_of(output), "")[:_NOTICE_CHARACTERS]) is not None


def read_script_output(output: object) -> ScriptOutput:
    """Return what a script, or a wait for one, gave to the model."""
    texts = list(texts_of(output))
    header = _SCRIPT_HEADER.match(texts[0][:_NOTICE_CHARACTERS]) if texts else None
    return ScriptOutput(
        memory_ids=shown_memories(texts).memory_ids,
        text="\n".join(texts),
        is_last=header is not None and not header[1],
        is_extra=header is None,
        is_cut=any(map(_is_cut, texts)),
    )


def read_mcp_end(payload: JsonObject) -> McpCall:
    """Return the call that an `mcp_tool_call_end` tells of."""
    invocation, result = object_field(payload, "invocation"), object_field(payload, "result")
    ok = object_field(result, "Ok")
    error = None if ok else text_field(result, "Err") or "no result"
    return _mcp_call(text_field(payload, "call_id"), invocation, ok, error, payload.get("duration"))


def read_mcp_item(item: JsonObject) -> McpCall:
    """Return the call that an `item_completed` of an `McpToolCall` tells of."""
    result = object_field(item, "result")
    error = object_field(item, "error")
    message = text_field(error, "message") or ("no result" if error or not result else None)
    return _mcp_call(text_field(item, "id"), item, result, message, item.get("duration"))


def _mcp_call(call_id: str, invocation: JsonObject, result: JsonObject, error: str | None, duration: object) -> McpCall:
    texts = list(texts_of(result.get("content")))
    structured = _as_json(result.get("structuredContent"))
    output = structured or "\n".join(texts)
    reason = None
    if error is not None or result.get("isError") is True:
        reason = _reason_in(error or output) or UnknownReason.ERRORED
    return McpCall(
        call_id=call_id,
        server=text_field(invocation, "server"),
        tool=text_field(invocation, "tool"),
        arguments=invocation.get("arguments"),
        reason=reason,
        memory_ids=shown_memories([*texts, structured]).memory_ids,
        output=error or output,
        is_cut=any(map(_is_cut, texts)),
        marks=tuple(marks_of(_strings_in(result.get("structuredContent")))),
        took_ms=_milliseconds(duration),
    )


def _shown(text: str, *, reason: UnknownReason | None) -> Shown:
    if reason is not None:
        return unknown(reason)
    shown = shown_memories([text])
    if shown.state is ShownState.NOTHING and _is_cut(text):
        return unknown(UnknownReason.TRUNCATED)
    return shown


def _is_cut(text: str) -> bool:
    # Looking for words is much faster than for the pattern, and most texts are large and whole.
    return any(word in text for word in _CUT_WORDS) and _CUT.search(text) is not None


def _reason_in(text: str) -> UnknownReason | None:
    head = text[:_NOTICE_CHARACTERS]
    notice = head[_end_of_header(head) :]
    if _REFUSED.match(notice):
        return UnknownReason.REFUSED
    return UnknownReason.ERRORED if _ERRORED.match(notice) else None


def _end_of_header(head: str) -> int:
    header = _HEADER.match(head)
    return header.end() if header else 0


def _as_json(value: object) -> str:
    if value is None:
        return ""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        # Deeper than any of our results, lone surrogates inside, or a number beyond 64 bits.
        return "\n".join(_strings_in(value))


def _strings_in(value: object) -> Iterator[str]:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            pending += reversed(list(one.values()))
        elif isinstance(one, list):
            pending += reversed(one)


def _milliseconds(duration: object) -> float:
    """Return a `{secs, nanos}` as milliseconds; 0 if it is something else."""
    if not isinstance(duration, Mapping):
        return 0.0
    return _number(duration.get("secs")) * 1_000 + _number(duration.get("nanos")) / 1_000_000


def _number(value: object) -> float:
    """Return what should be a number of reasonable size; 0 for anything else, as for what no float can hold."""
    return float(value) if isinstance(value, int | float) and 0 <= value <= _MAX_NUMBER else 0.0
