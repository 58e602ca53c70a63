"""What an export holds, record by record, as values. How a record is a line of JSON is in `exchange_lines`.

Records name each other by ids that are the same everywhere: those of memories, and a `uid` where a row's own number
means nothing in another database. Owners are left out: what is imported belongs to whoever imports it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sidecar.domain.confidence import ValidationKind
from sidecar.domain.confirmation import Standing
from sidecar.domain.context import ContextKind
from sidecar.domain.disputes import Resolution
from sidecar.domain.edges import EdgeOrigin
from sidecar.domain.evidence import Channel, UsageEvent, UsageSource, Valence
from sidecar.domain.file_activity import FileAction
from sidecar.domain.memory import Memory, MemoryState, MemoryType, Provenance, Relation
from sidecar.domain.store_values import CatalogRow


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A memory.

    Attributes:
        first_accessed_at: When it counted as accessed before any recall delivered it.
        successor_id: Of the memory that replaced it, also while it is forgotten; empty for none.
        type_before: What it was before it was promoted to a golden rule; None unless it was.
        promoted_at: Since when it is a standing rule, delivered elsewhere; None unless it is.
    """

    id: str
    namespace: str
    type: MemoryType
    state: MemoryState
    previous_state: MemoryState
    importance: float
    confidence: float
    created_at: datetime
    accessed_at: datetime
    first_accessed_at: datetime
    access_count: int
    provenance: Provenance
    client: str
    session: str
    successor_id: str
    type_before: MemoryType | None
    promoted_at: datetime | None
    metadata: Mapping[str, object]
    content: str


@dataclass(frozen=True, slots=True)
class EdgeRecord:
    """An edge; there is one of a relation between two memories."""

    source_id: str
    target_id: str
    relation: Relation
    weight: float
    origin: EdgeOrigin
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ReportRecord:
    """A validation event."""

    uid: str
    memory_id: str
    kind: ValidationKind
    is_direct: bool
    client: str
    session: str
    context: str
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DisputeRecord:
    """A dispute, open without a resolution."""

    uid: str
    memory_id: str
    reason: str
    evidence: str
    client: str
    session: str
    at: datetime
    resolution: Resolution | None
    successor_id: str
    resolved_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A recall or briefing as it was delivered; which memories is told by the uses with its id."""

    recall_id: str
    client: str
    session: str
    project: str
    at: datetime
    memory_count: int
    is_degraded: bool
    channel: Channel = Channel.RECALL
    context_kind: ContextKind | None = None


@dataclass(frozen=True, slots=True)
class UseRecord:
    """A usage event, and what it counts once for."""

    memory_id: str
    credited_id: str
    source: UsageSource | None
    valence: Valence
    weight: float
    client: str
    session: str
    at: datetime
    recall_id: str
    is_weak: bool
    occasion: str
    known_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """What a judge said of a memory in a session; what counts of it are uses."""

    memory_id: str
    client: str
    session: str
    judge: str
    used: float
    relevant: float
    misled: float
    shown_at: datetime
    judged_at: datetime


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A link that confirms use once its target is known to have been shown."""

    remember_id: str
    source_id: str
    target_id: str
    relation: Relation
    client: str
    session: str
    project: str
    at: datetime
    standing: Standing


@dataclass(frozen=True, slots=True)
class MultiplierRecord:
    """A memory's reinforcement, and the evidence it rests on."""

    memory_id: str
    value: float
    useful: float
    misled: float
    computed_at: datetime


@dataclass(frozen=True, slots=True)
class FileRecord:
    """That a file was touched."""

    uid: str
    project: str
    path: str
    action: FileAction
    client: str
    session: str
    metadata: Mapping[str, object]
    at: datetime


ExportRecord = (
    MemoryRecord
    | EdgeRecord
    | ReportRecord
    | DisputeRecord
    | DeliveryRecord
    | UseRecord
    | VerdictRecord
    | ClaimRecord
    | MultiplierRecord
    | FileRecord
)


@dataclass(frozen=True, slots=True)
class ExportPage:
    """Some records, how many there were so far, and how many there are in all."""

    records: tuple[ExportRecord, ...]
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of some records.

    Attributes:
        refused: (place among those records, 0-based, and why) of those that cannot be stored.
        changed: Every memory whose catalog fields are new.
    """

    imported: int
    unchanged: int
    refused: tuple[tuple[int, str], ...] = ()
    changed: tuple[CatalogRow, ...] = ()


def memory_of(record: MemoryRecord, *, owner: str) -> Memory:
    """Return the memory that a record tells of, without a key."""
    return Memory(
        id=record.id,
        owner=owner,
        namespace=record.namespace,
        type=record.type,
        content=record.content,
        content_hash=hashlib.sha256(record.content.encode()).hexdigest(),
        created_at=record.created_at,
        accessed_at=record.accessed_at,
        importance=record.importance,
        confidence=record.confidence,
        state=record.state,
        previous_state=record.previous_state if record.state is MemoryState.FORGOTTEN else MemoryState.ACTIVE,
        provenance=record.provenance,
        client=record.client,
        session=record.session,
        access_count=record.access_count,
        superseded_by=record.successor_id,
        metadata=record.metadata,
    )


def use_of(record: UseRecord, *, owner: str) -> UsageEvent:
    """Return the usage event that a record tells of."""
    return UsageEvent(
        owner=owner,
        memory_id=record.memory_id,
        credited_id=record.credited_id,
        source=record.source,
        valence=record.valence,
        weight=record.weight,
        client=record.client,
        session=record.session,
        at=record.at,
        recall_id=record.recall_id,
        is_weak=record.is_weak,
        known_at=record.known_at,
    )
