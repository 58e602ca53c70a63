"""Between evidence messages and domain values."""

from collections.abc import Callable, Mapping
from typing import Final

from sidecar.api.v1 import evidence_service_pb2 as pb
from sidecar.domain.coverage import ClientCoverage
from sidecar.domain.evidence import (
    BatchOutcome,
    EvidenceBatch,
    EvidenceEvent,
    EvidencePayload,
    MemoryCited,
    RecallCalled,
    RememberCalled,
    SessionCoverage,
    SessionEnded,
    SessionRecall,
    SessionThread,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
    TranscriptCursor,
    UnknownReason,
)
from sidecar.errors import InvalidInputError
from sidecar.rpc.convert import moment, timestamp

_REASON_NUMBERS: Final[dict[UnknownReason, pb.UnknownReason.ValueType]] = {
    value: pb.UnknownReason.Value(f"UNKNOWN_REASON_{value.name}") for value in UnknownReason
}
_REASONS: Final = {int(number): value for value, number in _REASON_NUMBERS.items()}


def batch(request: pb.StreamEvidenceRequest) -> EvidenceBatch:
    """Return a batch.

    Raises:
        InvalidInputError: If an event lacks its id, thread or payload.
    """
    return EvidenceBatch(cursor=cursor(request.cursor), events=tuple(_event(event) for event in request.events))


def batch_response(batch_id: int, outcome: BatchOutcome) -> pb.StreamEvidenceResponse:
    """Return the acknowledgement of a batch."""
    return pb.StreamEvidenceResponse(
        batch_id=batch_id,
        new_events=outcome.new_events,
        repeated_events=outcome.repeated_events,
        recalls=outcome.recalls,
        shown=outcome.shown,
        unknown=outcome.unknown,
        used_memory_ids=outcome.used_memory_ids,
    )


def cursor(message: pb.TranscriptCursor) -> TranscriptCursor:
    """Return a cursor.

    Raises:
        InvalidInputError: If its offset is negative.
    """
    if message.offset < 0:
        raise InvalidInputError("cursor.offset", message.offset, "a number of bytes, 0 or more")
    return TranscriptCursor(
        client=message.client,
        path=message.path,
        file_id=message.file_id,
        offset=message.offset,
        line_hash=message.line_hash,
        generation=message.generation,
        parser_version=message.parser_version,
        lines_read=message.lines_read,
        skipped=tuple(sorted(message.skipped.items())),
        reader_state=message.reader_state,
    )


def cursor_message(value: TranscriptCursor) -> pb.TranscriptCursor:
    """Return a cursor as a message."""
    return pb.TranscriptCursor(
        client=value.client,
        path=value.path,
        file_id=value.file_id,
        offset=value.offset,
        line_hash=value.line_hash,
        generation=value.generation,
        parser_version=value.parser_version,
        lines_read=value.lines_read,
        skipped=dict(value.skipped),
        reader_state=value.reader_state,
    )


def coverage(value: SessionCoverage) -> pb.SessionCoverage:
    """Return what is known of a session as a message."""
    return pb.SessionCoverage(
        thread=pb.SessionThread(
            client=value.thread.client,
            session=value.thread.session,
            agent_id=value.thread.agent_id,
            project=value.thread.project,
            client_version=value.thread.client_version,
        ),
        first_seen_time=timestamp(value.first_seen_at),
        last_seen_time=timestamp(value.last_seen_at),
        recalls=value.recalls,
        shown=value.shown,
        nothing_shown=value.nothing_shown,
        cannot_record=value.cannot_record,
        unknown=dict(value.unknown),
        used=value.used,
        waiting_jobs=value.waiting_jobs,
    )


