"""Tells what the model saw of a tool's result in Claude Code: its text, or why there is none. Pure."""

import re
from dataclasses import dataclass
from typing import Final

from client_plugins.claude_code.records import blocks_of
from client_plugins.kit.fields import text_field
from client_plugins.kit.json_line import JsonObject
from client_plugins.kit.recognition import shown_memories, unknown
from sidecar.domain.evidence import Shown, ShownState, UnknownReason

# Notices stand at the beginning; further in, they would be a quotation.
_NOTICE_CHARACTERS: Final = 400
_SPILLED: Final = re.compile(
    r"\s*(?:<persisted-output>|(?:Error: result|MCP tool|Error: MCP tool)\b.*exceeds maximum allowed tokens)", re.DOTALL
)
_REFUSED: Final = re.compile(
    r"\s*(?:\[Request interrupted|The user doesn't want to|Claude requested permissions|Permission to use |"
    r"(?:Error: )?PreToolUse:|(?:Error: )?Hook PreToolUse:)"
)
_CLEARED: Final = re.compile(r"\s*\[Old tool result content cleared\]\s*")
_EMPTY: Final = re.compile(r"\s*(?:\([\w.:\- ]+ completed with no output\))?\s*")


@dataclass(frozen=True, slots=True)
class ResultSeen:
    """A result as the model received it."""

    shown: Shown
    text: str


def read_result(block: JsonObject) -> ResultSeen:
    """Return what a `tool_result` block gave to the model.

    Only its `content` counts, a string or a list of text blocks. Images are left out; copies of the result elsewhere in
    the record (`toolUseResult`, `mcpMeta`) are not looked at, since the model did not get them.
    """
    content = block.get("content")
    texts = [text_field(part.content, "text") for part in blocks_of(content) if part.kind == "text"]
    text = "\n".join(texts)
    reason = _unknown_reason(text, is_error=block.get("is_error") is True)
    if reason is not None:
        return ResultSeen(unknown(reason), text)
    if _EMPTY.fullmatch(text[:_NOTICE_CHARACTERS]):
        # An empty list or string is an empty answer; a content of another form is one we cannot read.
        is_readable = texts or content in ([], "", None)
        return ResultSeen(Shown(ShownState.NOTHING) if is_readable else unknown(UnknownReason.UNREADABLE), text)
    return ResultSeen(shown_memories(texts), text)


def _unknown_reason(text: str, *, is_error: bool) -> UnknownReason | None:
    head = text[:_NOTICE_CHARACTERS]
    if _SPILLED.match(head):
        return UnknownReason.SPILLED
    if is_error:
        return UnknownReason.REFUSED if _REFUSED.match(head) else UnknownReason.ERRORED
    return UnknownReason.TRUNCATED if _CLEARED.fullmatch(head) else None
