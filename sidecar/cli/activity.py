"""The commands on files that sessions touch: `files` lists them, `activity add` notes one. Paths and times only."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import activity_service_pb2 as service
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.cli import completing, rendering, typed_text
from sidecar.cli.invocation import CLIENT, HomeOption, Invocation, JsonOption, project_here
from sidecar.domain.file_activity import FileAction

_ACTION = service.FileAction.DESCRIPTOR


def files(
    context: typer.Context,
    *,
    project: Annotated[
        str,
        typer.Option(
            "--project",
            "-p",
            metavar="NAME",
            help="Of this project.",
            show_default="this folder's",
            autocompletion=completing.projects,
        ),
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


def add(
    context: typer.Context,
    *,
    path: Annotated[str, typer.Argument(help="The file; it need not be there, and is not opened.", metavar="PATH")],
    action: Annotated[FileAction, typer.Argument(help="What was done with it.", metavar="ACTION")],
    root: Annotated[
        Path | None,
        typer.Option(
            "--root", metavar="PATH", help="A path below it is kept relative to it.", show_default="this folder"
        ),
    ] = None,
    session: Annotated[
        str, typer.Option("--session", metavar="ID", help="Session that did it.", autocompletion=completing.sessions)
    ] = "",
    client: Annotated[str, typer.Option("--client", metavar="NAME", help="The session's client.")] = CLIENT,
    metadata: Annotated[
        str, typer.Option("--metadata", metavar="JSON", help="Whatever belongs to it, at most 4 KiB.")
    ] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Note that a file was touched, as a hook or a script of yours saw it.

    ACTION is `read`, `write`, `edit`, `multiedit` or `delete`.
    """
    call = Invocation.of(context, home, is_json=as_json)
    request = service.AddFileActivityRequest(
        path=path,
        action=service.FileAction.Value(f"FILE_ACTION_{action.name}"),
        project_root=str((root or Path()).absolute()),
        context=CallContext(client=client, session=session, project=project_here()),
    )
    if metadata:
        request.metadata.update(typed_text.json_object(metadata, what="--metadata"))
    with call.sidecar() as sidecar:
        answer = sidecar.add_file_activity(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    call.output.line(f"Noted: {action.value} {path}" + (f" ({answer.file_type})" if answer.file_type else ""))


def _row(file: service.RecentFile, now: datetime) -> tuple[str, ...]:
    ago = rendering.age((now - file.last_time.ToDatetime(tzinfo=UTC)).total_seconds())
    return short_name(_ACTION, file.last_action), ago, str(file.count), file.file_type or "-", file.path