def client_coverage(value: ClientCoverage) -> pb.ClientCoverage:
    """Return what could be read of a client as a message."""
    return pb.ClientCoverage(
        client=value.client,
        channel=value.channel,
        client_version=value.client_version,
        files=value.files,
        lines=value.lines,
        calls=value.calls,
        results=value.results,
        recalls=value.recalls,
        with_memories=value.with_memories,
        shown=value.shown,
        nothing_shown=value.nothing_shown,
        cannot_record=value.cannot_record,
        unknown=dict(value.unknown),
        skipped=dict(value.skipped),
        unrecognised=dict(value.unrecognised),
        warnings=value.warnings,
    )


def session_recall(value: SessionRecall) -> pb.SessionRecall:
    """Return one recall of a session as a message."""
    return pb.SessionRecall(
        call_id=value.call_id,
        tool=value.tool,
        agent_id=value.agent_id,
        create_time=timestamp(value.at),
        shown=_shown_message(value.shown),
        used_memory_ids=value.used_memory_ids,
    )


def _shown_message(value: Shown) -> pb.Shown:
    if value.state is ShownState.IDS:
        return pb.Shown(ids=pb.ShownIds(memory_ids=value.memory_ids))
    if value.state is ShownState.NOTHING:
        return pb.Shown(nothing=pb.NothingShown())
    if value.state is ShownState.CANNOT_RECORD:
        return pb.Shown(cannot_record=pb.CannotRecord())
    return pb.Shown(unknown=pb.ShownUnknown(reason=_REASON_NUMBERS[value.reason or UnknownReason.UNREADABLE]))


def _event(message: pb.EvidenceEvent) -> EvidenceEvent:
    if not message.event_id or not message.thread.client or not message.thread.session:
        raise InvalidInputError("events.event_id", message.event_id, "an event id, a client and a session")
    thread = message.thread
    return EvidenceEvent(
        event_id=message.event_id,
        thread=SessionThread(
            client=thread.client,
            session=thread.session,
            agent_id=thread.agent_id,
            project=thread.project,
            client_version=thread.client_version,
        ),
        at=moment(message.time, field_name="events.time"),
        payload=_payload(message),
    )


def _payload(message: pb.EvidenceEvent) -> EvidencePayload:
    kind = message.WhichOneof("payload")
    convert = _PAYLOADS.get(kind or "")
    if convert is None:
        raise InvalidInputError("events.payload", kind, "one of the payloads of EvidenceEvent")
    return convert(message)


def _tool_called(message: pb.ToolCalled) -> ToolCalled:
    return ToolCalled(message.call_id, message.name, message.text)


def _tool_answered(message: pb.ToolAnswered) -> ToolAnswered:
    return ToolAnswered(message.call_id, _shown(message.shown), message.text)


_PAYLOADS: Final[Mapping[str, Callable[[pb.EvidenceEvent], EvidencePayload]]] = {
    "agent_text": lambda event: TextSpoken(SliceKind.AGENT_TEXT, event.agent_text.text),
    "user_text": lambda event: TextSpoken(SliceKind.USER_TEXT, event.user_text.text),
    "recall_called": lambda event: RecallCalled(event.recall_called.call_id, event.recall_called.tool),
    "remember_called": lambda event: RememberCalled(event.remember_called.call_id),
    "tool_called": lambda event: _tool_called(event.tool_called),
    "tool_answered": lambda event: _tool_answered(event.tool_answered),
    "memory_cited": lambda event: MemoryCited(event.memory_cited.memory_id),
    "session_ended": lambda _: SessionEnded(),
}


def _shown(message: pb.Shown) -> Shown:
    state = message.WhichOneof("state")
    if state == "ids":
        return Shown(ShownState.IDS, tuple(dict.fromkeys(message.ids.memory_ids)))
    if state == "nothing":
        return Shown(ShownState.NOTHING)
    if state == "cannot_record":
        return Shown(ShownState.CANNOT_RECORD)
    if state == "unknown":
        return Shown(ShownState.UNKNOWN, reason=_REASONS.get(message.unknown.reason, UnknownReason.UNREADABLE))
    raise InvalidInputError("events.shown", state, "one of ids, nothing, cannot_record and unknown")
