"""The command `files`: what files the sessions of a project touched last. Paths and times only."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import activity_service_pb2 as service
from sidecar.cli import rendering
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption

_ACTION = service.FileAction.DESCRIPTOR


def files(
    context: typer.Context,
    *,
    project: Annotated[
        str, typer.Option("--project", "-p", metavar="NAME", help="Of this project.", show_default="this folder's")
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-l", min=1, max=1000, help="Most files to show.", show_default="setting recent_files"),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(
            "--days", "-d", min=1, max=365, help="Only within so many days.", show_default="setting recent_days"
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the files that agents touched last in a project."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ListRecentFilesRequest(project=project, limit=limit or 0, days=days or 0)
    with call.sidecar() as sidecar:
        answer = sidecar.list_recent_files(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    if not answer.files:
        call.output.note("No file was touched here lately. Agents report them with the tool `add_file_activity`.")
        return
    now = datetime.now(UTC)
    columns = ("last", "ago", "times", "type", "file")
    call.output.table(columns, [_row(file, now) for file in answer.files])


def _row(file: service.RecentFile, now: datetime) -> tuple[str, ...]:
    ago = rendering.age((now - file.last_time.ToDatetime(tzinfo=UTC)).total_seconds())
    return short_name(_ACTION, file.last_action), ago, str(file.count), file.file_type or "-", file.path
