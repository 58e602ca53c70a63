"""Figures: never a number made of nothing, and the weaker one said to be so."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from sidecar.domain.metrics import (
    ENOUGH_VERDICTS,
    ClientCounts,
    MetricCounts,
    SeriesName,
    Window,
    make_metrics,
    window_of,
)
from sidecar.errors import InvalidInputError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WINDOW = window_of(3, now=NOW)


def counts(**figures: int) -> MetricCounts:
    names = ("surfaced", "used", "recurring", "judged", "relevant", "verdicts", "session_recalls", "useful_recalls")
    return MetricCounts(**{name: figures.get(name, 0) for name in names})  # type: ignore[arg-type]


def test_window_is_whole_utc_days_up_to_today() -> None:
    """Wherever the clock that tells the time is."""
    tokyo = datetime(2026, 3, 2, 1, tzinfo=timezone(timedelta(hours=9)))
    assert window_of(3, now=tokyo) == Window(date(2026, 2, 27), date(2026, 3, 1))
    assert (WINDOW.since, WINDOW.until) == (datetime(2026, 2, 27, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
    assert WINDOW.days == 3


@pytest.mark.parametrize("days", [0, -1, 366])
def test_window_has_one_to_365_days(days: int) -> None:
    """Anything else names the field and what would be right."""
    with pytest.raises(InvalidInputError, match="days"):
        window_of(days, now=NOW)


def test_nothing_to_divide_by_gives_no_value_and_the_reason() -> None:
    """None is not 0: nobody knows whether memories serve."""
    for metric in make_metrics(counts(), WINDOW).metrics:
        assert metric.value is None
        assert metric.reason
        assert "proxy" in metric.label


def test_rates_come_with_what_they_rest_on() -> None:
    """A rate of 0 is one: something was there, and none of it served."""
    found = {m.name: m for m in make_metrics(counts(surfaced=4, used=1, judged=2, recurring=3), WINDOW).metrics}
    assert (found["hit_rate"].value, found["hit_rate"].numerator, found["hit_rate"].denominator) == (0.25, 1, 4)
    assert (found["context_precision"].value, found["context_precision"].reason) == (0.0, "")
    assert found["recurring_facts"].value == 0.75


@pytest.mark.parametrize(
    ("verdicts", "headline"), [(ENOUGH_VERDICTS - 1, "recurring_facts"), (ENOUGH_VERDICTS, "context_precision")]
)
def test_weaker_figure_leads_until_there_are_25_verdicts(verdicts: int, headline: str) -> None:
    """Of a few verdicts a rate says little."""
    assert make_metrics(counts(verdicts=verdicts), WINDOW).headline == headline


def test_series_have_every_day_oldest_first() -> None:
    """Days on which nothing happened are 0, and no series is missing."""
    series = {SeriesName.USED: {date(2026, 2, 28): 2, date(2026, 1, 1): 9}}
    made = make_metrics(MetricCounts(0, 0, 0, 0, 0, 0, 0, 0, series=series), WINDOW).series
    assert made[SeriesName.USED] == (0, 2, 0)
    assert set(made) == set(SeriesName)
    assert all(len(values) == 3 for values in made.values())


def test_coverage_without_recalls_is_none() -> None:
    """A client without transcripts is not one that was read in full, nor one that was not read."""
    assert ClientCounts("cursor").coverage is None
    assert ClientCounts("codex", recalls=4, known=3).coverage == 0.75
