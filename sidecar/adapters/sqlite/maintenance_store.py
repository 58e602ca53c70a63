"""The activity and maintenance stores on SQLite: each method an operation of the writer, or a read."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from sidecar.adapters.sqlite import activity, backup, exporting
from sidecar.adapters.sqlite.health_rows import HEALTH_PAGES
from sidecar.adapters.sqlite.importing import ImportRecords, finish_import
from sidecar.adapters.sqlite.readers import Readers
from sidecar.adapters.sqlite.term_statistics import TermStatistics
from sidecar.adapters.sqlite.writer import Writer
from sidecar.domain.exchange import ExportPage, ExportRecord, Imported, MemoryRecord
from sidecar.domain.file_activity import FileEvent, RecentFile, RecentFilesQuery
from sidecar.domain.maintenance import BackUp, HealthRow
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.store_values import CatalogRow
from sidecar.domain.words import tokenise
from sidecar.ports import Clock

UID_BYTES: Final = 16


class SqliteMaintenance:
    """Implements `ActivityStore` and `MaintenanceStore`; a part of `SqliteStore`, which opens what it works with."""

    _path: Path
    _clock: Clock
    _writer: Writer
    _readers: Readers
    _statistics: TermStatistics

    # --- activity ---

    async def add_file_activity(
        self, owner: str, event: FileEvent, *, client: str, metadata: Mapping[str, object]
    ) -> int:
        """See `ActivityStore.add_file_activity`."""
        uid = self._clock.random_bytes(UID_BYTES).hex()
        return await self._writer.run(
            partial(activity.add_file_activity, owner=owner, event=event, uid=uid, client=client, metadata=metadata)
        )

    async def recent_files(self, owner: str, query: RecentFilesQuery) -> tuple[RecentFile, ...]:
        """See `ActivityStore.recent_files`."""
        return await self._readers.run(partial(activity.recent_files, owner=owner, query=query, now=self._clock.now()))

    # --- maintenance ---

    async def health_rows(self, owner: str, scope: NamespaceScope) -> AsyncIterator[Sequence[HealthRow]]:
        """See `MaintenanceStore.health_rows`."""
        for read in HEALTH_PAGES:
            after = 0
            while True:
                rows, after = await self._readers.run(partial(read, owner=owner, scope=scope, after=after))
                if rows:
                    yield rows
                if not after:
                    break

    async def export_records(
        self, owner: str, *, is_including_forgotten: bool, page_size: int = 500
    ) -> AsyncIterator[ExportPage]:
        """See `MaintenanceStore.export_records`."""
        extents = await self._readers.run(
            partial(exporting.extents, owner=owner, is_including_forgotten=is_including_forgotten)
        )
        total, done = sum(extent.count for extent in extents), 0
        for extent in extents:
            place: exporting.Place = exporting.BEGINNING
            while place != extent.last:
                records, place = await self._readers.run(
                    partial(exporting.read_page, owner=owner, extent=extent, after=place, limit=page_size)
                )
                done += len(records)
                if records:
                    yield ExportPage(records, done, total)

    async def import_records(self, owner: str, records: Sequence[ExportRecord]) -> Imported:
        """See `MaintenanceStore.import_records`."""
        tokens = await asyncio.to_thread(_tokens, records)
        return await self._writer.run(ImportRecords(owner, tuple(records), tokens, self._statistics, self._clock.now()))

    async def finish_import(self, owner: str) -> tuple[CatalogRow, ...]:
        """See `MaintenanceStore.finish_import`."""
        return await self._writer.run(partial(finish_import, owner=owner))

    async def back_up(self, path: Path) -> BackUp:
        """See `MaintenanceStore.back_up`."""
        return await asyncio.to_thread(backup.back_up, self._path, path)


def _tokens(records: Sequence[ExportRecord]) -> dict[str, tuple[str, ...]]:
    return {record.id: tokenise(record.content) for record in records if isinstance(record, MemoryRecord)}
