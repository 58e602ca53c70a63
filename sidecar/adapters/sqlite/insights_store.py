"""The insights store on SQLite: each method an operation of the writer, or a read."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from sidecar.adapters.sqlite import insights, recorded_recalls
from sidecar.adapters.sqlite.readers import Readers
from sidecar.adapters.sqlite.writer import Writer
from sidecar.domain.metrics import MetricCounts, Window
from sidecar.domain.replay import RecordedRecall, UseHistory


class SqliteInsights:
    """Implements `InsightsStore`; a part of `SqliteStore`, which opens what it works with."""

    _writer: Writer
    _readers: Readers

    async def metric_counts(self, owner: str, window: Window) -> MetricCounts:
        """See `InsightsStore.metric_counts`."""
        return await self._readers.run(partial(insights.metric_counts, owner=owner, window=window))

    async def recorded_recalls(
        self, owner: str, window: Window
    ) -> tuple[list[RecordedRecall], Mapping[str, UseHistory]]:
        """See `InsightsStore.recorded_recalls`."""
        return await self._readers.run(partial(insights.recorded, owner=owner, window=window))

    async def prune_recorded_recalls(self, *, before: datetime, most: int) -> int:
        """See `InsightsStore.prune_recorded_recalls`."""
        return await self._writer.run(partial(recorded_recalls.prune, before=before, most=most))
