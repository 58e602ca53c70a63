"""Samples, percentiles and what a run found out. Durations are in milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of one series of durations, ms."""

    count: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report.

    Attributes:
        floor: What the machine itself needs, ms at p50; None where nothing bounds it.
        floor_name: Of what that is made.
        budget: Highest ratio to the floor that the design allows; None without one.
    """

    name: str
    durations: Percentiles
    floor: float | None = None
    floor_name: str = ""
    budget: float | None = None

    @property
    def ratio(self) -> float | None:
        """The median over the floor."""
        return self.durations.p50 / self.floor if self.floor else None


@dataclass(frozen=True, slots=True)
class Amount:
    """A figure that is no duration."""

    name: str
    value: float
    unit: str


@dataclass(slots=True)
class Report:
    """Everything that a run measured, in order."""

    machine: dict[str, str]
    figures: list[Figure] = field(default_factory=list)
    amounts: list[Amount] = field(default_factory=list)


def percentiles(durations_ms: Sequence[float]) -> Percentiles:
    """Return the percentiles of at least one duration, by nearest rank."""
    ordered = sorted(durations_ms)

    def rank(share: float) -> float:
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    return Percentiles(len(ordered), rank(0.50), rank(0.95), rank(0.99))
