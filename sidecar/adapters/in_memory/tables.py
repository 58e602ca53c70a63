"""What the in-memory store holds, as plain collections. No rules."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sidecar.domain.confirmation import Citation, Claim
from sidecar.domain.disputes import Dispute
from sidecar.domain.edges import EdgeOrigin
from sidecar.domain.evidence import DELIVERED, SessionThread, TranscriptCursor, UsageEvent
from sidecar.domain.exchange import FileRecord
from sidecar.domain.judge_jobs import JobKey, JobState, StoredVerdict
from sidecar.domain.ledger import Call, Slice
from sidecar.domain.memory import Memory, MemoryType, Relation
from sidecar.domain.reinforcement import Evidence
from sidecar.domain.replay import RecordedCandidate
from sidecar.domain.store_values import AddOutcome, Edge, Forgetting, LinkWish, RecallRecord
from sidecar.domain.validation import ValidationEvent
from sidecar.ports import Embedding

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KeptOutcome:
    """What the first request with a key led to."""

    digest: str
    outcome: AddOutcome
    at: datetime


@dataclass(frozen=True, slots=True)
class KeptForgetting:
    """What the first request to forget with a key led to."""

    digest: str
    outcome: Forgetting
    at: datetime


@dataclass(frozen=True, slots=True)
class KeptRecall:
    """Which recall the first request with a key counts as."""

    digest: str
    recall_id: str
    at: datetime


@dataclass(slots=True)
class Job:
    """A memory that waits for its vector; parked without a next try."""

    attempts: int
    next_try_at: datetime | None
    queued_at: datetime
    reason: str = ""


@dataclass(slots=True)
class ThreadEntry:
    """What is kept of one session thread."""

    id: int
    owner: str
    thread: SessionThread
    first_seen_at: datetime
    last_seen_at: datetime
    missing_ids: int = 0
    dropped_slices: int = 0
    gathered_bytes: int = 0
    read_at: datetime = _NEVER
    """When anything of it was read last, by our own clock."""
    ended_at: datetime = _NEVER
    """When the client said last that its session ends, by the client's clock."""
    slices: list[tuple[int, Slice]] = field(default_factory=list)
    shown: dict[tuple[str, str], tuple[datetime, int]] = field(default_factory=dict)
    """(memory id, call id) to when it was shown and the number of the last slice before."""


@dataclass(slots=True)
class JudgeEntry:
    """A judge job; `thread_id` is that of the thread that saw the memory first."""

    number: int
    thread_id: int
    created_at: datetime
    state: JobState = JobState.WAITING
    revision: int = 0
    attempts: int = 0
    next_try_at: datetime | None = None
    leased_until: datetime | None = None
    has_lost_text: bool = False
    reason: str = ""


@dataclass(slots=True)
class UsageEntry:
    """A usage event with its number and what it may count once for."""

    number: int
    event: UsageEvent
    occasion: str

    @property
    def identity(self) -> tuple[str, str, str, str, str]:
        """What there is only one event of."""
        event = self.event
        return event.owner, event.memory_id, self.occasion, event.valence, event.source or ""


