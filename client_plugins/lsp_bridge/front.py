"""One editor's front: the parts that answer it, and what happens when the sidecar comes, goes or has news."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from client_plugins.lsp_bridge.activity import Action, FileActivity
from client_plugins.lsp_bridge.connection import Connection
from client_plugins.lsp_bridge.contract import AWAY, RUNNING, STATUS_CHANGED, InitializationOptions
from client_plugins.lsp_bridge.desk import Desk
from client_plugins.lsp_bridge.failures import problem_and_remedy
from client_plugins.lsp_bridge.features.hover import HoverFeature
from client_plugins.lsp_bridge.operations import Operations
from client_plugins.lsp_bridge.places import Places
from client_plugins.lsp_bridge.requests import Requests, empty_if_failing
from client_plugins.lsp_bridge.showing import Showing
from client_plugins.lsp_bridge.structuring import unstructured
from client_plugins.lsp_bridge.views import Views
from sidecar.errors import InvalidNamespaceError, SidecarNotRunningError

if TYPE_CHECKING:
    from client_plugins.lsp_bridge.server import MemoryServer


class Front:
    """Everything that one editor talks to. Belongs to one event loop."""

    def __init__(self, server: "MemoryServer", options: InitializationOptions, *, editor: str, problem: str) -> None:
        """Put the parts together; nothing is started.

        Args:
            editor: Name of the editor; empty if it gives none.
            problem: What is wrong with its options; empty for nothing.
        """
        self._server = server
        self._problem = problem
        self._is_greeted = False
        self._has_told = False
        self._under_way: set[asyncio.Task[None]] = set()
        connection = Connection(self._sidecar_changed)
        connection.use_home(options.home)
        self.desk = Desk(connection, self._places(options.namespace), options, editor=editor)
        self.views = Views(self._home)
        self.hover = HoverFeature(self.desk, is_markdown=_reads_markdown(server.protocol.client_capabilities))
        self.showing = Showing(server, self.views)
        self.requests = Requests(server, Operations(self.desk), self.showing, changed=self._memories_changed)
        self._activity = FileActivity(self.desk, self.views)
        self._languages: dict[str, str] = {}

    def greet(self) -> None:
        """Note that the editor may be told things from now on."""
        self._is_greeted = True
        if self._problem:
            self.showing.message(self._problem, types.MessageType.Warning)

    def opened(self, uri: str, language: str) -> None:
        """Note that a document was opened: the first need of a sidecar."""
        self.desk.connection.need()
        self._languages[uri] = language
        if self.desk.connection.state == RUNNING:
            self._prepare(self.desk.places.project(uri))
        if self.desk.options.file_activity:
            self._activity.note(uri, Action.READ, language=language)

    def edited(self, uri: str) -> None:
        """Note that a document was changed or saved."""
        if self.desk.options.file_activity:
            self._activity.note(uri, Action.EDIT, language=self._languages.get(uri, ""))

    def closed(self, uri: str) -> None:
        """Note that a document was closed."""
        self._languages.pop(uri, None)

    def _places(self, namespace: str | None) -> Places:
        try:
            return Places(self._server.folders, namespace=namespace or None)
        except InvalidNamespaceError as error:
            self._problem = f"initializationOptions: {error.message}"
            return Places(self._server.folders)

    def _home(self) -> Path:
        from sidecar.client import resolve_home  # noqa: PLC0415 - gRPC is for calls only

        return resolve_home(self.desk.options.home)

    def _sidecar_changed(self) -> None:
        """Tell the editor how the sidecar is; that it is away, in one message and never again."""
        if not self._is_greeted:
            return
        connection = self.desk.connection
        self._server.protocol.notify(STATUS_CHANGED, unstructured(self.desk.status()))
        if connection.state == RUNNING:
            self._activity.send()
            self._refresh_lenses()
            self._prepare(self.desk.places.project(None))
        problem = connection.problem
        # One that merely ended is looked for again at once, and nobody need know.
        is_news = connection.state == AWAY and problem is not None and not isinstance(problem, SidecarNotRunningError)
        if problem is not None and is_news and not self._has_told:
            self._has_told = True
            told = ". ".join(filter(None, problem_and_remedy(problem)))
            self.showing.message(f"Memories are away: {told}", types.MessageType.Warning)

    def _prepare(self, project: str) -> None:
        desk = self.desk
        # Nobody waits for it, so that it may take as long as it takes.
        prepared = desk.connection.call(lambda sidecar: desk.about.prepare(sidecar, project))
        self._begin(empty_if_failing("preparing", prepared, None))

    def _memories_changed(self) -> None:
        """Forget what was answered before, since something was stored or changed from here."""
        self.desk.about.invalidate()
        self.hover.invalidate()
        self._refresh_lenses()
        self._begin(empty_if_failing("status", self.desk.connection.refresh(), None))

    def _refresh_lenses(self) -> None:
        workspace = self._server.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self._server.workspace_code_lens_refresh(None)

    def _begin(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        task = asyncio.create_task(run())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


def _reads_markdown(capabilities: types.ClientCapabilities) -> bool:
    document = capabilities.text_document
    formats = document.hover.content_format if document is not None and document.hover is not None else None
    return types.MarkupKind.Markdown in (formats or ())
