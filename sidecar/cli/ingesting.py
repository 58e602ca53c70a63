"""The command `ingest`: reads transcripts that are there already, in the foreground, with progress."""

import asyncio
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sidecar.api.plain import JsonValue
from sidecar.cli import coverage_view, rendering
from sidecar.cli.invocation import CLIENT, HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output
from sidecar.errors import InvalidInputError

if TYPE_CHECKING:
    from client_plugins.kit.backfill import BackfillReport

_AGO: Final = re.compile(r"(\d{1,5})([dwmy])")
_DAYS: Final = {"d": 1, "w": 7, "m": 30, "y": 365}
_MIB: Final = 1 << 20


def ingest(
    context: typer.Context,
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Only these transcripts, or those in these folders.", metavar="[PATH]…", show_default=False
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option("--client", metavar="NAME", help="Only of this client; may be repeated.", show_default="all"),
    ] = None,
    since: Annotated[
        str,
        typer.Option("--since", metavar="DATE|AGO", help="Only what was written since: 2026-11-30, 90d, 8w, 6m, 1y."),
    ] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read the transcripts that agents left behind, once; goes on where it was stopped, and counts nothing twice."""
    call = Invocation.of(context, home, is_json=as_json)
    oldest = since_time(since, now=datetime.now(UTC))
    with call.output.counting("Reading transcripts, MiB:") as count:
        report = asyncio.run(_read(call, client or [], paths or [], oldest, count))
    if call.output.is_json:
        call.output.document(_document(report))
    else:
        _show(call.output, report)


def since_time(text: str, *, now: datetime) -> datetime | None:
    """Return what `--since` means, UTC; None for an empty text.

    Raises:
        InvalidInputError: If it is neither a date nor a time ago.
    """
    if not text:
        return None
    ago = _AGO.fullmatch(text.strip().lower())
    try:
        if ago:
            return now - timedelta(days=int(ago[1]) * _DAYS[ago[2]])
        at = datetime.fromisoformat(text.strip())
        # A day without a zone is one of the user's own.
        return at.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInputError("--since", text, "a date such as 2026-11-30, or a time ago such as 90d") from error


async def _read(
    call: Invocation, clients: list[str], paths: list[Path], since: datetime | None, count: Callable[[int, int], None]
) -> "BackfillReport":
    from client_plugins.kit.backfill import Backfill  # noqa: PLC0415 - heavy, and `--help` need not wait for it
    from client_plugins.kit.plugin import select_plugins  # noqa: PLC0415
    from client_plugins.kit.sink import SidecarSink  # noqa: PLC0415
    from sidecar.api.v1.memory_pb2 import CallContext  # noqa: PLC0415
    from sidecar.client import AsyncSidecar  # noqa: PLC0415
    from sidecar.config import client_environment, load_settings  # noqa: PLC0415

    plugins = select_plugins(clients)
    environment = {**os.environ, **client_environment(load_settings(home=call.home))}
    oldest_mtime_ns = int(since.timestamp()) * 10**9 if since else 0
    async with await AsyncSidecar.connect(call.home, context=CallContext(client=CLIENT)) as sidecar:
        sink = SidecarSink(sidecar)
        backfill = Backfill(plugins, sink, environment=environment, oldest_mtime_ns=oldest_mtime_ns)
        try:
            await backfill.run(paths, progress=lambda done, total: count(done // _MIB, total // _MIB))
        finally:
            await sink.close()
    return backfill.report


def _show(output: Output, report: "BackfillReport") -> None:
    if not report.files and not report.left_out:
        output.note("No transcripts are there. `sidecar sessions` tells where they are looked for.")
        return
    output.line(
        f"{rendering.counted(report.files, 'transcript')}, of which {report.unchanged} held nothing new; "
        f"{rendering.size(report.bytes_read)} and {rendering.counted(report.lines, 'line')} read."
    )
    output.line(
        f"{rendering.counted(report.new_events, 'new event')}, {report.repeated_events} known already; "
        f"{rendering.counted(report.recalls, 'recall')} "
        f"showed {rendering.counted(report.shown, 'memory', 'memories')}; "
        f"of {report.unknown} it is not known what they showed."
    )
    if report.skipped:
        output.line(f"Lines from which nothing was taken: {coverage_view.reasons(report.skipped)}.")
    if report.unrecognised:
        output.line(
            f"Kinds of records that are not known: {coverage_view.reasons(report.unrecognised)}.", style="yellow"
        )
    if report.left_out:
        output.line(f"Files left out: {coverage_view.reasons(report.left_out)}.", style="yellow")


def _document(report: "BackfillReport") -> dict[str, JsonValue]:
    return {
        "files": report.files,
        "unchanged": report.unchanged,
        "left_out": dict(report.left_out),
        "bytes_read": report.bytes_read,
        "lines": report.lines,
        "new_events": report.new_events,
        "repeated_events": report.repeated_events,
        "recalls": report.recalls,
        "shown": report.shown,
        "unknown": report.unknown,
        "skipped": dict(report.skipped),
        "unrecognised": dict(report.unrecognised),
    }