@dataclass(slots=True)
class Tables:
    """All of it."""

    memories: dict[int, Memory] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    successors: dict[int, str] = field(default_factory=dict)
    """Key to the id of the successor, also while the memory is forgotten."""
    first_accessed: dict[int, datetime] = field(default_factory=dict)
    tokens: dict[int, Counter[str]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    kept_outcomes: dict[tuple[str, str], KeptOutcome] = field(default_factory=dict)
    kept_forgettings: dict[tuple[str, str], KeptForgetting] = field(default_factory=dict)
    kept_recalls: dict[tuple[str, str], KeptRecall] = field(default_factory=dict)
    vectors: dict[tuple[str, int], Embedding] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    link_wishes: dict[int, LinkWish] = field(default_factory=dict)
    model_id: str = ""
    recalls: dict[str, RecallRecord] = field(default_factory=dict)
    usage: list[UsageEntry] = field(default_factory=list)
    claims: dict[tuple[str, str, str, Relation], Claim] = field(default_factory=dict)
    """(owner, remember id, target id, relation) to the claim."""
    citations: dict[tuple[str, str, str, str], Citation] = field(default_factory=dict)
    """(owner, client, session, memory id) to the citation."""
    multipliers: dict[tuple[str, str], float] = field(default_factory=dict)
    seen_events: set[bytes] = field(default_factory=set)
    threads: dict[int, ThreadEntry] = field(default_factory=dict)
    calls: dict[tuple[str, str, str], Call] = field(default_factory=dict)
    judge_jobs: dict[JobKey, JudgeEntry] = field(default_factory=dict)
    verdicts: dict[JobKey, StoredVerdict] = field(default_factory=dict)
    cursors: dict[tuple[str, str, str], TranscriptCursor] = field(default_factory=dict)
    last_key: int = 0
    last_edge: int = 0
    last_slice: int = 0
    last_usage: int = 0
    edge_origins: dict[int, EdgeOrigin] = field(default_factory=dict)
    """Id of an edge to why it is there, if it was not declared."""
    types_before: dict[int, MemoryType] = field(default_factory=dict)
    """Key to the type that a golden rule had before it was promoted."""
    standing_rules: dict[int, datetime] = field(default_factory=dict)
    multiplier_bases: dict[tuple[str, str], tuple[Evidence, datetime]] = field(default_factory=dict)
    """(owner, memory id) to what its multiplier rests on, and when it was computed."""
    reports: list[tuple[str, ValidationEvent]] = field(default_factory=list)
    """(owner, event) pairs."""
    disputes: dict[int, tuple[str, Dispute]] = field(default_factory=dict)
    files: list[tuple[str, FileRecord]] = field(default_factory=list)
    recall_candidates: dict[str, tuple[RecordedCandidate, ...]] = field(default_factory=dict)
    """Recall id to its candidates, the best first."""
    recall_sizes: dict[str, int] = field(default_factory=dict)
    """Recall id to how many memories it delivered, where their ids are not known."""
    leases: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    """Name to who holds it, and until when."""
    last_report: int = 0
    last_dispute: int = 0
    last_file: int = 0

    def find(self, owner: str, memory_id: str) -> Memory | None:
        """Return an owner's memory, None if there is none of that id."""
        memory = self.memories.get(self.keys.get(memory_id, 0))
        return memory if memory is not None and memory.owner == owner else None

    def add_edge(
        self,
        source_id: str,
        target_id: str,
        relation: Relation,
        *,
        at: datetime,
        weight: float = 1.0,
        origin: EdgeOrigin = EdgeOrigin.DECLARED,
    ) -> bool:
        """Store an edge unless it is there, and tell whether it was new."""
        triple = (source_id, target_id, relation)
        if any((edge.source_id, edge.target_id, edge.relation) == triple for edge in self.edges):
            return False
        self.last_edge += 1
        self.edges.append(Edge(self.last_edge, source_id, target_id, relation, weight, at))
        if origin is not EdgeOrigin.DECLARED:
            self.edge_origins[self.last_edge] = origin
        return True

    def add_usage(self, event: UsageEvent, *, occasion: str) -> bool:
        """Store an event unless its occasion has it already, and tell whether it was new."""
        entry = UsageEntry(self.last_usage + 1, event, occasion)
        if any(entry.identity == other.identity for other in self.usage):
            return False
        self.last_usage = entry.number
        self.usage.append(entry)
        return True

    def delivered(self, owner: str, memory_id: str) -> list[UsageEvent]:
        """Return the events of the memory's deliveries, by recalls and in briefings."""
        return [
            entry.event
            for entry in self.usage
            if entry.event.owner == owner
            and entry.event.memory_id == memory_id
            and entry.event.valence in DELIVERED.values()
        ]

    def end_session(self, owner: str, client: str, session: str, *, at: datetime) -> bool:
        """Note that a session ended; tell whether it is known."""
        threads = [
            entry
            for entry in self.threads.values()
            if (entry.owner, entry.thread.client, entry.thread.session) == (owner, client, session)
        ]
        for entry in threads:
            entry.ended_at = max(entry.ended_at, at)
        return bool(threads)

    def note_lost_text(self, entry: ThreadEntry) -> None:
        """Note that texts of a thread went before its session was over: a new verdict cannot know of them."""
        session = (entry.owner, entry.thread.client, entry.thread.session)
        for key, job in self.judge_jobs.items():
            if (key.owner, key.client, key.session) == session:
                job.has_lost_text = True
