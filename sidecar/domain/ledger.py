"""Decides what transcript events mean: which recall showed what to whom, and what was said after it. Pure rules.

The rows are reached through `LedgerRows`, which an adapter implements inside one write transaction for one owner. The
same events in other batches, orders or repetitions lead to the same calls, shown memories and evidence: calls and
answers find each other whichever comes first, and whatever was seen before, be it in a copy of the transcript, changes
nothing. Of texts, as much as a judge may need is kept after each recall, and of the rest only the last.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol, assert_never

from sidecar.domain.confirmation import Citation, ConfirmationRows, RememberCall, cite, name_session, settle_shown
from sidecar.domain.evidence import (
    MAX_SLICE_CHARACTERS,
    BatchOutcome,
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

JOB_BYTES: Final = 32 * 1024
"""Of texts kept after each recall; a judge could hardly read more. So a later recall gets as much as the first."""

CONTEXT_SLICES: Final = 20
CONTEXT_BYTES: Final = 8 * 1024
"""What is kept of a thread's last texts that no judge asks for: a recall may be read later than what followed it."""

OWNER_BYTES: Final = 64 * 1024 * 1024
"""Of all texts of one owner; then the oldest go."""

IDLE_LIFE: Final = timedelta(hours=24)
"""Texts of a session that no judge waits for are kept so long after its last event."""

UNANSWERED: Final = Shown(ShownState.UNKNOWN, reason=UnknownReason.NO_RESULT)


class CallKind(StrEnum):
    """What a tool call was. UNSEEN: its answer was read before the call itself."""

    RECALL = "recall"
    REMEMBER = "remember"
    OTHER = "other"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Thread:
    """A session thread as stored.

    Attributes:
        id: The store's own number.
        has_shown: Whether any memory was shown in it.
        gathered_bytes: UTF-8 bytes of the texts since a memory was shown last.
    """

    id: int
    client: str
    session: str
    has_shown: bool
    gathered_bytes: int


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as stored; `shown` is `UNANSWERED` until its result is read, `tool` empty until the call is."""

    call_id: str
    thread_id: int
    kind: CallKind
    shown: Shown
    is_answered: bool
    at: datetime
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Slice:
    """A text to store for the judge.

    Attributes:
        is_context: No job needs it.
        awaited_call: Id of the call that it answers, while that was not read yet; nobody is given it until then.
    """

    kind: SliceKind
    text: str
    size_bytes: int
    at: datetime
    is_context: bool = False
    awaited_call: str = ""


class LedgerRows(ConfirmationRows, Protocol):
    """What the rules read and change beside `ConfirmationRows`, for one owner, within one transaction."""

    def mark_seen(self, digest: bytes) -> bool:
        """Note an event's digest for ever, and tell whether it is new."""
        ...

    def thread(self, thread: SessionThread, *, at: datetime) -> Thread:
        """Return the row of a thread, made if need be, its first and last time widened to cover `at`."""
        ...

    def thread_by_id(self, thread_id: int) -> Thread:
        """Return a thread that is known to exist."""
        ...

    def note_end(self, thread: Thread, *, at: datetime) -> None:
        """Note that the client said then that the thread's session ends."""
        ...

    def call(self, client: str, call_id: str) -> Call | None:
        """Return a call, or None if neither it nor its answer was seen."""
        ...

    def save_call(self, client: str, call: Call) -> None:
        """Store a call, or replace the one of that client and id."""
        ...

    def existing(self, memory_ids: Sequence[str]) -> list[str]:
        """Return those ids that the owner has memories of, in the given order."""
        ...

    def count_missing(self, thread_id: int, count: int) -> None:
        """Note that a result showed ids that the store does not have."""
        ...

    def add_shown(self, thread: Thread, memory_id: str, call: Call, *, at: datetime) -> bool:
        """Note that a call showed a memory, open its judge job if the session has none, and tell whether it is new.

        The thread's `gathered_bytes` start anew, and its context from that time on is context no more.
        """
        ...

    def add_slice(self, thread: Thread, piece: Slice) -> None:
        """Append a text to a thread, and count it in `gathered_bytes` unless it is awaiting its call."""
        ...

    def take_awaiting(self, client: str, call_id: str) -> Slice | None:
        """Remove the text that answered a call before that was read, and return it."""
        ...

    def keep_last_context(self, thread_id: int, *, count: int, size_bytes: int) -> None:
        """Delete a thread's oldest slices of context until no more are left than that; the newest one always stays."""
        ...

    def keep_newest_slices(self, *, size_bytes: int) -> None:
        """Delete the owner's oldest slices until their texts have no more bytes, and count them as dropped."""
        ...


