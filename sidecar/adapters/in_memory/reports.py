"""The validation store in plain collections."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from sidecar.adapters.in_memory import forgetting
from sidecar.adapters.in_memory.graph import InMemoryGraph
from sidecar.adapters.in_memory.ledger_rows import InMemoryLedgerRows
from sidecar.adapters.in_memory.listing import catalog_row
from sidecar.domain.confidence import (
    ConfidenceChange,
    Standing,
    ValidationKind,
    ValidationSummary,
    summarise,
    validate,
)
from sidecar.domain.confirmation import recompute
from sidecar.domain.disputes import Challenge, Dispute, Resolution, ResolvedDispute, Verdict, misled_event
from sidecar.domain.edges import NewEdge
from sidecar.domain.evidence import UsageEvent
from sidecar.domain.memory import Memory, Relation
from sidecar.domain.store_values import CatalogRow, skip_reason
from sidecar.domain.validation import Report, ValidationEvent, ValidationOutcome, outcome_event
from sidecar.errors import DisputeNotFoundError, DisputeResolvedError, MemoryNotFoundError

UID_BYTES: Final = 16


class InMemoryReports(InMemoryGraph):
    """Implements `ValidationStore`; a part of `InMemoryStore`."""

    async def record_validation(self, owner: str, report: Report) -> ValidationOutcome:
        """See `ValidationStore.record_validation`."""
        memory = self._memory(owner, report.memory_id)
        change = None if report.kind is ValidationKind.APPLIED else self._move_confidence(memory, report)
        self._tables.last_report += 1
        event = ValidationEvent(
            id=self._tables.last_report,
            uid=self._new_uid(),
            memory_id=memory.id,
            kind=report.kind,
            is_direct=report.is_direct,
            client=report.client,
            session=report.session,
            context=report.context,
            error=report.error,
            at=report.at,
        )
        self._tables.reports.append((owner, event))
        use = outcome_event(owner, event)
        if use is not None:
            self._note_use(*use, at=event.at)
        is_other_type = change is not None and change.new.type is not change.old.type
        changed = (catalog_row(self._tables.memories[memory.key]),) if is_other_type else ()
        return ValidationOutcome(event, change, changed)

    async def validation_events(
        self, owner: str, memory_id: str, *, kind: ValidationKind | None, limit: int
    ) -> tuple[list[ValidationEvent], ValidationSummary]:
        """See `ValidationStore.validation_events`."""
        self._memory(owner, memory_id)
        events = [event for _, event in self._tables.reports if event.memory_id == memory_id]
        events.sort(key=lambda event: (event.at, event.id), reverse=True)
        listed = [event for event in events if kind in (None, event.kind)]
        return listed[:limit], summarise(event.kind for event in events)

    async def validation_summaries(self, owner: str, memory_ids: Sequence[str]) -> dict[str, ValidationSummary]:
        """See `ValidationStore.validation_summaries`."""
        kinds: dict[str, list[ValidationKind]] = {}
        for event_owner, event in self._tables.reports:
            if event_owner == owner and event.memory_id in memory_ids:
                kinds.setdefault(event.memory_id, []).append(event.kind)
        return {memory_id: summarise(found) for memory_id, found in kinds.items()}

    async def open_dispute(self, owner: str, challenge: Challenge) -> tuple[Dispute, bool]:
        """See `ValidationStore.open_dispute`."""
        memory = self._memory(owner, challenge.memory_id)
        said = (memory.id, challenge.reason, challenge.evidence)
        for _, dispute in self._tables.disputes.values():
            if dispute.resolution is None and (dispute.memory_id, dispute.reason, dispute.evidence) == said:
                return dispute, True
        self._tables.last_dispute += 1
        dispute = Dispute(
            id=self._tables.last_dispute,
            uid=self._new_uid(),
            memory_id=memory.id,
            reason=challenge.reason,
            evidence=challenge.evidence,
            client=challenge.client,
            session=challenge.session,
            at=challenge.at,
        )
        self._tables.disputes[dispute.id] = (owner, dispute)
        event, occasion = misled_event(owner, dispute)
        self._note_use(event, occasion, at=challenge.at)
        return dispute, False

    async def disputes(self, owner: str, *, memory_id: str, is_including_resolved: bool, limit: int) -> list[Dispute]:
        """See `ValidationStore.disputes`."""
        if memory_id:
            self._memory(owner, memory_id)
        found = [
            dispute
            for dispute_owner, dispute in self._tables.disputes.values()
            if dispute_owner == owner
            and memory_id in ("", dispute.memory_id)
            and (is_including_resolved or dispute.resolution is None)
        ]
        return sorted(found, key=lambda dispute: (dispute.at, dispute.id), reverse=True)[:limit]

    async def resolve_dispute(self, owner: str, dispute_id: int, verdict: Verdict, *, at: datetime) -> ResolvedDispute:
        """See `ValidationStore.resolve_dispute`."""
        dispute_owner, dispute = self._tables.disputes.get(dispute_id, ("", None))
        if dispute is None or dispute_owner != owner:
            raise DisputeNotFoundError(dispute_id)
        if dispute.resolution is not None:
            if Verdict(dispute.resolution, dispute.successor_id) != verdict:
                raise DisputeResolvedError(dispute_id, dispute.resolution)
            return ResolvedDispute(dispute)
        changed = self._apply(owner, dispute, verdict, at=at)
        resolved = replace(dispute, resolution=verdict.resolution, successor_id=verdict.successor_id, resolved_at=at)
        self._tables.disputes[dispute_id] = (owner, resolved)
        recompute(InMemoryLedgerRows(self._tables, owner), dispute.memory_id, at=at)
        return ResolvedDispute(resolved, changed)

    async def disputed_keys(self, keys: Sequence[int]) -> frozenset[int]:
        """See `ValidationStore.disputed_keys`."""
        open_ids = {dispute.memory_id for _, dispute in self._tables.disputes.values() if dispute.resolution is None}
        return frozenset(self._tables.keys[memory_id] for memory_id in open_ids) & frozenset(keys)

    async def promote(self, owner: str, memory_id: str, *, at: datetime) -> bool:
        """See `ValidationStore.promote`."""
        key = self._memory(owner, memory_id).key
        was_promoted = key in self._tables.standing_rules
        self._tables.standing_rules.setdefault(key, at)
        return was_promoted

    async def demote(self, owner: str, memory_id: str) -> bool:
        """See `ValidationStore.demote`."""
        return self._tables.standing_rules.pop(self._memory(owner, memory_id).key, None) is not None

    async def standing_rule_keys(self, keys: Sequence[int]) -> frozenset[int]:
        """See `ValidationStore.standing_rule_keys`."""
        return frozenset(self._tables.standing_rules) & frozenset(keys)

    def _apply(self, owner: str, dispute: Dispute, verdict: Verdict, *, at: datetime) -> tuple[CatalogRow, ...]:
        match verdict.resolution:
            case Resolution.KEEP:
                return ()
            case Resolution.RETIRE:
                reason = partial(skip_reason, is_forced=True, is_purge=False)
                return forgetting.forget(
                    self._tables, owner, [dispute.memory_id], reason=reason, is_purge=False, now=at
                ).changed
            case Resolution.SUPERSEDE:
                edge = NewEdge(verdict.successor_id, dispute.memory_id, Relation.SUPERSEDES)
                return self._put_edge(owner, edge).changed

    def _memory(self, owner: str, memory_id: str) -> Memory:
        memory = self._tables.find(owner, memory_id)
        if memory is None:
            raise MemoryNotFoundError(memory_id)
        return memory

    def _move_confidence(self, memory: Memory, report: Report) -> ConfidenceChange:
        tables = self._tables
        change = validate(
            Standing(memory.type, memory.confidence, tables.types_before.get(memory.key)),
            is_success=report.kind is ValidationKind.SUCCEEDED,
            provenance=memory.provenance,
            adjustment=report.adjustment,
            rules=report.rules,
        )
        tables.memories[memory.key] = replace(memory, confidence=change.new.confidence, type=change.new.type)
        tables.types_before.pop(memory.key, None)
        if change.new.type_before is not None:
            tables.types_before[memory.key] = change.new.type_before
        return change

    def _note_use(self, event: UsageEvent, occasion: str, *, at: datetime) -> None:
        rows = InMemoryLedgerRows(self._tables, event.owner)
        if rows.add_use(event, occasion=occasion):
            recompute(rows, event.memory_id, at=at)

    def _new_uid(self) -> str:
        return self._clock.random_bytes(UID_BYTES).hex()
