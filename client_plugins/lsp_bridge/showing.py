"""Shows what a command came to, where the command was called from a lens or an action and nobody else would show it."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from lsprotocol.types import MessageType, ShowDocumentParams, ShowMessageParams
from pygls.exceptions import JsonRpcException

from client_plugins.lsp_bridge import contract, markdown
from client_plugins.lsp_bridge.presenting import counted
from client_plugins.lsp_bridge.views import Views
from sidecar.domain.display import one_line, visible
from sidecar.errors import SidecarError

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

log = logging.getLogger(__name__)

_OPEN_WAIT_S: Final = 10.0
_MOST_IN_MESSAGE: Final = 5
_LINE_CHARACTERS: Final = 120
_MESSAGE_CHARACTERS: Final = 2_000


class Showing:
    """Tells a person of results: short ones in a message, long ones in a page."""

    def __init__(self, server: "LanguageServer", views: Views) -> None:
        self._server = server
        self._views = views
        self._under_way: set[asyncio.Task[None]] = set()

    def message(self, text: str, kind: MessageType = MessageType.Info) -> None:
        """Show a message."""
        shown = markdown.cut(visible(text), max_characters=_MESSAGE_CHARACTERS)
        self._server.window_show_message(ShowMessageParams(type=kind, message=shown))

    def begin(self, name: str, asked: Any, result: Any) -> None:
        """Show the result of a command, behind its answer: an editor that waits for that may open no page meanwhile."""
        task = asyncio.create_task(self.result(name, asked, result))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def result(self, name: str, asked: Any, result: Any) -> None:
        """Show the result of a command."""
        match result:
            case contract.Memories():
                title = f"Recall: {asked.query}" if name == "recall" else "Memories about this file"
                note = getattr(result, "degraded", None) or ""
                page = markdown.document(title, result.memories, note=note)
                await self._page(name, page, _listed(result.memories, note))
            case contract.Context():
                page = f"# Context: {markdown.escaped(asked.task)}\n\n{markdown.fenced(result.text)}\n"
                told = (
                    f"A context of {counted(len(result.memory_ids), 'memory', 'memories')}; this editor opens no pages."
                )
                await self._page(name, page, told if result.memory_ids else "Nothing is known about that yet.")
            case contract.Insights():
                lines = [f"{each.name}: {each.numerator} of {each.denominator}" for each in result.figures]
                await self._page(name, markdown.insights_document(result.figures, days=asked.days), "\n".join(lines))
            case _:
                self.message(sentence(result))

    async def _page(self, name: str, text: str, instead: str) -> None:
        """Open a page; where the editor cannot, show something shorter in a message instead."""
        window = self._server.client_capabilities.window
        if window is not None and window.show_document is not None and window.show_document.support:
            try:
                uri = self._views.write(name, text)
                wanted = ShowDocumentParams(uri=uri, external=False, take_focus=True)
                shown = await asyncio.wait_for(self._server.window_show_document_async(wanted), _OPEN_WAIT_S)
            except (TimeoutError, OSError, SidecarError, JsonRpcException) as error:
                log.warning("the page could not be opened: %s", type(error).__name__)
            else:
                if shown.success:
                    return
        self.message(instead)


def sentence(result: Any) -> str:
    """Return a short result in words."""
    match result:
        case contract.Remembered():
            what = f"Remembered in {result.namespace}" if result.created else f"Known already in {result.namespace}"
            secrets = f"; secrets were taken out: {', '.join(result.redacted)}" if result.redacted else ""
            return f"{what}: {result.id}{secrets}"
        case contract.Forgotten():
            ids = ", ".join(result.forgotten)
            return f"Forgotten: {ids}; `sidecar restore {ids}` brings it back"
        case contract.Challenged():
            return f"{result.id} is disputed until somebody decides."
        case contract.Validated():
            return f"Noted; the confidence of {result.id} is {result.confidence} now."
        case contract.Status():
            count = "" if result.memories is None else f", {counted(result.memories, 'memory', 'memories')}"
            why = f": {result.message}" if result.message else ""
            return f"The sidecar is {result.state}{why}{count}; memories go to {result.namespace}."
        case _:
            return "Done."


def _listed(memories: list[contract.Memory], note: str) -> str:
    lines = [one_line(memory.content, limit=_LINE_CHARACTERS) for memory in memories[:_MOST_IN_MESSAGE]]
    more = len(memories) - len(lines)
    lines += [f"and {more} more"] if more > 0 else []
    return "\n".join([*(lines or ["Nothing is known about that yet."]), *([note] if note else [])])
