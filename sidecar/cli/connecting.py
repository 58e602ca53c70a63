"""Commands that connect clients: connect, disconnect, connections. The work is done by `client_plugins`."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from client_plugins.kit.client_setup import (
    ClientSetup,
    FileEdit,
    Scope,
    SetupContext,
    installed_setups,
    select_setup,
)
from client_plugins.kit.config_edit.journal import Connection, Journal
from client_plugins.kit.connecting import Change, Connector
from sidecar.api.plain import JsonValue
from sidecar.cli import completing, connections_view
from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.next_steps import ClientFound
from sidecar.cli.own_program import own_server
from sidecar.client import DataFolder
from sidecar.errors import ClientNotFoundError

_ALL = "all"

ClientArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="`claude-code`, `codex`, `cursor`, or `all` that are installed.",
        metavar="CLIENT",
        show_default=False,
        autocompletion=completing.clients,
    ),
]
ScopeOption: TypeAlias = Annotated[
    Scope, typer.Option("--scope", help="`user`: all projects of yours; `project`: this one, for whoever works on it.")
]
DryRunOption: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Only show what would be changed.")]


@dataclass(frozen=True)
class _Place:
    """One client in one scope."""

    setup: ClientSetup
    context: SetupContext

    @property
    def connection(self) -> Connection:
        project = str(self.context.project) if self.context.scope is Scope.PROJECT else ""
        return Connection(self.setup.name, self.context.scope.value, project)

    @property
    def title(self) -> str:
        where = f"project {self.context.project}" if self.context.scope is Scope.PROJECT else "user"
        return f"{self.setup.title} ({where})"

    def edits(self) -> Sequence[FileEdit]:
        return self.setup.edits(self.context)


def connect(
    context: typer.Context,
    *,
    client: ClientArgument,
    scope: ScopeOption = Scope.USER,
    dry_run: DryRunOption = False,
    hooks: Annotated[
        bool, typer.Option("--hooks/--no-hooks", help="Whether the client also tells the sidecar what happens.")
    ] = True,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a client the shared memory: writes our MCP server and hooks into its files, shows how, and can undo it.

    What else is in those files stays as it is, comments included. Doing it again changes nothing.
    """
    call = Invocation.of(context, home, is_json=as_json)
    connector = _connector(call)
    told: list[JsonValue] = []
    places = list(_places(call, client, scope, has_hooks=hooks))
    for place in places:
        # All of them first: a file that cannot be changed is told before the first client is connected.
        connector.plan(place.edits())
    for place in places:
        edits = place.edits()
        changes = connector.plan(edits) if dry_run else connector.connect(place.connection, edits)
        notes = list(place.setup.notes(place.context))
        told.append(connections_view.change_document(place.connection, changes, notes, is_dry_run=dry_run))
        if not call.output.is_json:
            connections_view.show_connected(call.output, place.title, changes, notes, is_dry_run=dry_run)
    if call.output.is_json:
        call.output.document({"clients": told})


def disconnect(
    context: typer.Context,
    *,
    client: ClientArgument,
    scope: ScopeOption = Scope.USER,
    dry_run: DryRunOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take everything of ours out of a client's files again. Memories stay.

    A file that nobody changed since becomes, byte for byte, what it was; else only our entries go.
    """
    call = Invocation.of(context, home, is_json=as_json)
    connector = _connector(call)
    told: list[JsonValue] = []
    places = list(_places(call, client, scope, has_hooks=True))
    for place in places:
        connector.plan_disconnect(place.connection, place.edits())
    for place in places:
        edits = place.edits()
        plan = connector.plan_disconnect if dry_run else connector.disconnect
        changes: list[Change] = plan(place.connection, edits)
        told.append(connections_view.change_document(place.connection, changes, [], is_dry_run=dry_run))
        if not call.output.is_json:
            connections_view.show_disconnected(call.output, place.title, changes, is_dry_run=dry_run)
    if call.output.is_json:
        call.output.document({"clients": told})


def connections(
    context: typer.Context,
    *,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Start each configured server once, as its client would.")
    ] = True,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell which clients are connected, for the user and for this project, and whether what they start works."""
    call = Invocation.of(context, home, is_json=as_json)
    rows: list[connections_view.Row] = []
    with call.output.waiting("Looking …"):
        for scope in Scope:
            for setup in installed_setups().values():
                place = _Place(setup, _context(call, scope, has_hooks=True))
                rows.append(
                    connections_view.row_of(setup, place.connection, place.edits(), place.context, is_probing=probe)
                )
    connections_view.show_connections(call.output, rows)
    if any(row.is_broken for row in rows):
        raise typer.Exit(ExitCode.FAILED)


def clients_found(call: Invocation) -> tuple[ClientFound, ...]:
    """Return the clients that the user seems to have, each once, from their files alone."""
    found = []
    for setup in installed_setups().values():
        contexts = [_context(call, scope, has_hooks=True) for scope in Scope]
        if not any(setup.is_present(context) for context in contexts):
            continue
        rows = [
            connections_view.row_of(setup, _Place(setup, each).connection, setup.edits(each), each, is_probing=False)
            for each in contexts
        ]
        found.append(ClientFound(setup.name, setup.title, any(row.is_connected for row in rows)))
    return tuple(found)


def _places(call: Invocation, client: str, scope: Scope, *, has_hooks: bool) -> Iterator[_Place]:
    context = _context(call, scope, has_hooks=has_hooks)
    if client != _ALL:
        yield _Place(select_setup(client), context)
        return
    present = [setup for setup in installed_setups().values() if setup.is_present(context)]
    if not present:
        raise ClientNotFoundError
    yield from (_Place(setup, context) for setup in present)


def _context(call: Invocation, scope: Scope, *, has_hooks: bool) -> SetupContext:
    return SetupContext(
        scope=scope,
        user_home=Path.home(),
        project=_project_folder(),
        environment=os.environ,
        server=own_server(call.home, os.environ),
        data_home=DataFolder.at(call.home).home,
        has_hooks=has_hooks,
    )


def _project_folder() -> Path:
    """Return the top of the work tree that holds the working directory, else that directory."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _connector(call: Invocation) -> Connector:
    return Connector(Journal(DataFolder.at(call.home)))
