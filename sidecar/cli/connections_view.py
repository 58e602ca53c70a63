"""Shows what connecting a client changed, and which clients are connected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from client_plugins.kit.client_setup import ClientSetup, FileEdit, McpServer, Scope, SetupContext
from client_plugins.kit.config_edit.journal import Connection
from client_plugins.kit.connecting import Change
from client_plugins.kit.connection_state import EntryState, FileState, inspect_files
from client_plugins.kit.mcp_probe import probe
from sidecar.api.plain import JsonValue
from sidecar.cli.output import Output

_TOLD: Final = {
    EntryState.ABSENT: "no",
    EntryState.CONNECTED: "yes",
    EntryState.DIFFERENT: "yes, but not as `sidecar connect` would write it now",
    EntryState.OCCUPIED: "no, another server has the name",
    EntryState.UNREADABLE: "unknown, a file cannot be read",
}
_WORKS: Final = "works"


@dataclass(frozen=True)
class Row:
    """One client in one scope, as it was found.

    Attributes:
        client: Its name.
        title: Its name for a person.
        scope: For whom.
        is_present: Whether the user seems to have it.
        files: How each of its files is.
        probe: What came of starting the server: `works`, a problem, or empty if none was started.
    """

    client: str
    title: str
    scope: str
    is_present: bool
    files: Sequence[FileState]
    probe: str

    @property
    def server(self) -> FileState:
        """The file that has the server in it."""
        return next(each for each in self.files if each.edit.find_server is not None)

    @property
    def is_connected(self) -> bool:
        """Whether the client would start our server."""
        return self.server.state in (EntryState.CONNECTED, EntryState.DIFFERENT)

    @property
    def is_broken(self) -> bool:
        """Whether the client is connected, but what it starts does not work."""
        return self.is_connected and self.probe not in ("", _WORKS)


def row_of(
    setup: ClientSetup, connection: Connection, edits: Sequence[FileEdit], context: SetupContext, *, is_probing: bool
) -> Row:
    """Return how one client is connected; starts its server if it is and `is_probing`."""
    files = inspect_files(edits)
    row = Row(setup.name, setup.title, connection.scope, setup.is_present(context), files, "")
    if not (is_probing and row.is_connected and row.server.server is not None):
        return row
    return Row(row.client, row.title, row.scope, row.is_present, files, _probed(row.server.server))


def show_connections(output: Output, rows: Sequence[Row]) -> None:
    """Show every client of the user, and of the project what is connected there."""
    if output.is_json:
        output.document({"clients": [_row_document(row) for row in rows]})
        return
    shown = [row for row in rows if row.scope == Scope.USER or row.server.state is not EntryState.ABSENT]
    output.table(
        ("client", "scope", "connected", "hooks", "server"),
        [(row.title, row.scope, _connected(row), _hooks(row), row.probe or "-") for row in shown],
    )
    for row in shown:
        for file in row.files:
            if file.problem:
                output.line(f"{row.title}: {file.problem}", style="yellow")
            elif file.state is EntryState.DIFFERENT:
                output.note(f"{file.edit.path}: `sidecar connect {row.client} --scope {row.scope}` writes it anew.")


def show_connected(
    output: Output, title: str, changes: Sequence[Change], notes: Sequence[str], *, is_dry_run: bool
) -> None:
    """Show the changes that connected a client, and what its user should know."""
    changed = [change for change in changes if change.is_needed]
    _show_diffs(output, changed)
    if not changed:
        output.line(f"{title}: already connected, nothing changed.")
        return
    what = ", ".join(f"{change.edit.what} in {change.edit.path}" for change in changed)
    output.line(f"{title}: {'would be connected' if is_dry_run else 'connected'}: {what}.", style="bold")
    for note in notes:
        output.note(f"Note: {note}")


def show_disconnected(output: Output, title: str, changes: Sequence[Change], *, is_dry_run: bool) -> None:
    """Show the changes that disconnected a client."""
    changed = [change for change in changes if change.is_needed]
    # Of a file that goes as a whole, its end is not worth a screen.
    _show_diffs(output, [change for change in changed if change.after is not None])
    if not changed:
        output.line(f"{title}: not connected, nothing changed.")
        return
    for change in changed:
        output.line(f"{change.edit.path}: {_outcome(change)}")
    output.line(f"{title}: {'would be disconnected' if is_dry_run else 'disconnected'}.", style="bold")


def change_document(
    connection: Connection, changes: Sequence[Change], notes: Sequence[str], *, is_dry_run: bool
) -> JsonValue:
    """Return what was done to the files of one client."""
    return {
        "client": connection.client,
        "scope": connection.scope,
        "changed": any(change.is_needed for change in changes),
        "dry_run": is_dry_run,
        "files": [
            {
                "path": str(change.edit.path),
                "what": change.edit.what,
                "changed": change.is_needed,
                "restored": change.is_restored and change.is_needed,
                "diff": change.diff(),
            }
            for change in changes
        ],
        "notes": list(notes),
    }


def _show_diffs(output: Output, changes: Sequence[Change]) -> None:
    for change in changes:
        output.raw(change.diff())


def _outcome(change: Change) -> str:
    if change.after is None:
        return "removed"
    return "as it was before" if change.is_restored else "our entries removed, yours kept"


def _connected(row: Row) -> str:
    told = _TOLD[row.server.state]
    return told if row.is_present or row.server.state is not EntryState.ABSENT else f"{told} (not found)"


def _hooks(row: Row) -> str:
    states = [each.state for each in row.files if each.edit.what == "the hooks"]
    return _TOLD[states[0]].split(",")[0] if states else "-"


def _probed(server: McpServer) -> str:
    return probe(server).problem or _WORKS


def _row_document(row: Row) -> JsonValue:
    return {
        "client": row.client,
        "scope": row.scope,
        "present": row.is_present,
        "connected": row.is_connected,
        "works": None if not row.probe else row.probe == _WORKS,
        "problem": row.probe if row.is_broken else "",
        "files": [
            {
                "path": str(file.edit.path),
                "what": file.edit.what,
                "state": file.state.value,
                "problem": file.problem,
            }
            for file in row.files
        ],
    }
