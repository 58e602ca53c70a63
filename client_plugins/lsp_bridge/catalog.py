"""What a project's memories say and which files they name, kept for a while so that a hover need not ask for it.

Holds the newest memories only, within bounds; whatever is shown is asked for again.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from client_plugins.lsp_bridge.file_mentions import is_named, last_part, mentions_of
from client_plugins.lsp_bridge.places import Place
from client_plugins.lsp_bridge.presenting import attached
from client_plugins.lsp_bridge.symbols_in_text import is_about

if TYPE_CHECKING:
    from sidecar.api.v1.memory_pb2 import CallContext, Memory
    from sidecar.client import AsyncSidecar

MAX_MEMORIES: Final = 5_000
MAX_CHARACTERS: Final = 16 * 1024 * 1024

_PAGE: Final = 1_000
_NEWEST: Final = 20
_LOOK_AGAIN_S: Final = 5.0
_LOAD_AGAIN_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory: its id, what it says, and the files it names."""

    id: str
    content: str
    mentions: tuple[str, ...]


class Catalog:
    """The memories that a project may read: its own and the global ones. Belongs to one event loop."""

    def __init__(self, context: "CallContext", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._clock = clock
        self._entries: dict[str, Entry] = {}
        self._by_name: dict[str, list[Entry]] = {}
        self._characters = 0
        self._loaded_at: float | None = None
        self._looked_at = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    def invalidate(self) -> None:
        """Load anew at the next need: something was stored or forgotten from here."""
        self._loaded_at = None

    async def refresh(self, sidecar: "AsyncSidecar", *, at_once: bool = False) -> None:
        """See to it that what is held is not old. Goes on if the caller is cancelled, so that the next one has it.

        Args:
            at_once: Look for new memories even if that was done a moment ago.
        """
        if self._refreshing is None or self._refreshing.done():
            now = self._clock()
            if self._loaded_at is None or now - self._loaded_at > _LOAD_AGAIN_S:
                self._refreshing = asyncio.create_task(self._load(sidecar))
            elif at_once or now - self._looked_at > _LOOK_AGAIN_S:
                self._refreshing = asyncio.create_task(self._add_newest(sidecar))
            else:
                return
        await asyncio.shield(self._refreshing)

    def naming(self, place: Place) -> list[str]:
        """Return the ids of memories that name this file, the newest first."""
        candidates = self._by_name.get(last_part(place.absolute), ())
        found = dict.fromkeys(
            entry.id
            for entry in candidates
            if any(is_named(each, relative=place.relative, absolute=place.absolute) for each in entry.mentions)
        )
        return sorted(found, reverse=True)

    def mentioning(self, symbol: str) -> list[str]:
        """Return the ids of memories that are about this identifier, the newest first."""
        return sorted((entry.id for entry in self._entries.values() if is_about(entry.content, symbol)), reverse=True)

    async def _load(self, sidecar: "AsyncSidecar") -> None:
        started_at = self._clock()
        entries: dict[str, Entry] = {}
        characters, token = 0, ""
        while len(entries) < MAX_MEMORIES and characters < MAX_CHARACTERS:
            memories, token = await self._page(sidecar, _PAGE, token)
            entries.update((entry.id, entry) for entry in map(_entry, memories))
            characters += sum(len(memory.content) for memory in memories)
            if not token:
                break
        self._entries, self._by_name, self._characters = {}, {}, 0
        for entry in entries.values():
            self._add(entry)
        self._loaded_at = self._looked_at = started_at

    async def _add_newest(self, sidecar: "AsyncSidecar") -> None:
        looked_at = self._clock()
        memories, _ = await self._page(sidecar, _NEWEST, "")
        fresh = [memory for memory in memories if memory.id not in self._entries]
        if len(fresh) == _NEWEST:
            await self._load(sidecar)
            return
        for memory in fresh:
            self._add(_entry(memory))
        self._looked_at = looked_at

    async def _page(self, sidecar: "AsyncSidecar", size: int, token: str) -> "tuple[list[Memory], str]":
        from sidecar.api.v1.memory_service_pb2 import ListMemoriesRequest  # noqa: PLC0415 - protobuf is for calls only

        request = ListMemoriesRequest(page_size=size, page_token=token, context=self._context)
        answer = await sidecar.list_memories(request)
        return list(answer.memories), answer.next_page_token

    def _add(self, entry: Entry) -> None:
        if self._characters + len(entry.content) > MAX_CHARACTERS or len(self._entries) >= 2 * MAX_MEMORIES:
            return
        self._characters += len(entry.content)
        self._entries[entry.id] = entry
        for name in {last_part(mention) for mention in entry.mentions}:
            self._by_name.setdefault(name, []).append(entry)


class Catalogs:
    """One catalog a project, of those that were looked at lately."""

    _MOST: Final = 4

    def __init__(self) -> None:
        self._known: dict[str, Catalog] = {}

    def of(self, project: str, context: "CallContext") -> Catalog:
        """Return the catalog of a project; empty for none.

        Args:
            context: Who asks; its project is this one.
        """
        catalog = self._known.pop(project, None) or Catalog(context)
        self._known[project] = catalog
        while len(self._known) > self._MOST:
            del self._known[next(iter(self._known))]
        return catalog

    def invalidate(self) -> None:
        """See `Catalog.invalidate`."""
        for catalog in self._all():
            catalog.invalidate()

    def _all(self) -> Iterator[Catalog]:
        yield from self._known.values()


def _entry(memory: "Memory") -> Entry:
    return Entry(memory.id, memory.content, mentions_of(memory.content, attached(memory)))
