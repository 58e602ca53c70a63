"""The seams of what sessions did with files, and of looking after the whole store: health, export, import, backup."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sidecar.domain.exchange import ExportPage, ExportRecord, Imported
from sidecar.domain.file_activity import FileEvent, RecentFile, RecentFilesQuery
from sidecar.domain.maintenance import BackUp, HealthRow
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.store_values import CatalogRow


class ActivityStore(Protocol):
    """Keeps what files sessions touched; methods touch the owner's rows only.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses; nothing was changed then.
    """

    async def add_file_activity(
        self, owner: str, event: FileEvent, *, client: str, metadata: Mapping[str, object]
    ) -> int:
        """Store that a file was touched, and return the database's id of it. Older ones than can be asked for go."""
        ...

    async def recent_files(self, owner: str, query: RecentFilesQuery) -> tuple[RecentFile, ...]:
        """Return the files touched last; see `sidecar.domain.file_activity.recent_files`."""
        ...


class MaintenanceStore(Protocol):
    """Looks after the whole store; methods with an `owner` touch that owner's rows only.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses.
    """

    def health_rows(self, owner: str, scope: NamespaceScope) -> AsyncIterator[Sequence[HealthRow]]:
        """Yield pages of what `HealthAnalysis` looks at: active memories, and the edges and jobs around them.

        An edge is yielded if either of its ends lies in the scope.
        """
        ...

    def export_records(
        self, owner: str, *, is_including_forgotten: bool, page_size: int = 500
    ) -> AsyncIterator[ExportPage]:
        """Yield everything that is stored of the owner, in an order in which it can be imported; never an empty page.

        Neither vectors, which are made anew, nor what was read out of transcripts, which are read anew. What is stored
        while it runs is left out.
        """
        ...

    async def import_records(self, owner: str, records: Sequence[ExportRecord]) -> Imported:
        """Store records in one transaction; what is there already is left as it is, and what cannot be is refused.

        Words and embed jobs are made anew. An active memory that another active one says already is stored as
        superseded by that one. After the last records, `finish_import` MUST be called.
        """
        ...

    async def finish_import(self, owner: str) -> tuple[CatalogRow, ...]:
        """Settle superseded memories whose successor is not there; return the rows whose catalog fields are new."""
        ...

    async def back_up(self, path: Path) -> BackUp:
        """Write a checked copy of the database, readable by its owner only, while it is in use.

        Raises:
            InvalidInputError: If the path is not absolute, is there already, or its folder is not.
            StorageError: If the copy cannot be written, or is not sound; no part of it is left then.
        """
        ...
