"""Everything that the collections hold of an owner, as export records in the order of the SQLite store's."""

from collections.abc import Iterator

from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.edges import EdgeOrigin
from sidecar.domain.exchange import (
    ClaimRecord,
    DeliveryRecord,
    DisputeRecord,
    EdgeRecord,
    ExportRecord,
    MemoryRecord,
    MultiplierRecord,
    ReportRecord,
    UseRecord,
    VerdictRecord,
)
from sidecar.domain.memory import Memory, MemoryState


def all_records(tables: Tables, owner: str, *, is_including_forgotten: bool) -> list[ExportRecord]:
    """Return an owner's records, in an order in which they can be imported."""
    memories = {
        memory.id: memory
        for _, memory in sorted(tables.memories.items())
        if memory.owner == owner and (is_including_forgotten or memory.state is not MemoryState.FORGOTTEN)
    }
    return [
        *(_memory(tables, memory) for memory in memories.values()),
        *_edges(tables, memories),
        *_reports(tables, memories),
        *_disputes(tables, memories),
        *_deliveries(tables, owner),
        *_uses(tables, owner),
        *_verdicts(tables, owner),
        *_claims(tables, owner),
        *_multipliers(tables, memories),
        *(file for file_owner, file in tables.files if file_owner == owner),
    ]


def _memory(tables: Tables, memory: Memory) -> MemoryRecord:
    return MemoryRecord(
        id=memory.id,
        namespace=memory.namespace,
        type=memory.type,
        state=memory.state,
        previous_state=memory.previous_state,
        importance=memory.importance,
        confidence=memory.confidence,
        created_at=memory.created_at,
        accessed_at=memory.accessed_at,
        first_accessed_at=tables.first_accessed[memory.key],
        access_count=memory.access_count,
        provenance=memory.provenance,
        client=memory.client,
        session=memory.session,
        successor_id=tables.successors.get(memory.key, ""),
        type_before=tables.types_before.get(memory.key),
        promoted_at=tables.standing_rules.get(memory.key),
        metadata=memory.metadata,
        content=memory.content,
    )


def _edges(tables: Tables, memories: dict[str, Memory]) -> Iterator[EdgeRecord]:
    for edge in tables.edges:
        if edge.source_id in memories and edge.target_id in memories:
            origin = tables.edge_origins.get(edge.id, EdgeOrigin.DECLARED)
            yield EdgeRecord(edge.source_id, edge.target_id, edge.relation, edge.weight, origin, edge.created_at)


def _reports(tables: Tables, memories: dict[str, Memory]) -> Iterator[ReportRecord]:
    for _, event in tables.reports:
        if event.memory_id in memories:
            yield ReportRecord(
                uid=event.uid,
                memory_id=event.memory_id,
                kind=event.kind,
                is_direct=event.is_direct,
                client=event.client,
                session=event.session,
                context=event.context,
                error=event.error,
                at=event.at,
            )


def _disputes(tables: Tables, memories: dict[str, Memory]) -> Iterator[DisputeRecord]:
    for _, dispute in tables.disputes.values():
        if dispute.memory_id in memories:
            yield DisputeRecord(
                uid=dispute.uid,
                memory_id=dispute.memory_id,
                reason=dispute.reason,
                evidence=dispute.evidence,
                client=dispute.client,
                session=dispute.session,
                at=dispute.at,
                resolution=dispute.resolution,
                successor_id=dispute.successor_id,
                resolved_at=dispute.resolved_at,
            )


def _deliveries(tables: Tables, owner: str) -> Iterator[DeliveryRecord]:
    for recall_id, record in sorted(tables.recalls.items()):
        if record.owner == owner:
            yield DeliveryRecord(
                recall_id=recall_id,
                client=record.client,
                session=record.session,
                project=record.project,
                at=record.at,
                memory_count=tables.recall_sizes[recall_id],
                is_degraded=record.is_degraded,
                channel=record.channel,
                context_kind=record.context_kind,
            )


def _uses(tables: Tables, owner: str) -> Iterator[UseRecord]:
    for entry in tables.usage:
        event = entry.event
        if event.owner == owner:
            yield UseRecord(
                memory_id=event.memory_id,
                credited_id=event.credited_id,
                source=event.source,
                valence=event.valence,
                weight=event.weight,
                client=event.client,
                session=event.session,
                at=event.at,
                recall_id=event.recall_id,
                is_weak=event.is_weak,
                occasion=entry.occasion,
                known_at=event.known_at,
            )


def _verdicts(tables: Tables, owner: str) -> Iterator[VerdictRecord]:
    for key, stored in tables.verdicts.items():
        if key.owner == owner:
            yield VerdictRecord(
                memory_id=key.memory_id,
                client=key.client,
                session=key.session,
                judge=stored.judge,
                used=stored.verdict.used,
                relevant=stored.verdict.relevant,
                misled=stored.verdict.misled,
                shown_at=stored.shown_at,
                judged_at=stored.judged_at,
            )


def _claims(tables: Tables, owner: str) -> Iterator[ClaimRecord]:
    for (claim_owner, *_), claim in tables.claims.items():
        if claim_owner == owner:
            yield ClaimRecord(
                remember_id=claim.remember_id,
                source_id=claim.source_id,
                target_id=claim.target_id,
                relation=claim.relation,
                client=claim.client,
                session=claim.session,
                project=claim.project,
                at=claim.at,
                standing=claim.standing,
            )


def _multipliers(tables: Tables, memories: dict[str, Memory]) -> Iterator[MultiplierRecord]:
    for memory in memories.values():
        value = tables.multipliers.get((memory.owner, memory.id))
        if value is not None:
            evidence, at = tables.multiplier_bases[memory.owner, memory.id]
            yield MultiplierRecord(memory.id, value, evidence.useful, evidence.misled, at)
