"""How useful memories were, as figures: rates with what they rest on, series by UTC day, coverage by client. Pure.

Every figure is a proxy: what is counted is what could be read and judged. So each comes with its numerator and its
denominator, and there is none, with the reason, where there is nothing to divide by.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from sidecar.errors import InvalidInputError

DEFAULT_DAYS: Final = 30
MAX_DAYS: Final = 365
ENOUGH_VERDICTS: Final = 25
"""With fewer verdicts than this, rates say little, and memories that come up again and again are shown instead."""

NOTE: Final = (
    "Every figure is a proxy: sessions that cannot be read count for nothing, and a judge may err. "
    "Coverage by client tells how much could be read."
)


class SeriesName(StrEnum):
    """What is counted by day, in the order in which it is told."""

    RECALLS = "recalls"
    EMPTY_RECALLS = "empty_recalls"
    SURFACED = "surfaced"
    JUDGED = "judged"
    RELEVANT = "relevant"
    USED = "used"
    CAPTURED = "captured"


@dataclass(frozen=True, slots=True)
class Window:
    """Whole UTC days, `first` and `last` included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """How many."""
        return (self.last - self.first).days + 1

    @property
    def since(self) -> datetime:
        """Where it begins; inclusive."""
        return datetime.combine(self.first, datetime.min.time(), UTC)

    @property
    def until(self) -> datetime:
        """Where it ends; exclusive."""
        return datetime.combine(self.last + timedelta(days=1), datetime.min.time(), UTC)


@dataclass(frozen=True, slots=True)
class ClientCounts:
    """What was counted of one client.

    Attributes:
        answered: Recalls that the sidecar answered it.
        recalls: Recalls found in its transcripts.
        known: Those of them of which it is known what they showed, be it nothing.
        cannot_record: Those over a channel that never holds results; `unknown`: whose result should be there.
        shown: Memories that its sessions were shown, each once a session; `judged`, `used`: of sessions too.
    """

    client: str
    answered: int = 0
    recalls: int = 0
    known: int = 0
    cannot_record: int = 0
    unknown: int = 0
    shown: int = 0
    judged: int = 0
    used: int = 0

    @property
    def coverage(self) -> float | None:
        """Share of the recalls in transcripts of which it is known what they showed; None without any."""
        return self.known / self.recalls if self.recalls else None


@dataclass(frozen=True, slots=True)
class MetricCounts:
    """What was counted in a window of one owner.

    Attributes:
        surfaced: Different memories that recalls delivered; `used`: of those, with a use in the window.
        recurring: Those that at least two recalls delivered.
        judged: Different memories that were judged; `relevant`: of those, found relevant at least once.
        verdicts: One for each session and memory.
        session_recalls: Recalls that delivered something, of which the session is known; `useful_recalls`: of those,
            with a memory that the session used.
        series: By name and day; days that are missing are 0.
    """

    surfaced: int
    used: int
    recurring: int
    judged: int
    relevant: int
    verdicts: int
    session_recalls: int
    useful_recalls: int
    series: Mapping[SeriesName, Mapping[date, int]] = field(default_factory=dict)
    clients: tuple[ClientCounts, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure. `value` is None where there is nothing to compute it from, and `reason` then says why."""

    name: str
    value: float | None
    numerator: int
    denominator: int
    label: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """All figures of a window. `headline` names the metric that says most with the evidence there is."""

    window: Window
    metrics: tuple[Metric, ...]
    headline: str
    series: Mapping[SeriesName, tuple[int, ...]]
    clients: tuple[ClientCounts, ...]


def window_of(days: int, *, now: datetime) -> Window:
    """Return the UTC days up to and including today.

    Raises:
        InvalidInputError: If there are not 1 to 365 of them.
    """
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInputError("days", days, f"a whole number from 1 to {MAX_DAYS}")
    today = now.astimezone(UTC).date()
    return Window(today - timedelta(days=days - 1), today)


def make_metrics(counts: MetricCounts, window: Window) -> Metrics:
    """Return the figures that these counts come to."""
    rates = (
        _rate(
            "hit_rate",
            counts.used,
            counts.surfaced,
            "share of the surfaced memories that were used; proxy for how well memories serve",
            "no memory was surfaced",
        ),
        _rate(
            "context_precision",
            counts.relevant,
            counts.judged,
            "share of the judged memories that were relevant; proxy for how well recall chooses",
            "no session was judged",
        ),
        _volume(
            "useful_recalls",
            counts.useful_recalls,
            counts.session_recalls,
            "recalls with a memory that their session used, of those whose session is known; proxy for the benefit",
        ),
        _rate(
            "recurring_facts",
            counts.recurring,
            counts.surfaced,
            "share of the surfaced memories that two recalls or more delivered; a weaker proxy, needs no judge",
            "no memory was surfaced",
        ),
    )
    headline = "context_precision" if counts.verdicts >= ENOUGH_VERDICTS else "recurring_facts"
    return Metrics(
        window=window,
        metrics=rates,
        headline=headline,
        series={name: _by_day(counts.series.get(name, {}), window) for name in SeriesName},
        clients=tuple(sorted(counts.clients, key=lambda client: client.client)),
    )


def _rate(name: str, numerator: int, denominator: int, label: str, nothing: str) -> Metric:
    if not denominator:
        return Metric(name, None, numerator, 0, label, reason=f"{nothing} in these days")
    return Metric(name, numerator / denominator, numerator, denominator, label)


def _volume(name: str, count: int, out_of: int, label: str) -> Metric:
    if not out_of:
        return Metric(name, None, count, 0, label, reason="no recall of a known session delivered anything")
    return Metric(name, float(count), count, out_of, label)


def _by_day(counts: Mapping[date, int], window: Window) -> tuple[int, ...]:
    return tuple(counts.get(window.first + timedelta(days=day), 0) for day in range(window.days))
