"""LSP's messages as this server takes them: no text of a document is kept, commands can be cancelled, and what is
malformed is answered instead of left open.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification

from client_plugins.lsp_bridge.command_names import REQUEST_PREFIX
from client_plugins.lsp_bridge.contract import STATUS_CHANGED

log = logging.getLogger(__name__)

_IGNORABLE: Final = "$/malformed"

RunCommand = Callable[[types.ExecuteCommandParams], Awaitable[Any]]
End = Callable[[int], None]
"""Ends the server with this exit code."""


@attrs.define
class OwnRequest:
    """A request of ours, its parameters as JSON has them."""

    id: Any
    method: str
    jsonrpc: str
    params: Any = None


class EditorProtocol(LanguageServerProtocol):
    """The protocol of one editor."""

    run_command: RunCommand
    end: End

    # There it is a cache of the same function.
    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """See the base class; requests of ours keep their parameters, which it would make into anonymous objects."""
        if method.startswith(REQUEST_PREFIX) and method != STATUS_CHANGED:
            return OwnRequest
        return super().get_message_type(method)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """See the base class; a malformed request is answered, where it would wait for its answer for ever."""
        try:
            return super().structure_message(data)
        except JsonRpcException:
            method = str(data.get("method", ""))[:100]
            log.warning("malformed message: %s", method)
            if "id" in data and "method" in data:
                refused = JsonRpcInvalidParams(f"the parameters of {method} are not as LSP says")
                self._send_response(data["id"], error=refused.to_response_error())
            return JsonRPCNotification(method=_IGNORABLE, jsonrpc="2.0", params=None)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        """Pass it on. The text that comes with it is not kept: it would be stale with the next key."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        """Pass it on; an editor that heeds our capabilities does not send it."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Generator[Any, Any, None]:
        """Pass it on."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        """Run a command as one task, so that cancelling the request ends it."""
        return await self.run_command(params)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        """End the server, with 0 only after `shutdown`, as LSP says."""
        self.end(0 if self._shutdown else 1)

    def unfinished(self) -> "list[asyncio.Task[Any]]":
        """Return the requests that are still being answered."""
        # Handlers that are coroutines have tasks here, and requests to the editor other futures.
        futures: list[Any] = list(self._request_futures.values())
        return [each for each in futures if isinstance(each, asyncio.Task) and not each.done()]

    def _pass_on(self, method: str, params: Any) -> Generator[Any, Any, None]:
        if (handler := self.fm.features.get(method)) is not None:
            yield handler, (params,), None