@dataclass(slots=True)
class _Tally:
    new_events: int = 0
    repeated_events: int = 0
    recalls: int = 0
    shown: int = 0
    unknown: int = 0
    used: dict[str, None] = field(default_factory=dict)


def take_events(rows: LedgerRows, events: Sequence[EvidenceEvent], *, at: datetime) -> BatchOutcome:
    """Apply events in order and return what they changed.

    Args:
        at: The time now, UTC; multipliers are computed for it.
    """
    tally = _Tally()
    for event in events:
        if rows.mark_seen(event_digest(rows.owner, event)):
            tally.new_events += 1
            _take(rows, event, tally, now=at)
        else:
            tally.repeated_events += 1
    return BatchOutcome(
        new_events=tally.new_events,
        repeated_events=tally.repeated_events,
        recalls=tally.recalls,
        shown=tally.shown,
        unknown=tally.unknown,
        used_memory_ids=tuple(tally.used),
    )


def event_digest(owner: str, event: EvidenceEvent) -> bytes:
    """Return 16 bytes that are the same for every reading and every copy of an event.

    The kind takes part, so that a call and its answer may both be named by the call's id.
    """
    named = "\x1f".join((owner, event.thread.client, type(event.payload).__name__, event.event_id))
    return hashlib.blake2b(named.encode(), digest_size=16).digest()


def is_older_cursor(cursor: TranscriptCursor, stored: TranscriptCursor) -> bool:
    """Tell whether a cursor is one that the stored one has passed already, as in a batch that was sent twice."""
    place = (cursor.file_id, cursor.generation, cursor.parser_version)
    return place == (stored.file_id, stored.generation, stored.parser_version) and cursor.offset < stored.offset


def _take(rows: LedgerRows, event: EvidenceEvent, tally: _Tally, *, now: datetime) -> None:
    match event.payload:
        case TextSpoken(kind=kind, text=text):
            _add_slice(rows, rows.thread(event.thread, at=event.at), kind, text, at=event.at)
        case RecallCalled(call_id=call_id, tool=tool):
            _open_call(rows, event, call_id, CallKind.RECALL, tally, now=now, tool=tool)
        case RememberCalled(call_id=call_id):
            _open_call(rows, event, call_id, CallKind.REMEMBER, tally, now=now)
        case ToolCalled(call_id=call_id, name=name, text=text):
            if _open_call(rows, event, call_id, CallKind.OTHER, tally, now=now):
                thread = rows.thread(event.thread, at=event.at)
                _add_slice(rows, thread, SliceKind.TOOL_CALL, f"{name} {text}".strip(), at=event.at)
        case ToolAnswered() as answer:
            _take_answer(rows, event, answer, tally, now=now)
        case MemoryCited(memory_id=memory_id):
            _take_citation(rows, event, memory_id, tally, now=now)
        case SessionEnded():
            rows.note_end(rows.thread(event.thread, at=event.at), at=event.at)
        case _ as unknown:
            assert_never(unknown)


