"""The command `insights`: how useful memories were, in figures and small charts."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from sidecar.api.plain import plain
from sidecar.api.v1 import insights_service_pb2 as service
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output

_BLOCKS: Final = "·▁▂▃▄▅▆▇█"
# For terminals and files that take no more than ASCII.
_LETTERS: Final = ".:-=+*%#@"
_MOST_COLUMNS: Final = 40
_VOLUMES: Final = frozenset({"useful_recalls"})
_HEADLINE: Final = "the figure to go by"


def insights(
    context: typer.Context,
    *,
    days: Annotated[
        int | None,
        typer.Option(
            "--days", "-d", min=1, max=365, help="UTC days, today included.", show_default="setting metric_days"
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how useful your memories were: rates with what they rest on, and how much of each client could be read."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        answer = sidecar.export_metrics(service.ExportMetricsRequest(days=days or 0))
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show(call.output, answer)


def _show(output: Output, answer: service.ExportMetricsResponse) -> None:
    output.line(f"{answer.days} UTC days from {answer.first_day}", style="bold")
    rows = [(metric.name, told(metric), _counted(metric), _label(metric, answer.headline)) for metric in answer.metrics]
    output.table(("metric", "value", "of", "what it says"), rows)
    output.line()
    charts = [
        (series.name, str(sum(series.values)), chart(series.values, has_blocks=output.can_show_bars))
        for series in answer.series
    ]
    output.table(("by day", "total", "first day to today"), charts)
    output.line()
    if answer.clients:
        columns = ("client", "answered", "in transcripts", "known", "shown", "judged", "used")
        output.table(columns, [_client(client) for client in answer.clients])
    else:
        output.line("No client has recalled anything in these days.")
    output.note(answer.note)


def told(metric: service.Metric) -> str:
    """Return a figure as a person reads it: a share in percent, a volume as it is, `-` for none."""
    if not metric.HasField("value"):
        return "-"
    return f"{metric.value:.0f}" if metric.name in _VOLUMES else f"{metric.value:.1%}"


def chart(values: Sequence[int], *, has_blocks: bool = True) -> str:
    """Return a bar for each day or, of many days, for each few of them; the highest is a full one."""
    per_bar = max(-(-len(values) // _MOST_COLUMNS), 1)
    sums = [sum(values[start : start + per_bar]) for start in range(0, len(values), per_bar)]
    highest = max(sums, default=0)
    if not highest:
        return "none"
    # Rounded up: a day with something never looks like one without.
    bars = _BLOCKS if has_blocks else _LETTERS
    return "".join(bars[-(-value * (len(bars) - 1) // highest)] for value in sums)


def _counted(metric: service.Metric) -> str:
    return f"{metric.numerator} of {metric.denominator}"


def _label(metric: service.Metric, headline: str) -> str:
    label = f"{metric.label} ({metric.reason})" if metric.reason else metric.label
    return f"{_HEADLINE}: {label}" if metric.name == headline else label


def _client(client: service.ClientMetrics) -> tuple[str, ...]:
    known = f"{client.known} ({client.coverage:.0%})" if client.HasField("coverage") else "-"
    return (
        client.client or "-",
        str(client.answered),
        str(client.recalls),
        known,
        str(client.shown),
        str(client.judged),
        str(client.used),
    )
