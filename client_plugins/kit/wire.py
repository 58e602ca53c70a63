"""Turns evidence into the messages of the contract, and cursors back. Knows no channel."""

from sidecar.api.v1 import evidence_service_pb2 as pb
from sidecar.domain.evidence import (
    BatchOutcome,
    EvidenceBatch,
    EvidenceEvent,
    MemoryCited,
    RecallCalled,
    RememberCalled,
    SessionEnded,
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

_REASONS = {
    UnknownReason.NO_RESULT: pb.UNKNOWN_REASON_NO_RESULT,
    UnknownReason.ERRORED: pb.UNKNOWN_REASON_ERRORED,
    UnknownReason.REFUSED: pb.UNKNOWN_REASON_REFUSED,
    UnknownReason.SPILLED: pb.UNKNOWN_REASON_SPILLED,
    UnknownReason.TRUNCATED: pb.UNKNOWN_REASON_TRUNCATED,
    UnknownReason.UNREADABLE: pb.UNKNOWN_REASON_UNREADABLE,
}


def batch_request(batch: EvidenceBatch, batch_id: int) -> pb.StreamEvidenceRequest:
    """Return the request that sends a batch."""
    return pb.StreamEvidenceRequest(
        batch_id=batch_id, cursor=_cursor_message(batch.cursor), events=map(_event_message, batch.events)
    )


def batch_outcome(response: pb.StreamEvidenceResponse) -> BatchOutcome:
    """Return what an acknowledgement says."""
    return BatchOutcome(
        new_events=response.new_events,
        repeated_events=response.repeated_events,
        recalls=response.recalls,
        shown=response.shown,
        unknown=response.unknown,
        used_memory_ids=tuple(response.used_memory_ids),
    )


def cursor_value(message: pb.TranscriptCursor) -> TranscriptCursor:
    """Return the cursor that the sidecar keeps."""
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


def _cursor_message(cursor: TranscriptCursor) -> pb.TranscriptCursor:
    return pb.TranscriptCursor(
        client=cursor.client,
        path=cursor.path,
        file_id=cursor.file_id,
        offset=cursor.offset,
        line_hash=cursor.line_hash,
        generation=cursor.generation,
        parser_version=cursor.parser_version,
        lines_read=cursor.lines_read,
        skipped=dict(cursor.skipped),
        reader_state=cursor.reader_state,
    )


def _event_message(event: EvidenceEvent) -> pb.EvidenceEvent:
    message = pb.EvidenceEvent(event_id=event.event_id, thread=_thread_message(event.thread))
    message.time.FromDatetime(event.at)
    payload = event.payload
    match payload:
        case TextSpoken(SliceKind.USER_TEXT, text):
            message.user_text.text = text
        case TextSpoken():
            message.agent_text.text = payload.text
        case RecallCalled():
            message.recall_called.CopyFrom(pb.RecallCalled(call_id=payload.call_id, tool=payload.tool))
        case RememberCalled():
            message.remember_called.CopyFrom(pb.RememberCalled(call_id=payload.call_id))
        case ToolCalled():
            message.tool_called.CopyFrom(pb.ToolCalled(call_id=payload.call_id, name=payload.name, text=payload.text))
        case ToolAnswered():
            message.tool_answered.CopyFrom(
                pb.ToolAnswered(call_id=payload.call_id, shown=_shown_message(payload.shown), text=payload.text)
            )
        case MemoryCited():
            message.memory_cited.memory_id = payload.memory_id
        case SessionEnded():
            message.session_ended.SetInParent()
    return message


def _thread_message(thread: SessionThread) -> pb.SessionThread:
    return pb.SessionThread(
        client=thread.client,
        session=thread.session,
        agent_id=thread.agent_id,
        project=thread.project,
        client_version=thread.client_version,
    )


def _shown_message(shown: Shown) -> pb.Shown:
    match shown.state:
        case ShownState.IDS:
            return pb.Shown(ids=pb.ShownIds(memory_ids=shown.memory_ids))
        case ShownState.NOTHING:
            return pb.Shown(nothing=pb.NothingShown())
        case ShownState.CANNOT_RECORD:
            return pb.Shown(cannot_record=pb.CannotRecord())
        case ShownState.UNKNOWN:
            reason = _REASONS[shown.reason] if shown.reason else pb.UNKNOWN_REASON_UNSPECIFIED
            return pb.Shown(unknown=pb.ShownUnknown(reason=reason))
