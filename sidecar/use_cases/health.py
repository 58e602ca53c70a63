"""Tells which memories need a look. Reads only; the rows come in pages, so that a large store is never held at once."""

from dataclasses import dataclass, replace
from typing import Final

from sidecar.domain.health_report import (
    ContradictionRow,
    EmbedJobRow,
    HealthAnalysis,
    HealthQuery,
    HealthReport,
    MemoryRow,
)
from sidecar.domain.maintenance import HealthRow
from sidecar.domain.memory import Caller
from sidecar.domain.namespace import read_scope
from sidecar.ports import Clock, MaintenanceStore

USUAL: Final = HealthQuery()


@dataclass(frozen=True, slots=True)
class HealthRequest:
    """What to look for, and where; `stale_days` 0 for the default."""

    namespace: str = ""
    has_contradictions: bool = True
    has_low_confidence: bool = True
    has_stale: bool = True
    stale_days: int = 0


class AnalyzeHealth:
    """Looks at all memories of a scope."""

    def __init__(self, *, maintenance: MaintenanceStore, clock: Clock, defaults: HealthQuery = USUAL) -> None:
        """Take what is needed; `stale_days` of the defaults holds where the caller says nothing."""
        self._maintenance = maintenance
        self._clock = clock
        self._defaults = defaults

    async def run(self, caller: Caller, request: HealthRequest) -> HealthReport:
        """Return what was found.

        Raises:
            InvalidInputError: If namespace or days are wrong.
        """
        query = replace(
            self._defaults,
            has_contradictions=request.has_contradictions,
            has_low_confidence=request.has_low_confidence,
            has_stale=request.has_stale,
            stale_days=request.stale_days or self._defaults.stale_days,
        )
        scope = read_scope(request.namespace, project=caller.project)
        analysis = HealthAnalysis(query, self._clock.now())
        async for rows in self._maintenance.health_rows(caller.owner, scope):
            for row in rows:
                _add(analysis, row)
        return analysis.report()


def _add(analysis: HealthAnalysis, row: HealthRow) -> None:
    match row:
        case MemoryRow():
            analysis.add_memory(row)
        case ContradictionRow():
            analysis.add_contradiction(row)
        case EmbedJobRow():
            analysis.add_embed_job(row)
