"""What looking after a store answers, as values."""

from dataclasses import dataclass

from sidecar.domain.health_report import ContradictionRow, EmbedJobRow, MemoryRow

HealthRow = MemoryRow | ContradictionRow | EmbedJobRow
"""What an analysis of health looks at, one by one."""


@dataclass(frozen=True, slots=True)
class BackUp:
    """A copy of the database that was written and found sound."""

    size_bytes: int
    memory_count: int
