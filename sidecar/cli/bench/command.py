"""`sidecar bench`: measures and prints."""

import json
import sys
from dataclasses import asdict
from typing import Annotated, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from sidecar.cli.bench.figures import Figure, Report
from sidecar.cli.invocation import Invocation, JsonOption


def bench(
    context: typer.Context,
    sizes: Annotated[
        str, typer.Option(help="Stores to measure recall at, in memories, separated by commas.")
    ] = "1000,10000,100000",
    as_json: JsonOption = False,  # noqa: FBT002 - typer's way
) -> None:
    """Measure speed as ratios to what this machine needs anyway: one embedding, one empty call, one synced commit.

    Runs in a data folder of its own, for about two minutes; your memories are not touched.
    """
    # The model and the index are imported for this command alone.
    from sidecar.cli.bench.run import run_bench, step_count  # noqa: PLC0415

    try:
        wanted = [int(size) for size in sizes.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{sizes!r}; expected whole numbers separated by commas") from None
    if not all(1 <= size <= 1_000_000 for size in wanted):
        raise typer.BadParameter(f"{sizes!r}; expected sizes from 1 to 1000000")
    with ProgressBar(step_count(wanted)) as progress:
        report = run_bench(wanted, progress)
    if Invocation.of(context, None, is_json=as_json).output.is_json:
        json.dump(_document(report), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        _print(report)


class ProgressBar:
    """Shows on stderr which step a run is at, and how far."""

    def __init__(self, steps: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("starting", total=steps)
        self._begun = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def step(self, what: str) -> None:
        """See `sidecar.cli.bench.run.Progress.step`."""
        self._progress.update(self._task, description=what, completed=self._begun)
        self._begun += 1

    def within(self, share: float) -> None:
        """See `sidecar.cli.bench.run.Progress.within`."""
        self._progress.update(self._task, completed=self._begun - 1 + share)


def _document(report: Report) -> dict[str, object]:
    figures = [{**asdict(figure), "ratio": figure.ratio} for figure in report.figures]
    return {"machine": report.machine, "figures": figures, "amounts": [asdict(amount) for amount in report.amounts]}


def _print(report: Report) -> None:
    console = Console()
    console.print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    table = Table(title="Durations, ms", title_justify="left")
    table.add_column("what")
    for name in ("p50", "p95", "p99", "p50 / floor", "budget"):
        table.add_column(name, justify="right")
    for figure in report.figures:
        durations = figure.durations
        table.add_row(
            figure.name,
            *(f"{value:.2f}" for value in (durations.p50, durations.p95, durations.p99)),
            _ratio(figure),
            f"{figure.budget:g}" if figure.budget else "",
        )
    console.print(table)
    amounts = Table(title="Amounts", title_justify="left")
    amounts.add_column("what")
    amounts.add_column("value", justify="right")
    for amount in report.amounts:
        amounts.add_row(amount.name, f"{amount.value:,.0f} {amount.unit}")
    console.print(amounts)


def _ratio(figure: Figure) -> str:
    return f"{figure.ratio:.2f} x {figure.floor_name}" if figure.ratio is not None else ""
