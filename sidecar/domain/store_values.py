"""What goes into and comes out of the memory store, beside memories themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sidecar.domain.context import ContextKind
from sidecar.domain.evidence import DELIVERED, Channel, UsageEvent
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Link, Memory, MemoryState, MemoryType, Provenance, Relation


@dataclass(frozen=True, slots=True)
class LinkWish:
    """How a new memory is to be related to those near it, once it is embedded.

    Attributes:
        max_links: Most relations, 1 or more.
        threshold: Lowest raw cosine, 0 to 1.
        is_refined: Whether a language model may say more of them.
    """

    max_links: int
    threshold: float
    is_refined: bool = True


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to store, with all that goes into the same transaction.

    Attributes:
        memory: Its `key` is given by the store.
        tokens: Terms for word search, as `sidecar.domain.words.tokenise` makes them.
        request_key: The caller's key for this request; empty for none. A repeated key returns the first outcome.
        request_digest: Of the request's content; the same key with another digest is refused.
        project: Of the caller, for in-band claims without a session; empty for none.
        link_wish: None to relate it to nothing by itself.
    """

    memory: Memory
    tokens: tuple[str, ...]
    links: tuple[Link, ...] = ()
    request_key: str = ""
    request_digest: str = ""
    project: str = ""
    link_wish: LinkWish | None = None


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """The fields that decide whether a memory may be returned; what the filter in front of the vectors knows.

    Attributes:
        session: The session it was remembered in, which tells what was remembered next to it; empty if not known.
    """

    key: int
    owner: str
    namespace: str
    type: MemoryType
    importance: float
    state: MemoryState
    created_at: datetime
    session: str = ""


@dataclass(frozen=True, slots=True)
class AddOutcome:
    """What storing did. `changed` lists every row whose catalog fields are new, the added one included."""

    memory_id: str
    content_hash: str
    is_deduplicated: bool
    is_indexed: bool
    changed: tuple[CatalogRow, ...] = ()
    used_memory_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A stored relation. Its id is the database's own."""

    id: int
    source_id: str
    target_id: str
    relation: Relation
    weight: float
    created_at: datetime


class SkipReason(StrEnum):
    """Why a memory was not forgotten."""

    GOLDEN_RULE = "golden_rule"
    ALREADY_FORGOTTEN = "already_forgotten"
    NOT_FOUND = "not_found"


def skip_reason(
    memory: Memory, *, is_forced: bool, is_purge: bool, golden_from: float = GOLDEN_CONFIDENCE
) -> SkipReason | None:
    """Return why a memory is left alone, None if it is not; from `golden_from` on it is a golden rule."""
    if memory.state is MemoryState.FORGOTTEN and not is_purge:
        return SkipReason.ALREADY_FORGOTTEN
    if memory.is_golden_from(golden_from) and not is_forced:
        return SkipReason.GOLDEN_RULE
    return None


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A caller's key for one request, and the digest of its content: a repeat changes nothing."""

    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class RankFields:
    """What ranking needs to know of a candidate beside its relevance.

    Attributes:
        reinforcement: Its multiplier; 1 without evidence.
        is_standing_rule: Whether it is delivered elsewhere as a standing rule.
    """

    memory_type: MemoryType
    created_at: datetime
    provenance: Provenance
    reinforcement: float
    is_standing_rule: bool = False


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What forgetting did, or in a preview would do.

    Attributes:
        forgotten_ids: In the order in which they were asked for.
        memories: Those of them that are still there to be shown.
        purged_keys: Whose vectors must leave the index, and the disk.
    """

    forgotten_ids: tuple[str, ...]
    memories: tuple[Memory, ...]
    skipped: tuple[tuple[str, SkipReason], ...]
    changed: tuple[CatalogRow, ...] = ()
    purged_keys: tuple[int, ...] = ()


class OrderBy(StrEnum):
    """What a listing is ordered by; equal values are ordered by id."""

    CREATED_AT = "created_at"
    ACCESSED_AT = "accessed_at"
    IMPORTANCE = "importance"
    CONFIDENCE = "confidence"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing. `next_cursor` is empty on the last one."""

    memories: tuple[Memory, ...]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How many memories there are."""

    total: int
    by_namespace: Mapping[str, int]
    by_type: Mapping[str, int]
    by_state: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WordHit:
    """A memory found by words. `score` is BM25, above 0, higher is better."""

    key: int
    score: float


@dataclass(frozen=True, slots=True)
class WordQuery:
    """Terms of a query with what the whole store says of them.

    Attributes:
        terms: Each once, the rarest first, without those that are too common to help.
        best_score: The BM25 score of a memory of average length that holds every term once.
    """

    terms: tuple[str, ...]
    best_score: float


@dataclass(frozen=True, slots=True)
class EmbedJob:
    """A memory that waits for its vector under the model in use."""

    key: int
    memory_id: str
    content: str
    attempts: int


@dataclass(frozen=True, slots=True)
class JobCounts:
    """The embedding backlog."""

    pending: int
    parked: int
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class ParkedJob:
    """A job that was given up, and why."""

    memory_id: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """What a candidate of a recall was ranked by.

    Attributes:
        relevance: 0 to 1; `factors`: product of what it was multiplied by, reinforcement apart.
        is_exact: See `sidecar.domain.reinforcement.applied`.
    """

    key: int
    relevance: float
    factors: float
    is_exact: bool


@dataclass(frozen=True, slots=True)
class RecallRecord:
    """One recall or briefing as it was delivered: ids and figures only.

    Attributes:
        memory_ids: Of all that was delivered, the found ones first.
        context_kind: Of a briefing; None for a recall.
        request: The caller's key; a repeat counts as the recall that came first with it.
        candidates: The best ones in order, to try other constants on; empty to record none.
        found_count: How many of those were delivered.
        is_unreinforced: Whether evidence of use was left out of account, to measure what it does.
    """

    recall_id: str
    owner: str
    client: str
    session: str
    project: str
    at: datetime
    memory_ids: tuple[str, ...]
    is_degraded: bool
    channel: Channel = Channel.RECALL
    context_kind: ContextKind | None = None
    request: RequestKey | None = None
    candidates: tuple[RankedCandidate, ...] = ()
    found_count: int = 0
    is_unreinforced: bool = False

    @property
    def moves_access(self) -> bool:
        """Whether it counts as access. Briefings are chosen by access, so one would be the reason for the next."""
        return self.channel is Channel.RECALL

    def event_of(self, memory_id: str) -> UsageEvent:
        """Return the event of one of its memories."""
        return UsageEvent(
            owner=self.owner,
            memory_id=memory_id,
            credited_id=memory_id,
            source=None,
            valence=DELIVERED[self.channel],
            weight=0.0,
            client=self.client,
            session=self.session,
            at=self.at,
            recall_id=self.recall_id,
        )

    @property
    def occasion(self) -> str:
        """What each of its events counts once for."""
        return f"recall\x1f{self.recall_id}"


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """What the store says of itself."""

    schema: int
    engine: str
    database_bytes: int
    wal_bytes: int
    free_bytes: int
    problems: tuple[str, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
