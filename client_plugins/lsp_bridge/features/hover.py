"""Hover: memories about the identifier under the cursor, and about the file."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lsprotocol.types import Hover, HoverParams, MarkupContent, MarkupKind
from pygls.workspace import PositionCodec

from client_plugins.lsp_bridge import markdown
from client_plugins.lsp_bridge.contract import Memory
from client_plugins.lsp_bridge.desk import Desk
from client_plugins.lsp_bridge.documents import symbol_at
from client_plugins.lsp_bridge.places import Place
from client_plugins.lsp_bridge.presenting import counted, joined

if TYPE_CHECKING:
    from sidecar.client import AsyncSidecar

_ABOUT_SYMBOL: Final = 3
_ABOUT_FILE: Final = 3
_KEPT_S: Final = 5.0
_CACHE_ENTRIES: Final = 256


class HoverFeature:
    """Answers hovers, and keeps what it answered for a few seconds."""

    def __init__(self, desk: Desk, *, is_markdown: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._desk = desk
        self._is_markdown = is_markdown
        self._clock = clock
        self._answers: dict[tuple[str, str], tuple[float, str]] = {}

    def invalidate(self) -> None:
        """Keep nothing of before."""
        self._answers.clear()

    async def answer(self, params: HoverParams, codec: PositionCodec) -> Hover | None:
        """Return what is known about the place under the cursor; None for nothing."""
        place = self._desk.places.place(params.text_document.uri)
        if place is None:
            return None
        symbol = await asyncio.to_thread(symbol_at, place.path, params.position, codec)
        key = (place.path, symbol)
        known = self._answers.get(key)
        if known is None or known[0] <= self._clock():
            text = await self._desk.connection.look(lambda sidecar: self._text(sidecar, place, symbol))
            if text is None:
                return None
            if len(self._answers) >= _CACHE_ENTRIES:
                self._answers.clear()
            known = self._answers[key] = (self._clock() + _KEPT_S, text)
        kind = MarkupKind.Markdown if self._is_markdown else MarkupKind.PlainText
        return Hover(contents=MarkupContent(kind=kind, value=known[1])) if known[1] else None

    async def _text(self, sidecar: "AsyncSidecar", place: Place, symbol: str) -> str:
        about = self._desk.about
        of_file = await about.file(sidecar, place, with_related=False)
        of_symbol = await about.symbol(sidecar, place, symbol) if symbol else None
        first = [*of_symbol.named, *of_symbol.related] if of_symbol else []
        second = [each for each in of_file.named if each not in first]
        relevance = of_symbol.related if of_symbol else {}
        on_symbol = await about.describe(sidecar, first[:_ABOUT_SYMBOL], relevance=relevance)
        on_file = await about.describe(sidecar, second[:_ABOUT_FILE])
        return self._shown(
            symbol, on_symbol, on_file, left_out=len(first) + len(second) - len(on_symbol) - len(on_file)
        )

    def _shown(self, symbol: str, on_symbol: list[Memory], on_file: list[Memory], *, left_out: int) -> str:
        if not on_symbol and not on_file:
            return ""
        name = f"`{symbol}`" if self._is_markdown else symbol
        about = joined(
            (
                counted(len(on_symbol), f"memory about {name}", f"memories about {name}") if on_symbol else "",
                counted(len(on_file), "memory about this file", "memories about this file") if on_file else "",
            )
        )
        return markdown.hover(about, [*on_symbol, *on_file], is_markdown=self._is_markdown, left_out=left_out)
