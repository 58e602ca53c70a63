"""Merges what Codex writes of one call into one call and one result: what the *model* saw. Pure.

A direct call is a `function_call` and its output; events in between repeat it. A call that a script made is an event
alone, and its result reached the model only as far as scripts of the same turn printed it. A call that is an event
alone without any script comes from a version that wrote no more.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import orjson

from client_plugins.codex.quotation import is_quoting
from client_plugins.codex.records import call_identifier
from client_plugins.codex.results import (
    McpCall,
    ScriptOutput,
    is_script_output,
    read_output,
    read_script_output,
)
from client_plugins.codex.state import NestedCall, RolloutState
from client_plugins.kit.fields import text_field
from client_plugins.kit.json_line import JsonObject
from client_plugins.kit.recognition import describe_call, unknown
from client_plugins.kit.texts import cut
from sidecar.domain.evidence import (
    EvidencePayload,
    RecallCalled,
    RememberCalled,
    Shown,
    ShownState,
    ToolAnswered,
    ToolCalled,
    UnknownReason,
)

NESTED_PREFIX: Final = "exec-"
_SCRIPT_TOOL: Final = "exec"
_WAIT_TOOL: Final = "wait"
_OPEN: Final = "open"
_WAITING: Final = "waiting"
_CUT_NAME: Final = "cut:"
# Longer names are cut, and a hash of the whole is put behind: of 12 digits, in early versions of 40.
_HASHED_NAME: Final = re.compile(r".{40,}_(?:[0-9a-f]{12}|[0-9a-f]{40})", re.DOTALL)
_MAX_NAME_CHARACTERS: Final = 100
_MAX_ARGUMENT_CHARACTERS: Final = 1 << 20
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Emit(Protocol):
    """Takes an event; at the time of the record unless told otherwise."""

    def __call__(self, event_id: str, payload: EvidencePayload, *, at: datetime | None = None) -> None:
        """Take it."""
        ...


class CallFold:
    """Takes the records of one line that are about calls.

    Args:
        state: Changed in place.
        origin: Thread that the line comes from.
        at: Time of the record.
    """

    ITEMS: Final = frozenset(
        {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call"}
    )
    """`type` of the response items that are about calls."""

    def __init__(self, state: RolloutState, emit: Emit, *, origin: str, at: datetime) -> None:
        self._state = state
        self._emit = emit
        self._origin = origin
        self._at = at

    def take_item(self, kind: str, payload: JsonObject) -> tuple[str, str]:
        """Take a response item; return why nothing was taken, and what was not recognised, both empty if all was."""
        key = call_identifier(text_field(payload, "call_id") or text_field(payload, "id"), self._origin)
        if not key:
            return "no_call_id", f"item:{kind}"
        if kind.endswith("_output"):
            return self._take_output(key, payload.get("output"))
        if kind == "function_call":
            self._open_function(key, payload)
        elif text_field(payload, "name") == _SCRIPT_TOOL:
            self._state.scripts[key] = False
            self._emit(key, describe_call(key, _SCRIPT_TOOL, payload.get("input")))
        else:
            self._state.direct[key] = _OPEN
            name = text_field(payload, "name") or kind.removesuffix("_call")
            self._emit(key, describe_call(key, name, payload.get("input", payload.get("action"))))
        return "", ""

    def take_mcp_call(self, call: McpCall, *, called_at: datetime) -> str:
        """Take what an event tells of an MCP call; return why nothing was taken, empty if something was."""
        key = call_identifier(call.call_id, self._origin)
        if not key or not call.tool:
            return "no_call_id"
        if key in self._state.reported:
            return "repeated_call"
        self._state.reported.append(key)
        mark = self._state.direct.get(key)
        if mark is not None:
            if mark.startswith(_CUT_NAME):
                self._emit(key, describe_call(key, call.name, call.arguments), at=called_at)
            self._state.direct[key] = str(call.reason or _OPEN)
            return "" if mark.startswith(_CUT_NAME) else "repeated_call"
        payload = describe_call(key, call.name, call.arguments)
        self._emit(key, payload, at=called_at)
        if key.startswith(NESTED_PREFIX) or self._state.scripts:
            self._take_nested(key, call, payload)
        else:
            self._emit(f"{key}:result", ToolAnswered(key, call.shown, cut(call.output)))
        return ""

    def end_turn(self) -> None:
        """Settle what scripts of the turn did not print: later ones do not speak of it.

        A call whose script has not ended is kept if that goes on in the background, else its result stays unknown.
        """
        for call in self._state.nested:
            if call.seen_at_ms:
                self._settle(call)
        self._state.nested = [call for call in self._state.nested if not call.seen_at_ms and not call.script]
        self._state.has_recalled = bool(self._state.nested)

    def _open_function(self, key: str, payload: JsonObject) -> None:
        namespace, name = text_field(payload, "namespace"), text_field(payload, "name")
        arguments = _parsed(payload.get("arguments"))
        joined = f"{namespace.rstrip('_')}__{name}" if namespace else name
        if _HASHED_NAME.fullmatch(joined):
            # An event tells the tool's whole name before the output comes; until then it may be any tool.
            self._state.direct[key] = _CUT_NAME + joined[:_MAX_NAME_CHARACTERS]
            return
        is_wait = name == _WAIT_TOOL and isinstance(arguments, dict) and "cell_id" in arguments
        self._state.direct[key] = _WAITING if is_wait else _OPEN
        self._emit(key, describe_call(key, joined, arguments))

    def _take_output(self, key: str, output: object) -> tuple[str, str]:
        mark = self._state.direct.pop(key, "")
        is_script = key in self._state.scripts or mark == _WAITING
        if is_script or (not mark and is_script_output(output)):
            return self._take_script_output(key, output, is_wait=mark == _WAITING), ""
        if mark.startswith(_CUT_NAME):
            self._emit(key, ToolCalled(key, mark.removeprefix(_CUT_NAME), ""))
        reason = UnknownReason(mark) if mark in _REASONS else None
        seen = read_output(output, reason=reason)
        self._emit(f"{key}:result", ToolAnswered(key, seen.shown, cut(seen.text)))
        return "", "cut_tool_name" if mark.startswith(_CUT_NAME) else ""

    def _take_script_output(self, key: str, output: object, *, is_wait: bool) -> str:
        script = read_script_output(output)
        if script.is_extra:
            refusal = read_output(output).shown
            if refusal.reason is not None and refusal.reason is not UnknownReason.TRUNCATED:
                self._end_without_output(key, refusal, script.text)
                return ""
        self._note_printed(key, script, is_wait=is_wait)
        if script.is_extra:
            return "extra_output"
        # What a recall returned must not pass for something that the agent made of it.
        quotes = self._state.scripts.pop(key, False) or (is_wait and self._state.has_recalled)
        text = "" if quotes or script.memory_ids else cut(script.text)
        self._emit(f"{key}:result", ToolAnswered(key, Shown(ShownState.NOTHING), text))
        return ""

    def _end_without_output(self, key: str, refusal: Shown, text: str) -> None:
        self._state.scripts.pop(key, None)
        self._emit(f"{key}:result", ToolAnswered(key, refusal, cut(text)))
        for call in self._state.nested:
            if call.script == key and not call.seen:
                self._emit(f"{call.call_id}:result", ToolAnswered(call.call_id, refusal, ""))
        self._state.nested = [call for call in self._state.nested if call.script != key or call.seen]

    def _note_printed(self, key: str, script: ScriptOutput, *, is_wait: bool) -> None:
        now_ms = max(1, int((self._at - _EPOCH) / timedelta(milliseconds=1)))
        own = [call for call in self._state.nested if call.script == key or (is_wait and not call.script)]
        explained = {memory_id for call in own for memory_id in call.memory_ids}
        open_calls = []
        for call in self._state.nested:
            is_ended = script.is_last and call in own
            # What a script recalled itself, it did not keep from an earlier one.
            candidates = set(call.memory_ids) - set(call.seen) - (set() if call in own else explained)
            printed = [memory_id for memory_id in script.memory_ids if memory_id in candidates]
            if (printed and not call.seen) or (is_ended and not call.seen_at_ms):
                call.seen_at_ms = now_ms
            call.seen += printed
            call.is_cut = call.is_cut or script.is_cut
            call.is_quoted = call.is_quoted or (not call.seen and is_quoting(script.text, call.marks))
            if call.script == key and not script.is_last and not script.is_extra:
                call.script = ""
            # Of what its own script kept back entirely, a later one of the turn may still print something.
            if call.is_seen_whole or (is_ended and call.seen):
                self._settle(call)
            else:
                open_calls.append(call)
        self._state.nested = open_calls

    def _take_nested(self, key: str, call: McpCall, payload: EvidencePayload) -> None:
        if isinstance(payload, RecallCalled):
            self._state.has_recalled = True
            self._state.scripts = dict.fromkeys(self._state.scripts, True)
            if call.reason is None and call.memory_ids:
                script = next(reversed(self._state.scripts), "")
                ids, marks = list(call.memory_ids), list(call.marks)
                self._state.nested.append(NestedCall(key, script, ids, is_cut=call.is_cut, marks=marks))
                return
        # Whether the model saw the id of what it stored does not matter: the script had it.
        shown = call.shown if isinstance(payload, RecallCalled | RememberCalled) else Shown(ShownState.NOTHING)
        self._emit(f"{key}:result", ToolAnswered(key, shown, ""))

    def _settle(self, call: NestedCall) -> None:
        if call.seen:
            shown = Shown(ShownState.IDS, memory_ids=tuple(call.seen))
        elif call.is_quoted:
            shown = unknown(UnknownReason.UNREADABLE)
        else:
            shown = unknown(UnknownReason.TRUNCATED) if call.is_cut else Shown(ShownState.NOTHING)
        at = _EPOCH + timedelta(milliseconds=call.seen_at_ms)
        self._emit(f"{call.call_id}:result", ToolAnswered(call.call_id, shown, ""), at=at)


_REASONS: Final = frozenset(UnknownReason)


def _parsed(arguments: object) -> object:
    """Return a function's arguments, which are JSON in a string; as they are if they cannot be read."""
    if not isinstance(arguments, str) or len(arguments) > _MAX_ARGUMENT_CHARACTERS:
        return arguments
    try:
        parsed: object = orjson.loads(arguments.encode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return arguments
    return parsed
