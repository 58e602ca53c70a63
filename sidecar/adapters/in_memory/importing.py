"""Takes export records into plain collections: what is there stays as it is, what cannot be taken is refused."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sidecar.adapters.in_memory.listing import catalog_row
from sidecar.adapters.in_memory.succession import InMemorySuccessionRows, find_active, settle
from sidecar.adapters.in_memory.tables import Job, Tables
from sidecar.domain.confirmation import Claim
from sidecar.domain.disputes import Dispute
from sidecar.domain.edges import closes_circle
from sidecar.domain.exchange import (
    ClaimRecord,
    DeliveryRecord,
    DisputeRecord,
    EdgeRecord,
    ExportRecord,
    FileRecord,
    Imported,
    MemoryRecord,
    MultiplierRecord,
    ReportRecord,
    UseRecord,
    VerdictRecord,
    memory_of,
    use_of,
)
from sidecar.domain.judge_jobs import JobKey, StoredVerdict
from sidecar.domain.judgement import Verdict
from sidecar.domain.memory import Memory, MemoryState, Relation
from sidecar.domain.reinforcement import Evidence
from sidecar.domain.store_values import CatalogRow, RecallRecord
from sidecar.domain.validation import ValidationEvent
from sidecar.domain.words import tokenise
from sidecar.errors import (
    InvalidInputError,
    MemoryNotFoundError,
    NotFoundError,
    StateConflictError,
    SupersessionCircleError,
)


@dataclass(frozen=True, slots=True)
class RecordImport:
    """Takes records for one owner."""

    tables: Tables
    owner: str
    now: datetime

    def take_all(self, records: Sequence[ExportRecord]) -> Imported:
        """See `MaintenanceStore.import_records`."""
        imported = 0
        refused: list[tuple[int, str]] = []
        changed: dict[int, CatalogRow] = {}
        for place, record in enumerate(records):
            try:
                is_new, rows = self._take(record)
            except (InvalidInputError, NotFoundError, StateConflictError) as error:
                refused.append((place, error.message))
                continue
            imported += is_new
            changed.update((row.key, row) for row in rows)
        return Imported(imported, len(records) - imported - len(refused), tuple(refused), tuple(changed.values()))

    def finish(self) -> tuple[CatalogRow, ...]:
        """See `MaintenanceStore.finish_import`."""
        lost = [
            key
            for key, memory in self.tables.memories.items()
            if memory.owner == self.owner
            and MemoryState.SUPERSEDED in (memory.state, memory.previous_state)
            and self.tables.successors.get(key, "") not in self.tables.keys
        ]
        return tuple(settle(self.tables, sorted(lost)))

    def _take(self, record: ExportRecord) -> tuple[bool, Sequence[CatalogRow]]:
        if isinstance(record, MemoryRecord):
            return self._take_memory(record)
        if isinstance(record, EdgeRecord):
            return self._take_edge(record)
        take: Mapping[type[ExportRecord], Callable[..., bool]] = {
            ReportRecord: self._take_report,
            DisputeRecord: self._take_dispute,
            DeliveryRecord: self._take_delivery,
            UseRecord: self._take_use,
            VerdictRecord: self._take_verdict,
            ClaimRecord: self._take_claim,
            MultiplierRecord: self._take_multiplier,
            FileRecord: self._take_file,
        }
        return take[type(record)](record), ()

    def _take_memory(self, record: MemoryRecord) -> tuple[bool, Sequence[CatalogRow]]:
        tables = self.tables
        if record.id in tables.keys:
            if tables.find(self.owner, record.id) is None:
                raise InvalidInputError("id", record.id, "an id that no other owner's memory has")
            return False, ()
        memory = memory_of(record, owner=self.owner)
        twin = find_active(tables, memory) if memory.state is MemoryState.ACTIVE else None
        if twin is not None:
            # Two active memories must not say the same.
            memory = replace(memory, state=MemoryState.SUPERSEDED, superseded_by=twin.id)
        tables.last_key += 1
        key = tables.last_key
        if memory.superseded_by:
            tables.successors[key] = memory.superseded_by
        is_superseded = memory.state is MemoryState.SUPERSEDED
        stored = replace(memory, key=key, superseded_by=memory.superseded_by if is_superseded else "")
        tables.memories[key] = stored
        tables.keys[stored.id] = key
        tables.first_accessed[key] = record.first_accessed_at
        tables.tokens[key] = Counter(tokenise(stored.content))
        tables.jobs[key] = Job(0, self.now, self.now)
        if record.type_before is not None:
            tables.types_before[key] = record.type_before
        if record.promoted_at is not None:
            tables.standing_rules[key] = record.promoted_at
        return True, (catalog_row(stored),)

    def _take_edge(self, record: EdgeRecord) -> tuple[bool, Sequence[CatalogRow]]:
        tables = self.tables
        source, target = self._memory(record.source_id), self._memory(record.target_id)
        triple = (source.id, target.id, record.relation)
        if any((edge.source_id, edge.target_id, edge.relation) == triple for edge in tables.edges):
            return False, ()
        if source.key == target.key:
            raise InvalidInputError("target_id", record.target_id, "another memory than the source")
        is_superseding = record.relation is Relation.SUPERSEDES
        if is_superseding and closes_circle(InMemorySuccessionRows(tables), source.key, target.key):
            raise SupersessionCircleError(source.id, target.id)
        tables.add_edge(*triple, at=record.created_at, weight=record.weight, origin=record.origin)
        return True, settle(tables, [target.key]) if is_superseding else ()

    def _take_report(self, record: ReportRecord) -> bool:
        self._memory(record.memory_id)
        if any(event.uid == record.uid for _, event in self.tables.reports):
            return False
        self.tables.last_report += 1
        event = ValidationEvent(
            id=self.tables.last_report,
            uid=record.uid,
            memory_id=record.memory_id,
            kind=record.kind,
            is_direct=record.is_direct,
            client=record.client,
            session=record.session,
            context=record.context,
            error=record.error,
            at=record.at,
        )
        self.tables.reports.append((self.owner, event))
        return True

    def _take_dispute(self, record: DisputeRecord) -> bool:
        self._memory(record.memory_id)
        if any(dispute.uid == record.uid for _, dispute in self.tables.disputes.values()):
            return False
        self.tables.last_dispute += 1
        dispute = Dispute(
            id=self.tables.last_dispute,
            uid=record.uid,
            memory_id=record.memory_id,
            reason=record.reason,
            evidence=record.evidence,
            client=record.client,
            session=record.session,
            at=record.at,
            resolution=record.resolution,
            successor_id=record.successor_id,
            resolved_at=record.resolved_at,
        )
        self.tables.disputes[dispute.id] = (self.owner, dispute)
        return True

    def _take_delivery(self, record: DeliveryRecord) -> bool:
        if record.recall_id in self.tables.recalls:
            return False
        self.tables.recall_sizes[record.recall_id] = record.memory_count
        self.tables.recalls[record.recall_id] = RecallRecord(
            recall_id=record.recall_id,
            owner=self.owner,
            client=record.client,
            session=record.session,
            project=record.project,
            at=record.at,
            memory_ids=(),
            is_degraded=record.is_degraded,
            channel=record.channel,
            context_kind=record.context_kind,
        )
        return True

    def _take_use(self, record: UseRecord) -> bool:
        return self.tables.add_usage(use_of(record, owner=self.owner), occasion=record.occasion)

    def _take_verdict(self, record: VerdictRecord) -> bool:
        key = JobKey(self.owner, record.client, record.session, record.memory_id)
        if key in self.tables.verdicts:
            return False
        verdict = Verdict(record.memory_id, used=record.used, relevant=record.relevant, misled=record.misled)
        self.tables.verdicts[key] = StoredVerdict(
            key, record.judge, verdict, shown_at=record.shown_at, judged_at=record.judged_at
        )
        return True

    def _take_claim(self, record: ClaimRecord) -> bool:
        identity = (self.owner, record.remember_id, record.target_id, record.relation)
        if identity in self.tables.claims:
            return False
        self.tables.claims[identity] = Claim(
            remember_id=record.remember_id,
            source_id=record.source_id,
            target_id=record.target_id,
            relation=record.relation,
            client=record.client,
            session=record.session,
            project=record.project,
            at=record.at,
            standing=record.standing,
        )
        return True

    def _take_multiplier(self, record: MultiplierRecord) -> bool:
        identity = (self.owner, self._memory(record.memory_id).id)
        if identity in self.tables.multipliers:
            return False
        self.tables.multipliers[identity] = record.value
        self.tables.multiplier_bases[identity] = (Evidence(record.useful, record.misled), record.computed_at)
        return True

    def _take_file(self, record: FileRecord) -> bool:
        if any(file.uid == record.uid for _, file in self.tables.files):
            return False
        self.tables.files.append((self.owner, record))
        return True

    def _memory(self, memory_id: str) -> Memory:
        memory = self.tables.find(self.owner, memory_id)
        if memory is None:
            raise MemoryNotFoundError(memory_id)
        return memory
