"""The language server: what it offers, and which part answers what."""

import logging
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcServerNotInitialized
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from client_plugins.lsp_bridge.command_names import COMMAND_PREFIX, COMMANDS, REQUEST_PREFIX
from client_plugins.lsp_bridge.contract import InitializationOptions
from client_plugins.lsp_bridge.features.code_actions import code_actions
from client_plugins.lsp_bridge.features.code_lens import code_lenses
from client_plugins.lsp_bridge.features.workspace_symbols import workspace_symbols
from client_plugins.lsp_bridge.front import Front
from client_plugins.lsp_bridge.operations import OPERATION_NAMES
from client_plugins.lsp_bridge.protocol import EditorProtocol
from client_plugins.lsp_bridge.requests import empty_if_failing
from client_plugins.lsp_bridge.structuring import ParametersError, structured

log = logging.getLogger(__name__)

SERVER_NAME: Final = "memory-sidecar"
_DISTRIBUTION: Final = "memory-sidecar"


class MemoryServer(LanguageServer):
    """Serves one editor.

    Attributes:
        ended: Set when no further message is to be read.
        exit_code: What the process ends with.
    """

    protocol: EditorProtocol

    def __init__(self) -> None:
        super().__init__(
            SERVER_NAME,
            version(_DISTRIBUTION),
            text_document_sync_kind=types.TextDocumentSyncKind.None_,
            protocol_cls=EditorProtocol,
        )
        self.ended = threading.Event()
        self.exit_code = 0
        self._front: Front | None = None
        self.protocol.end = self._end
        self.protocol.run_command = self._run_command
        self._offer_documents()
        self._offer_requests()

    def front(self) -> Front:
        """Return what answers.

        Raises:
            JsonRpcServerNotInitialized: The editor has not said hello.
        """
        if self._front is None:
            raise JsonRpcServerNotInitialized("`initialize` comes first")
        return self._front

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._front is not None:
            self._front.views.clear()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log a failure of the protocol; the base class would show its text in a window."""
        log.info("%s: %s", getattr(source, "__name__", "error"), type(error).__name__)

    def folders(self) -> Sequence[str]:
        """Return the paths of the folders that are open."""
        opened = [to_fs_path(folder.uri) for folder in self.workspace.folders.values()]
        return [path for path in (*opened, self.workspace.root_path) if path and Path(path).is_absolute()]

    def _begin(self, params: types.InitializeParams) -> None:
        """Build what answers, by what the editor says of itself, before the capabilities are told."""
        try:
            options, problem = structured(params.initialization_options, InitializationOptions), ""
        except ParametersError as error:
            options, problem = InitializationOptions(), f"initializationOptions are passed over: {error}"
        front = self._front = Front(
            self, options, editor=params.client_info.name if params.client_info else "", problem=problem
        )
        if options.hover:
            self._offer_hover(front)
        if options.code_lens:

            @self.feature(types.TEXT_DOCUMENT_CODE_LENS)
            async def _(params: types.CodeLensParams) -> list[types.CodeLens]:
                return await empty_if_failing("codeLens", code_lenses(front.desk, params), [])

    def _offer_hover(self, front: Front) -> None:
        @self.feature(types.TEXT_DOCUMENT_HOVER)
        async def _(params: types.HoverParams) -> types.Hover | None:
            codec = self.workspace.position_codec
            return await empty_if_failing("hover", front.hover.answer(params, codec), None)

    def _offer_documents(self) -> None:
        @self.feature(types.INITIALIZE)
        def _(params: types.InitializeParams) -> None:
            self._begin(params)

        @self.feature(types.INITIALIZED)
        def _(_params: types.InitializedParams) -> None:
            self.front().greet()

        @self.feature(types.TEXT_DOCUMENT_DID_OPEN)
        def _(params: types.DidOpenTextDocumentParams) -> None:
            document = params.text_document
            self.front().opened(document.uri, document.language_id)

        @self.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
        def _(params: types.DidSaveTextDocumentParams) -> None:
            self.front().edited(params.text_document.uri)

        @self.feature(types.TEXT_DOCUMENT_DID_CHANGE)
        def _(params: types.DidChangeTextDocumentParams) -> None:
            self.front().edited(params.text_document.uri)

        @self.feature(types.TEXT_DOCUMENT_DID_CLOSE)
        def _(params: types.DidCloseTextDocumentParams) -> None:
            self.front().closed(params.text_document.uri)

        @self.feature(
            types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.Empty])
        )
        async def _(params: types.CodeActionParams) -> Sequence[types.CodeAction | types.Command]:
            codec, desk = self.workspace.position_codec, self.front().desk
            answer = code_actions(desk, params, codec, takes_literals=_takes_literals(self.client_capabilities))
            return await empty_if_failing("codeAction", answer, [])

        @self.feature(types.WORKSPACE_SYMBOL)
        async def _(params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
            front = self.front()
            return await empty_if_failing("workspace/symbol", workspace_symbols(front.desk, front.views, params), [])

    def _offer_requests(self) -> None:
        for name in OPERATION_NAMES:
            self.feature(f"{REQUEST_PREFIX}{name}")(self._answering(name))
        for name in COMMANDS:
            # Only named here, to be told in the capabilities; the protocol hands all of them to `_run_command`.
            self.command(f"{COMMAND_PREFIX}{name}")(self._answering(name))

    def _answering(self, name: str) -> Callable[[Any], Any]:
        async def answer(params: Any) -> object:
            return await self.front().requests.request(name, params)

        return answer

    async def _run_command(self, params: types.ExecuteCommandParams) -> object:
        return await self.front().requests.command(params)

    def _end(self, exit_code: int) -> None:
        self.exit_code = exit_code
        self.ended.set()


def _takes_literals(capabilities: types.ClientCapabilities) -> bool:
    document = capabilities.text_document
    action = document.code_action if document is not None else None
    return action is not None and action.code_action_literal_support is not None
