"""The first page: whether what is remembered helps. Every figure is one of `ExportMetrics`; none is made here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from starlette.responses import Response

from sidecar.domain.coverage import client_and_channel
from sidecar.domain.metrics import ENOUGH_VERDICTS, NOTE, ClientCounts, Metric, Metrics, SeriesName
from sidecar.web.page import Page, PageRoute, Visit
from sidecar.web.rendering import count, percent

_DAY_CHOICES: Final = (7, 30, 90, 365)
_WEAK_HEADLINE: Final = "recurring_facts"
_PROXY: Final = "proxy"


@dataclass(frozen=True, slots=True)
class _Wording:
    """How a metric is called, what its denominator counts, and whether it is a number rather than a share."""

    title: str
    out_of: str
    is_volume: bool = False


_WORDINGS: Final = {
    "hit_rate": _Wording("Hit rate", "memories that recalls delivered"),
    "context_precision": _Wording("Context precision", "memories that were judged"),
    "useful_recalls": _Wording("Useful recalls", "recalls of known sessions", is_volume=True),
    "recurring_facts": _Wording("Recurring facts", "memories that recalls delivered"),
}


@dataclass(frozen=True, slots=True)
class _Tile:
    """A metric as it is shown."""

    metric: Metric
    title: str
    value: str
    out_of: str
    sentence: str
    is_proxy: bool
    is_headline: bool


@dataclass(frozen=True, slots=True)
class _Chart:
    """Counts by day. `series`: what is shown pale, then what of it is shown in front."""

    name: str
    title: str
    sentence: str
    series: Sequence[tuple[str, Sequence[int]]]


@dataclass(frozen=True, slots=True)
class _ClientRow:
    client: str
    channel: str
    counts: ClientCounts


_CHARTS: Final = (
    (
        "recalls",
        "Recalls",
        "What agents asked for. An empty answer is a good answer where nothing fits.",
        (("asked", SeriesName.RECALLS), ("empty", SeriesName.EMPTY_RECALLS)),
    ),
    (
        "memories",
        "Memories delivered",
        "Being shown is not being useful: only use counts.",
        (("delivered", SeriesName.SURFACED), ("used", SeriesName.USED)),
    ),
    (
        "verdicts",
        "Verdicts",
        "One for each session and memory, on the day on which the memory was shown.",
        (("judged", SeriesName.JUDGED), ("relevant", SeriesName.RELEVANT)),
    ),
    ("captured", "New memories", "What was stored.", (("stored", SeriesName.CAPTURED),)),
)
_CLIENT_COLUMNS: Final = (
    ("Client", ""),
    ("Channel", ""),
    ("Answered", "num"),
    ("In transcripts", "num"),
    ("Known", "num"),
    ("Cannot record", "num"),
    ("Unknown", "num"),
    ("Shown", "num"),
    ("Judged", "num"),
    ("Used", "num"),
)


async def overview(visit: Visit) -> Response:
    """Show the page."""
    return visit.show("overview/page.html", await _values(visit))


async def figures(visit: Visit) -> Response:
    """Show the part that changes."""
    return visit.show("overview/figures.html", await _values(visit))


async def _values(visit: Visit) -> dict[str, object]:
    metrics = await visit.services.metrics.run(visit.owner, days=visit.number("days", 0))
    window = metrics.window
    return {
        "days": window.days,
        "first_day": window.first.isoformat(),
        "last_day": window.last.isoformat(),
        "day_choices": _DAY_CHOICES,
        "day_names": [(window.first + timedelta(days=day)).isoformat() for day in range(window.days)],
        "tiles": [_tile(metric, headline=metrics.headline) for metric in _in_order(metrics)],
        "is_weak": metrics.headline == _WEAK_HEADLINE,
        "verdicts": sum(metrics.series[SeriesName.JUDGED]),
        "enough_verdicts": ENOUGH_VERDICTS,
        "is_silent": not any(map(any, metrics.series.values())) and not metrics.clients,
        "charts": [
            _Chart(name, title, sentence, [(told, metrics.series[series]) for told, series in chosen])
            for name, title, sentence, chosen in _CHARTS
        ],
        "clients": [
            _ClientRow(*client_and_channel(counts.client or "not named"), counts) for counts in metrics.clients
        ],
        "client_columns": _CLIENT_COLUMNS,
        "note": NOTE,
    }


def _in_order(metrics: Metrics) -> list[Metric]:
    """Return the metrics with the one to go by in front."""
    return sorted(metrics.metrics, key=lambda metric: metric.name != metrics.headline)


def _tile(metric: Metric, *, headline: str) -> _Tile:
    wording = _WORDINGS.get(metric.name, _Wording(metric.name.replace("_", " ").capitalize(), ""))
    sentence = metric.label[:1].upper() + metric.label[1:]
    return _Tile(
        metric=metric,
        title=wording.title,
        value=count(metric.value) if wording.is_volume else percent(metric.value),
        out_of=wording.out_of,
        sentence=f"{sentence}.",
        is_proxy=_PROXY in metric.label,
        is_headline=metric.name == headline,
    )


PAGE: Final = Page(
    name="overview",
    title="Overview",
    path="",
    order=10,
    icon="M2.5 13.5h11M4.5 11V8M8 11V3.5M11.5 11V6",
    routes=(PageRoute("", overview), PageRoute("figures", figures)),
)