def _open_call(
    rows: LedgerRows,
    event: EvidenceEvent,
    call_id: str,
    kind: CallKind,
    tally: _Tally,
    *,
    now: datetime,
    tool: str = "",
) -> bool:
    """Store a call and tell whether it is new; a copy in another session changes nothing."""
    client = event.thread.client
    known = rows.call(client, call_id)
    if known is not None and known.kind is not CallKind.UNSEEN:
        return False
    thread = rows.thread(event.thread, at=event.at)
    call = Call(call_id, thread.id, kind, UNANSWERED, is_answered=False, at=event.at, tool=tool)
    rows.save_call(client, call)
    tally.recalls += kind is CallKind.RECALL
    if known is not None:
        text = rows.take_awaiting(client, call_id)
        if text is not None and kind is CallKind.OTHER:
            _add_slice(rows, thread, text.kind, text.text, at=text.at)
        _answer_call(rows, thread, call, known.shown, tally, at=known.at, now=now)
    return True


def _take_answer(rows: LedgerRows, event: EvidenceEvent, answer: ToolAnswered, tally: _Tally, *, now: datetime) -> None:
    client = event.thread.client
    call = rows.call(client, answer.call_id)
    if call is None:
        # Clients write from several queues, so an answer may precede its call in the file: it waits as a whole.
        thread = rows.thread(event.thread, at=event.at)
        waiting = Call(answer.call_id, thread.id, CallKind.UNSEEN, answer.shown, is_answered=True, at=event.at)
        rows.save_call(client, waiting)
        _add_slice(rows, thread, SliceKind.TOOL_OUTPUT, answer.text, at=event.at, awaited_call=answer.call_id)
        return
    if call.is_answered:
        return
    thread = rows.thread_by_id(call.thread_id)
    if call.kind is CallKind.OTHER:
        _add_slice(rows, thread, SliceKind.TOOL_OUTPUT, answer.text, at=event.at)
    _answer_call(rows, thread, call, answer.shown, tally, at=event.at, now=now)


def _take_citation(rows: LedgerRows, event: EvidenceEvent, memory_id: str, tally: _Tally, *, now: datetime) -> None:
    if not rows.existing([memory_id]):
        return
    thread = rows.thread(event.thread, at=event.at)
    if cite(rows, Citation(thread.client, thread.session, memory_id, event.at), at=now):
        tally.used[memory_id] = None


def _answer_call(
    rows: LedgerRows, thread: Thread, call: Call, shown: Shown, tally: _Tally, *, at: datetime, now: datetime
) -> None:
    rows.save_call(thread.client, replace(call, shown=shown, is_answered=True))
    if call.kind is CallKind.RECALL:
        tally.unknown += shown.state is ShownState.UNKNOWN
        _note_shown(rows, thread, call, shown, tally, at=at, now=now)
    elif call.kind is CallKind.REMEMBER:
        for memory_id in rows.existing(shown.memory_ids[:1]):
            remember = RememberCall(memory_id, thread.client, thread.session, called_at=call.at, answered_at=at)
            tally.used.update(dict.fromkeys(name_session(rows, remember, at=now)))


def _note_shown(
    rows: LedgerRows, thread: Thread, call: Call, shown: Shown, tally: _Tally, *, at: datetime, now: datetime
) -> None:
    asked = list(dict.fromkeys(shown.memory_ids))
    known = rows.existing(asked)
    if len(known) < len(asked):
        rows.count_missing(thread.id, len(asked) - len(known))
    for memory_id in known:
        if not rows.add_shown(thread, memory_id, call, at=at):
            continue
        tally.shown += 1
        if settle_shown(rows, thread.client, thread.session, memory_id, at=now):
            tally.used[memory_id] = None


def _add_slice(
    rows: LedgerRows, thread: Thread, kind: SliceKind, text: str, *, at: datetime, awaited_call: str = ""
) -> None:
    text = text[:MAX_SLICE_CHARACTERS]
    if not text or text.isspace():
        return
    size_bytes = len(text.encode())
    is_context = not thread.has_shown or thread.gathered_bytes + size_bytes > JOB_BYTES
    rows.add_slice(thread, Slice(kind, text, size_bytes, at, is_context, awaited_call))
    if is_context:
        rows.keep_last_context(thread.id, count=CONTEXT_SLICES, size_bytes=CONTEXT_BYTES)
    rows.keep_newest_slices(size_bytes=OWNER_BYTES)
