"""The activity and maintenance stores in plain collections."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from sidecar.adapters.in_memory.exporting import all_records
from sidecar.adapters.in_memory.importing import RecordImport
from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.confidence import ValidationKind
from sidecar.domain.exchange import ExportPage, ExportRecord, FileRecord, Imported
from sidecar.domain.file_activity import MAX_RECENT_DAYS, FileEvent, RecentFile, RecentFilesQuery, recent_files
from sidecar.domain.health_report import ContradictionRow, EmbedJobRow, MemoryRow
from sidecar.domain.maintenance import BackUp, HealthRow
from sidecar.domain.memory import Memory, MemoryState, MemoryType, Relation
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.store_values import CatalogRow, Edge
from sidecar.errors import StorageError
from sidecar.ports import Clock

UID_BYTES: Final = 16


class InMemoryMaintenance:
    """Implements `ActivityStore` and `MaintenanceStore`; a part of `InMemoryStore`."""

    _tables: Tables
    _clock: Clock

    async def add_file_activity(
        self, owner: str, event: FileEvent, *, client: str, metadata: Mapping[str, object]
    ) -> int:
        """See `ActivityStore.add_file_activity`."""
        tables = self._tables
        oldest = event.at - timedelta(days=MAX_RECENT_DAYS)
        tables.files = [entry for entry in tables.files if entry[0] != owner or entry[1].at >= oldest]
        record = FileRecord(
            uid=self._clock.random_bytes(UID_BYTES).hex(),
            project=event.project,
            path=event.path,
            action=event.action,
            client=client,
            session=event.session,
            metadata=dict(metadata),
            at=event.at,
        )
        tables.files.append((owner, record))
        tables.last_file += 1
        return tables.last_file

    async def recent_files(self, owner: str, query: RecentFilesQuery) -> tuple[RecentFile, ...]:
        """See `ActivityStore.recent_files`."""
        events = (
            FileEvent(file.path, file.action, file.at, file.session, file.project)
            for file_owner, file in self._tables.files
            if file_owner == owner
        )
        return recent_files(events, query, now=self._clock.now())

    async def health_rows(self, owner: str, scope: NamespaceScope) -> AsyncIterator[Sequence[HealthRow]]:
        """See `MaintenanceStore.health_rows`."""
        tables = self._tables
        memories = [
            memory
            for _, memory in sorted(tables.memories.items())
            if memory.owner == owner and memory.state is MemoryState.ACTIVE and scope.covers(memory.namespace)
        ]
        edges = [edge for edge in tables.edges if edge.relation is Relation.CONTRADICTS]
        rows: list[HealthRow] = [_memory_row(tables, memory) for memory in memories]
        rows += [_contradiction(tables, edge) for edge in edges if _is_in_scope(tables, edge, owner, scope)]
        rows += [
            EmbedJobRow(memory.id, tables.jobs[memory.key].next_try_at is None, tables.jobs[memory.key].queued_at)
            for memory in memories
            if memory.key in tables.jobs
        ]
        if rows:
            yield rows

    async def export_records(
        self, owner: str, *, is_including_forgotten: bool, page_size: int = 500
    ) -> AsyncIterator[ExportPage]:
        """See `MaintenanceStore.export_records`."""
        records = all_records(self._tables, owner, is_including_forgotten=is_including_forgotten)
        for start in range(0, len(records), page_size):
            page = tuple(records[start : start + page_size])
            yield ExportPage(page, start + len(page), len(records))

    async def import_records(self, owner: str, records: Sequence[ExportRecord]) -> Imported:
        """See `MaintenanceStore.import_records`."""
        return RecordImport(self._tables, owner, self._clock.now()).take_all(records)

    async def finish_import(self, owner: str) -> tuple[CatalogRow, ...]:
        """See `MaintenanceStore.finish_import`."""
        return RecordImport(self._tables, owner, self._clock.now()).finish()

    async def back_up(self, path: Path) -> BackUp:
        """See `MaintenanceStore.back_up`; there is no database to copy."""
        raise StorageError(f"this store has no file to copy to {path}; export the memories instead", path=str(path))


def _memory_row(tables: Tables, memory: Memory) -> MemoryRow:
    outcomes = [
        event.at
        for _, event in tables.reports
        if event.memory_id == memory.id and event.kind is not ValidationKind.APPLIED
    ]
    return MemoryRow(
        memory.id,
        memory.confidence,
        memory.type is MemoryType.GOLDEN_RULE,
        memory.created_at,
        max(outcomes, default=None),
    )


def _is_in_scope(tables: Tables, edge: Edge, owner: str, scope: NamespaceScope) -> bool:
    ends = [tables.memories[tables.keys[memory_id]] for memory_id in (edge.source_id, edge.target_id)]
    return ends[0].owner == owner and any(scope.covers(end.namespace) for end in ends)


def _contradiction(tables: Tables, edge: Edge) -> ContradictionRow:
    ends = {edge.source_id, edge.target_id}
    states = {tables.memories[tables.keys[memory_id]].state for memory_id in ends}
    return ContradictionRow(
        edge.source_id,
        edge.target_id,
        edge.created_at,
        is_between_active=states == {MemoryState.ACTIVE},
        has_successor_edge=any(
            other.relation is Relation.SUPERSEDES and {other.source_id, other.target_id} == ends
            for other in tables.edges
        ),
        is_resolved=any(
            dispute.memory_id in ends and _ended_since(dispute.resolved_at, edge.created_at)
            for _, dispute in tables.disputes.values()
        ),
    )


def _ended_since(resolved_at: datetime | None, moment: datetime) -> bool:
    return resolved_at is not None and resolved_at >= moment
