"""Keeps multipliers in step with a window that moves on: now and then by itself, and whenever it is asked for.

Nothing waits for it: whatever counts at once, such as a challenge or a verdict, is applied where it comes in.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from sidecar.domain.hygiene import HYGIENE_LEASE, WINDOW, HygieneReport
from sidecar.ports import Clock, InsightsStore, JudgeStore, ReinforcementStore

_AT_ONCE: Final = 200
_LEASE: Final = timedelta(minutes=10)
_HOLDER_BYTES: Final = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HygienePolicy:
    """How often it runs by itself, and what it keeps.

    Attributes:
        interval_s: Between the end of one run and the next.
        keep_text_s: Texts of a judged session are kept until it was quiet for so long.
        recorded_recalls: Most recalls of an owner whose candidates are kept.
    """

    interval_s: float = 6 * 3600.0
    keep_text_s: float = 3600.0
    recorded_recalls: int = 5000


class RunHygiene:
    """Computes multipliers anew, one run at a time."""

    def __init__(
        self,
        *,
        store: ReinforcementStore,
        judging: JudgeStore,
        insights: InsightsStore,
        clock: Clock,
        policy: HygienePolicy,
    ) -> None:
        self._store = store
        self._judging = judging
        self._insights = insights
        self._clock = clock
        self._policy = policy

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            report = await self.run_once()
            log.info("hygiene", extra={"looked_at": report.looked_at, "changed": report.changed})
            await asyncio.sleep(self._policy.interval_s)

    async def run_once(self) -> HygieneReport:
        """Do one run now, unless another is under way."""
        now = self._clock.now()
        holder = self._clock.random_bytes(_HOLDER_BYTES).hex()
        if not await self._store.take_lease(HYGIENE_LEASE, holder, now=now, until=now + _LEASE):
            return HygieneReport(is_refused=True)
        try:
            report = await self._recompute_all(holder)
            # Also here: without a judge nobody else would see to them.
            await self._judging.drop_judged_texts(
                quiet_since=now - timedelta(seconds=self._policy.keep_text_s), now=now
            )
            dropped = await self._insights.prune_recorded_recalls(
                before=now - WINDOW, most=self._policy.recorded_recalls
            )
            return replace(report, dropped_recalls=dropped)
        finally:
            await self._store.release_lease(HYGIENE_LEASE, holder)

    async def _recompute_all(self, holder: str) -> HygieneReport:
        # One moment for all of it: two runs at the same time of the clock come to the same.
        at = self._clock.now()
        looked_at = changed = after_key = 0
        while True:
            places = await self._store.evidence_places(after_key=after_key, limit=_AT_ONCE)
            if not places:
                return HygieneReport(looked_at=looked_at, changed=changed)
            changed += await self._store.recompute_multipliers(places, at=at)
            looked_at += len(places)
            after_key = places[-1].key
            now = self._clock.now()
            if not await self._store.take_lease(HYGIENE_LEASE, holder, now=now, until=now + _LEASE):
                # It took so long that another run began, which will do the rest.
                return HygieneReport(looked_at=looked_at, changed=changed)
