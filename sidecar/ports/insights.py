"""The seam of figures about use."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from sidecar.domain.metrics import MetricCounts, Window
from sidecar.domain.replay import RecordedRecall, UseHistory


class InsightsStore(Protocol):
    """Counts what happened to an owner's memories. Reads only; no text is looked at.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses.
    """

    async def metric_counts(self, owner: str, window: Window) -> MetricCounts:
        """Count what happened in a window; contexts built for a session are no recalls and count for nothing."""
        ...

    async def recorded_recalls(
        self, owner: str, window: Window
    ) -> tuple[list[RecordedRecall], Mapping[str, UseHistory]]:
        """Return the recorded recalls of a window, the oldest first, and what was said of each candidate's use."""
        ...

    async def prune_recorded_recalls(self, *, before: datetime, most: int) -> int:
        """Delete recorded candidates that are older, and of each owner's the oldest beyond so many; return how many.

        What was delivered stays on record.
        """
        ...
