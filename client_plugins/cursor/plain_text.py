"""Reads lines of Cursor's oldest transcripts, which are plain text. Pure; see `reader` for those of today.

A line `user:`, `assistant:` or `A:` says who speaks; `[Thinking]`, `[Tool call] Name` and `[Tool result] Name` begin
what nobody said. Of calls the name is read, and for those of other servers' tools the tool's: its line is below.
"""

import re
from dataclasses import replace
from typing import Final

from client_plugins.cursor.reader import Named, events_of, name_call, name_text
from client_plugins.cursor.turns import Turns
from client_plugins.kit.json_line import BLANK
from client_plugins.kit.plugin import LineReading, TranscriptContext
from sidecar.domain.evidence import SliceKind

_SPEAKER: Final = re.compile(r"(user|assistant|A):\s*")
_SPEAKERS: Final = {"user": SliceKind.USER_TEXT, "assistant": SliceKind.AGENT_TEXT, "A": SliceKind.AGENT_TEXT}
_MARK: Final = re.compile(r"\[(Thinking|Tool call|Tool result)\]\s*(.*)")
_MCP_TOOLS: Final = frozenset({"CallMcpTool", "CallDynamicTool"})
_TOOL_LINE: Final = re.compile(r"\s+toolName:\s*[\"']?([\w.\-]{1,200})[\"']?\s*")
# Tags that Cursor puts around a prompt; what stands beside them on the line is the user's.
_TAGS: Final = re.compile(r"</?user_query>|<timestamp>[^<]*</timestamp>")
_MAX_LINE_BYTES: Final = 1 << 20


def read_line(line: bytes, context: TranscriptContext, state: str) -> LineReading:
    """Return what a line says; see `ClientPlugin.read_line`."""
    turns = Turns.from_state(state)
    text = line[:_MAX_LINE_BYTES].decode("utf-8", "replace").rstrip("\r\n").removeprefix("\ufeff")
    named, turns, skipped = _read(text, context, turns)
    return LineReading(
        events_of(context, turns, named),
        skipped=None if named else skipped,
        state=turns.to_state() if turns != Turns() else "",
    )


def _read(text: str, context: TranscriptContext, turns: Turns) -> tuple[list[Named], Turns, str]:
    if not text.strip():
        return [], turns, BLANK
    speaker = _SPEAKER.fullmatch(text)
    if speaker:
        kind = _SPEAKERS[speaker[1]]
        if kind is SliceKind.USER_TEXT:
            turns = replace(turns, prompt="", at=None)
        return [], replace(turns, speaker=kind, is_call=False), "silent"
    mark = _MARK.match(text)
    if mark:
        return _read_mark(mark[1], mark[2].strip(), context, turns)
    tool = _TOOL_LINE.fullmatch(text) if turns.is_call else None
    if tool:
        named, turns = name_call(context, replace(turns, is_call=False), f"mcp__{tool[1]}", {})
        return named, turns, "silent"
    return _read_words(text, context, turns)


def _read_mark(mark: str, name: str, context: TranscriptContext, turns: Turns) -> tuple[list[Named], Turns, str]:
    turns = replace(turns, speaker="", is_call=mark == "Tool call" and name in _MCP_TOOLS)
    if mark != "Tool call" or turns.is_call or not name:
        return [], turns, "silent"
    named, turns = name_call(context, turns, name, {})
    return named, turns, "silent"


def _read_words(text: str, context: TranscriptContext, turns: Turns) -> tuple[list[Named], Turns, str]:
    said = _TAGS.sub("", text).strip()
    if turns.speaker == SliceKind.USER_TEXT:
        # A prompt of several lines is known by all of them up to here.
        longer = turns.prompted(f"{turns.prompt} {text}")
        turns = replace(longer, at=longer.at or turns.at)
        return ([name_text(context, turns, SliceKind.USER_TEXT, said)] if said else []), turns, "silent"
    if turns.speaker == SliceKind.AGENT_TEXT and said:
        return [name_text(context, turns, SliceKind.AGENT_TEXT, said)], turns, "silent"
    return [], turns, "silent"
