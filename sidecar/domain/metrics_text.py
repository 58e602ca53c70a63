"""Figures in the text format that Prometheus reads. Pure; what has no value is left out, never told as 0."""

from collections.abc import Iterator
from typing import Final

from sidecar.domain.metrics import Metrics

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX: Final = "memory_sidecar"


def metrics_text(metrics: Metrics) -> str:
    """Return the figures, one on each line, each with what it says.

    Source:
        The Prometheus text format 0.0.4.
    """
    return "\n".join(_lines(metrics)) + "\n"


def _lines(metrics: Metrics) -> Iterator[str]:
    days = f'days="{metrics.window.days}"'
    for metric in metrics.metrics:
        name = f"{_PREFIX}_{metric.name}"
        yield f"# HELP {name} {metric.label}"
        yield f"# TYPE {name} gauge"
        if metric.value is not None:
            yield f"{name}{{{days}}} {metric.value!r}"
        yield f"# TYPE {name}_numerator gauge"
        yield f"{name}_numerator{{{days}}} {metric.numerator}"
        yield f"# TYPE {name}_denominator gauge"
        yield f"{name}_denominator{{{days}}} {metric.denominator}"
    name = f"{_PREFIX}_events"
    yield f"# HELP {name} what happened in these days, by kind"
    yield f"# TYPE {name} gauge"
    for series, values in metrics.series.items():
        yield f'{name}{{kind="{series}",{days}}} {sum(values)}'
    name = f"{_PREFIX}_coverage"
    yield f"# HELP {name} share of the recalls in a client's transcripts of which it is known what they showed"
    yield f"# TYPE {name} gauge"
    for client in metrics.clients:
        if client.coverage is not None:
            yield f'{name}{{client="{_escaped(client.client)}",{days}}} {client.coverage!r}'


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
