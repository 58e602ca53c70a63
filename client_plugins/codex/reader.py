"""Reads lines of Codex transcripts into neutral events. Pure: what it must know of earlier lines is in the state.

Words come from `response_item` messages alone, since every other record repeats them. Calls come from `response_item`
as well, and from the client's own events about MCP tools (`mcp_tool_call_end`, `item_completed`), which are the only
trace of calls that a script made. Left out are compactions, what the client wrote in the user's name, reasoning, and
what agents write to each other.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from client_plugins.codex.calls import CallFold
from client_plugins.codex.citations import cited_in, without_citations
from client_plugins.codex.records import (
    SILENT_COMPLETED,
    SILENT_EVENTS,
    SILENT_ITEMS,
    SILENT_RECORDS,
    TURN_BEGINS,
    TURN_ENDS,
    read_head,
    texts_of,
    turn_of,
    user_texts_of,
)
from client_plugins.codex.results import McpCall, read_mcp_end, read_mcp_item
from client_plugins.codex.state import RolloutState
from client_plugins.kit.fields import digest, object_field, recorded_at, text_field
from client_plugins.kit.json_line import NOT_JSON, DecodedLine, JsonObject, decode_line
from client_plugins.kit.plugin import LineReading, TranscriptContext
from client_plugins.kit.project import ProjectFinder
from client_plugins.kit.texts import cut
from sidecar.domain.evidence import (
    EvidenceEvent,
    EvidencePayload,
    MemoryCited,
    SessionEnded,
    SessionThread,
    SliceKind,
    TextSpoken,
)

CLIENT: Final = "codex"
PARSER_VERSION: Final = 2

_SILENT: Final = "silent"
_SETTING_FOLDER: Final = "thread_settings_applied"
# Inside of a string its quotes would be escaped, so it is the beginning of a record wherever it stands.
_RECORD_BEGIN: Final = b'{"timestamp":'


def read_line(line: bytes, context: TranscriptContext, state: str, project_of: ProjectFinder) -> LineReading:
    """Return what a line says; see `ClientPlugin.read_line`."""
    decoded = _decode(line)
    readings: list[LineReading] = []
    for record in decoded.records:
        readings.append(_read_record(record, context, state, project_of))
        state = readings[-1].state
    reasons = [reading.skipped for reading in readings if reading.skipped]
    return LineReading(
        events=tuple(event for reading in readings for event in reading.events),
        skipped=decoded.problem or (reasons[0] if reasons else None),
        unrecognised=next((reading.unrecognised for reading in readings if reading.unrecognised), ""),
        state=state,
        client_version=next((reading.client_version for reading in reversed(readings) if reading.client_version), ""),
    )


def _decode(line: bytes) -> DecodedLine:
    """Return what is on a line; of one that was begun, failed, and was written again behind that, the whole one."""
    decoded = decode_line(line)
    begin = line.rfind(_RECORD_BEGIN)
    if decoded.problem != NOT_JSON or begin <= 0:
        return decoded
    again = decode_line(line[begin:])
    return DecodedLine((*decoded.records, *again.records), again.problem or "torn") if again.records else decoded


def _read_record(record: JsonObject, context: TranscriptContext, state: str, project_of: ProjectFinder) -> LineReading:
    if text_field(record, "type") in SILENT_RECORDS:
        return LineReading(skipped=_SILENT, state=state)
    fold = _RecordFold(record, RolloutState.from_text(state), context, project_of)
    fold.take()
    return LineReading(
        events=tuple(fold.events),
        skipped=fold.skipped or (None if fold.events else _SILENT),
        unrecognised=fold.unrecognised,
        state=fold.state.to_text(),
        client_version=fold.state.version,
    )


class _RecordFold:
    """Takes one record, the state before it, and makes the events and the state after it."""

    def __init__(
        self, record: JsonObject, state: RolloutState, context: TranscriptContext, project_of: ProjectFinder
    ) -> None:
        self.state = state
        self.events: list[EvidenceEvent] = []
        self.skipped = ""
        self.unrecognised = ""
        self._record = record
        self._payload = object_field(record, "payload")
        self._at = recorded_at(record)
        self._context = context
        self._project_of = project_of
        self._calls = CallFold(state, self._emit, origin=state.origin or context.session, at=self._at)

    def take(self) -> None:
        """Take the record."""
        kind = text_field(self._record, "type")
        match kind:
            case "session_meta":
                self._take_head()
            case "turn_context":
                self._take_folder(self._payload)
                self._take_turn(turn_of(self._payload))
            case "response_item":
                self._take_turn(turn_of(self._payload))
                self._take_item(text_field(self._payload, "type"))
            case "event_msg":
                self._take_event(text_field(self._payload, "type"))
            case _:
                self.unrecognised = kind or "untyped"

    def _take_head(self) -> None:
        head = read_head(self._payload)
        # The first is the file's own. Later ones repeat it, or are its parent's in front of the parent's lines.
        if not self.state.thread:
            self.state.thread, self.state.session, self.state.agent_id = head.thread, head.session, head.agent_id
            self.state.cwd, self.state.version = head.cwd, head.version
            self.state.is_one_shot = head.is_one_shot
        self.state.origin = head.thread or self.state.origin

    def _take_folder(self, payload: JsonObject) -> None:
        self.state.cwd = text_field(payload, "cwd") or self.state.cwd

    def _take_turn(self, turn: str) -> None:
        if turn and turn != self.state.turn:
            self._calls.end_turn()
            self.state.turn = turn

    def _take_event(self, kind: str) -> None:
        if kind in TURN_ENDS:
            self._calls.end_turn()
            self._take_end(turn_of(self._payload) or self.state.turn)
        elif kind == "agent_message":
            self._take_citations(cited_in(self._payload))
        elif kind in TURN_BEGINS:
            self._take_turn(turn_of(self._payload))
        elif kind == "mcp_tool_call_end":
            self._take_mcp_call(read_mcp_end(self._payload))
        elif kind == "item_completed":
            self._take_completed(object_field(self._payload, "item"))
        elif kind == _SETTING_FOLDER:
            self._take_folder(object_field(self._payload, "thread_settings"))
        elif kind not in SILENT_EVENTS:
            self.unrecognised = f"event:{kind}"

    def _take_completed(self, item: JsonObject) -> None:
        kind = text_field(item, "type")
        if kind == "McpToolCall":
            self._take_turn(turn_of(self._payload))
            self._take_mcp_call(read_mcp_item(item))
        elif kind == "AgentMessage":
            self._take_citations(cited_in(item))
        elif kind not in SILENT_COMPLETED:
            self.unrecognised = f"item:{kind}"

    def _take_mcp_call(self, call: McpCall) -> None:
        self.skipped = self._calls.take_mcp_call(call, called_at=self._at - timedelta(milliseconds=call.took_ms))

    def _take_item(self, kind: str) -> None:
        if kind == "message":
            self._take_message()
        elif kind in CallFold.ITEMS:
            self.skipped, self.unrecognised = self._calls.take_item(kind, self._payload)
        elif kind not in SILENT_ITEMS:
            self.unrecognised = f"item:{kind}"

    def _take_message(self) -> None:
        role = text_field(self._payload, "role")
        if object_field(self._record, "metadata").get("compaction_output") is True:
            self.skipped = "summary"
        elif role == "assistant":
            text, cited = without_citations("\n".join(texts_of(self._payload.get("content"))))
            self._take_text(SliceKind.AGENT_TEXT, text)
            self._take_citations(cited)
        elif role == "user":
            text = "\n".join(user_texts_of(self._payload))
            self._count_turn(text)
            self._take_text(SliceKind.USER_TEXT, text)
            self.skipped = "" if text else "client_text"

    def _count_turn(self, text: str) -> None:
        """Count what the user says; a line that was written twice counts once, so that texts keep their place."""
        mark = digest(f"{text_field(self._record, 'timestamp')} {text}") if text else ""
        if mark and mark != self.state.last_said:
            self.state.turn_number += 1
            self.state.last_said = mark

    def _take_text(self, kind: SliceKind, text: str) -> None:
        text = cut(text)
        if text:
            # Copies of a message get new times and, in some versions, new ids; its place in its thread stays.
            origin = self.state.origin or self._context.session
            self._emit(f"{origin}:{self.state.turn_number}:{kind}:{digest(text)}", TextSpoken(kind, text))

    def _take_citations(self, memory_ids: Iterable[str]) -> None:
        """Take what an answer cites; its words and the event about it say the same, which counts once."""
        origin = self.state.origin or self._context.session
        for memory_id in memory_ids:
            self._emit(f"{origin}:{self.state.turn_number}:cited:{memory_id}", MemoryCited(memory_id))

    def _take_end(self, turn: str) -> None:
        """Take the end of a turn for that of the session, where the program ends with it."""
        if self.state.is_one_shot and not self.state.agent_id:
            origin = self.state.origin or self._context.session
            self._emit(f"{origin}:{turn or self.state.turn_number}:ended", SessionEnded())

    def _emit(self, event_id: str, payload: EvidencePayload, *, at: datetime | None = None) -> None:
        self.events.append(EvidenceEvent(event_id, self._thread(), at or self._at, payload))

    def _thread(self) -> SessionThread:
        return SessionThread(
            client=CLIENT,
            session=self.state.session or self._context.session,
            agent_id=self.state.agent_id,
            project=self._project_of(self.state.cwd),
            client_version=self.state.version,
        )
