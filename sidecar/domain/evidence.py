"""What a transcript reader reports, neutral between clients, and what becomes of it. Times are UTC and aware."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidecar.domain.memory import Relation

MAX_SLICE_CHARACTERS: Final = 8_000
"""Longer texts of a transcript are cut before they are sent: a judge reads the gist."""

MAX_READER_STATE_BYTES: Final = 16 * 1024
"""Of what a reader may carry from line to line, as UTF-8. It is written again with every batch."""

CREDITING_RELATIONS: Final = (Relation.SUPERSEDES, Relation.DERIVED_FROM)
"""Links that confirm, in band, that a shown memory was used."""


class ShownState(StrEnum):
    """What a recall's result tells of the memories that the model saw."""

    IDS = "ids"
    NOTHING = "nothing"
    CANNOT_RECORD = "cannot_record"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    """Why the shown set of a recall is not known."""

    NO_RESULT = "no_result"
    ERRORED = "errored"
    REFUSED = "refused"
    SPILLED = "spilled"
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Shown:
    """The memories that one result showed. `memory_ids` only with state IDS, `reason` only with UNKNOWN."""

    state: ShownState
    memory_ids: tuple[str, ...] = ()
    reason: UnknownReason | None = None


@dataclass(frozen=True, slots=True)
class SessionThread:
    """One line of conversation: a session's main agent, or one of its sub-agents.

    Attributes:
        agent_id: Empty for the main agent.
        project: Project name taken from the record's working directory; empty for none.
    """

    client: str
    session: str
    agent_id: str = ""
    project: str = ""
    client_version: str = ""


class SliceKind(StrEnum):
    """Who a text in a transcript comes from."""

    AGENT_TEXT = "agent_text"
    USER_TEXT = "user_text"
    TOOL_CALL = "tool_call"
    TOOL_OUTPUT = "tool_output"


@dataclass(frozen=True, slots=True)
class TextSpoken:
    """The agent or the user said something."""

    kind: SliceKind
    text: str


@dataclass(frozen=True, slots=True)
class RecallCalled:
    """The agent called one of our recalling tools."""

    call_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class RememberCalled:
    """The agent called our `remember`."""

    call_id: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The agent called any other tool; `text` is its input as a judge may read it."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A call got its result. Whether the call was a recall is known to the ledger, not to the reader.

    Attributes:
        text: What the model saw, cut; not kept for recalls, whose words are the memories' own.
    """

    call_id: str
    shown: Shown
    text: str


@dataclass(frozen=True, slots=True)
class MemoryCited:
    """The agent named a memory in the block in which its client has it cite what it used."""

    memory_id: str


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The session ended, for now: it may be taken up again."""


EvidencePayload = TextSpoken | RecallCalled | RememberCalled | ToolCalled | ToolAnswered | MemoryCited | SessionEnded


@dataclass(frozen=True, slots=True)
class EvidenceEvent:
    """One thing that happened in a session.

    Attributes:
        event_id: Unique within the client and the same at every reading, also of a copy: the call id, or the record's
            uuid and the block's number.
    """

    event_id: str
    thread: SessionThread
    at: datetime
    payload: EvidencePayload


@dataclass(frozen=True, slots=True)
class TranscriptCursor:
    """How far one transcript file has been read.

    Attributes:
        path: As the plugin names it; the key together with the client.
        file_id: Identity of the file on its disk, such as `device:inode`.
        offset: Bytes read, always just behind a newline.
        line_hash: BLAKE2b-128 in hexadecimal of the last line before `offset`, newline included; empty at 0.
        generation: Raised by one each time the file turned out to be rewritten.
        parser_version: Of the reader that read it.
        lines_read: Lines so far, and how many of them were skipped; by reason in `skipped`.
        reader_state: What the reader carries over to the line at `offset`, in a form of its own.
    """

    client: str
    path: str
    file_id: str
    offset: int
    line_hash: str
    generation: int
    parser_version: int
    lines_read: int
    skipped: tuple[tuple[str, int], ...] = ()
    reader_state: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceBatch:
    """Events of one file up to a cursor; both are taken in one transaction."""

    cursor: TranscriptCursor
    events: tuple[EvidenceEvent, ...]


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What a batch changed; a batch that was seen before changes nothing."""

    new_events: int
    repeated_events: int
    recalls: int
    shown: int
    unknown: int
    used_memory_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionCoverage:
    """What is known of one session: how many recalls, what they showed, what could not be read."""

    thread: SessionThread
    first_seen_at: datetime
    last_seen_at: datetime
    recalls: int
    shown: int
    nothing_shown: int
    cannot_record: int
    unknown: tuple[tuple[str, int], ...]
    used: int
    waiting_jobs: int


@dataclass(frozen=True, slots=True)
class SessionRecall:
    """One recall of a session: what it showed, and which of that was used in the session."""

    call_id: str
    tool: str
    agent_id: str
    at: datetime
    shown: Shown
    used_memory_ids: tuple[str, ...]


class UsageSource(StrEnum):
    """Who says that a memory was used."""

    IN_BAND = "in_band"
    CITATION = "citation"
    JUDGE = "judge"
    CHALLENGE = "challenge"
    OUTCOME = "outcome"


class Channel(StrEnum):
    """How memories are delivered: a recall answers a question, a briefing comes unasked."""

    RECALL = "recall"
    BRIEFING = "briefing"


class Valence(StrEnum):
    """What a usage event says. SURFACED and BRIEFED say that it was delivered, by a recall or in a briefing."""

    SURFACED = "surfaced"
    BRIEFED = "briefed"
    USEFUL = "useful"
    RELEVANT = "relevant"
    MISLED = "misled"


DELIVERED: Final = {Channel.RECALL: Valence.SURFACED, Channel.BRIEFING: Valence.BRIEFED}
"""What the event of a delivery says, by channel. Both count as shown; hit rates are made of recalls alone."""


BRIEFING_TOOL: Final = "build_context"
"""Our tool whose calls, in transcripts, are briefings rather than recalls."""


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """One content-free statement about one memory.

    Attributes:
        memory_id: What it is about; `credited_id` is who gets the credit (the successor, where one took its place).
        weight: 0 to 1.
        is_weak: The session is not known, only client, project and time.
        known_at: When the sidecar learnt of it in this form, by its own clock; None if at once. A verdict is about the
            time at which its memory was shown, and is given long after.
    """

    owner: str
    memory_id: str
    credited_id: str
    source: UsageSource | None
    valence: Valence
    weight: float
    client: str
    session: str
    at: datetime
    recall_id: str = ""
    is_weak: bool = False
    known_at: datetime | None = None

    def was_known(self, moment: datetime) -> bool:
        """Tell whether it had happened, and was known, before a moment."""
        return self.at < moment and (self.known_at is None or self.known_at < moment)


def session_occasion(client: str, session: str, *, otherwise: str) -> str:
    """Return what a statement about use may count once for: its session or, where that is not known, itself."""
    return f"session\x1f{client}\x1f{session}" if session else f"report\x1f{otherwise}"
