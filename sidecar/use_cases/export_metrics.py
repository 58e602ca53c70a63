"""Tells how useful an owner's memories were, in figures."""

from sidecar.domain.metrics import DEFAULT_DAYS, Metrics, make_metrics, window_of
from sidecar.ports import Clock, InsightsStore


class ExportMetrics:
    """Makes figures of what the store counts."""

    def __init__(self, *, insights: InsightsStore, clock: Clock, days: int = DEFAULT_DAYS) -> None:
        """Take what is needed; `days` are looked at where the caller names no number."""
        self._insights = insights
        self._clock = clock
        self._days = days

    async def run(self, owner: str, *, days: int = 0) -> Metrics:
        """Return the figures of the last days, today included.

        Raises:
            InvalidInputError: If the number of days is out of range.
        """
        window = window_of(days or self._days, now=self._clock.now())
        return make_metrics(await self._insights.metric_counts(owner, window), window)
