"""Decides which memories are about a file or an identifier of it, and asks for what is known of them.

Sure are those that name it: in their text or their metadata. Those that recall finds by the words of a path or an
identifier are added where the relevance is high, because two words that fit are seldom chance. One word is: it is not
looked for.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from client_plugins.lsp_bridge.catalog import Catalogs
from client_plugins.lsp_bridge.contract import Memory
from client_plugins.lsp_bridge.places import Place
from client_plugins.lsp_bridge.presenting import present
from client_plugins.lsp_bridge.symbols_in_text import is_about, is_telling, words_of
from sidecar.errors import NotFoundError

if TYPE_CHECKING:
    from sidecar.api.v1 import memory_pb2 as pb
    from sidecar.api.v1.insights_service_pb2 import ExplainMemoryResponse
    from sidecar.api.v1.memory_service_pb2 import RecalledMemory
    from sidecar.client import AsyncSidecar

RELATED_RELEVANCE: Final = 0.95
"""From this on a memory that does not name the file or identifier is taken to be about it. Of what recall
finds for 244 paths of the golden set at 0.5 or more without its naming them, one in six is above."""

_MOST_RELATED: Final = 3
_PATH_PARTS: Final = 3
_RECALLED: Final = 20
_FEWEST_WORDS: Final = 2
_AT_ONCE: Final = 8
_KEPT_S: Final = 10.0
_CACHE_ENTRIES: Final = 512
_NO_WORD: Final = re.compile(r"[\W_]+")

Clock = Callable[[], float]
ContextOf = Callable[[str], "pb.CallContext"]
"""Returns who asks, by the project."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """Memories about one thing: the ids of those that name it, and more that recall found, with their relevance."""

    named: tuple[str, ...]
    related: Mapping[str, float]


class AboutCode:
    """Finds memories about files and identifiers. Belongs to one event loop."""

    def __init__(self, context_of: ContextOf, *, clock: Clock = time.monotonic) -> None:
        self._context_of = context_of
        self._catalogs = Catalogs()
        self._clock = clock
        self._aspects: dict[tuple[str, str], tuple[float, Aspect]] = {}
        self._known: dict[str, tuple[float, pb.Memory, ExplainMemoryResponse]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def invalidate(self) -> None:
        """Keep nothing of before: something was stored or changed from here."""
        self._aspects.clear()
        self._known.clear()
        self._catalogs.invalidate()

    async def prepare(self, sidecar: "AsyncSidecar", project: str) -> None:
        """Read what the project's memories name, so that the first hover need not; goes on if it is cancelled."""
        await self._catalogs.of(project, self._context_of(project)).refresh(sidecar)

    async def file(self, sidecar: "AsyncSidecar", place: Place, *, with_related: bool) -> Aspect:
        """Return the memories about a file.

        Args:
            with_related: Also those that only have to do with it, and all as of this moment: a person asks.
        """
        catalog = self._catalogs.of(place.project, self._context_of(place.project))
        await catalog.refresh(sidecar, at_once=with_related)
        named = catalog.naming(place)
        if not with_related:
            return Aspect(tuple(named), {})
        return await self._with_related(sidecar, place.project, named, _words_of_path(place))

    async def symbol(self, sidecar: "AsyncSidecar", place: Place, symbol: str) -> Aspect:
        """Return the memories about an identifier in a file."""
        catalog = self._catalogs.of(place.project, self._context_of(place.project))
        await catalog.refresh(sidecar)
        named = catalog.mentioning(symbol)
        if not is_telling(symbol):
            return Aspect(tuple(named), {})
        return await self._kept(
            (place.project, symbol),
            lambda: self._with_related(sidecar, place.project, named, words_of(symbol), symbol=symbol),
        )

    async def describe(
        self, sidecar: "AsyncSidecar", ids: Iterable[str], *, relevance: Mapping[str, float] | None = None
    ) -> list[Memory]:
        """Return the active ones of these memories with what is known of their use, in this order."""
        found = await asyncio.gather(*(self._look_up(sidecar, each) for each in ids))
        now = datetime.now(UTC)
        shown = (
            present(memory, why, now=now, relevance=(relevance or {}).get(memory.id))
            for memory, why in filter(None, found)
        )
        return [memory for memory in shown if not memory.superseded]

    async def describe_these(
        self, sidecar: "AsyncSidecar", memories: "Sequence[pb.Memory]", *, relevance: Mapping[str, float] | None = None
    ) -> list[Memory]:
        """As `describe`, for memories that were answered just now, in whatever state."""
        whys = await asyncio.gather(*(self._explain_if_there(sidecar, memory.id) for memory in memories))
        now = datetime.now(UTC)
        return [
            present(memory, why, now=now, relevance=(relevance or {}).get(memory.id))
            for memory, why in zip(memories, whys, strict=True)
        ]

    async def _with_related(
        self, sidecar: "AsyncSidecar", project: str, named: Sequence[str], words: Sequence[str], *, symbol: str = ""
    ) -> Aspect:
        if len(words) < _FEWEST_WORDS:
            return Aspect(tuple(named), {})
        recalled = await self._recall(sidecar, project, " ".join(words))
        # Recall looks through all memories, the catalog through the newest only.
        literal = [each.memory.id for each in recalled if symbol and is_about(each.memory.content, symbol)]
        names = tuple(dict.fromkeys((*named, *literal)))
        related = {
            each.memory.id: each.score_parts.relevance
            for each in recalled
            if each.memory.id not in names and each.score_parts.relevance >= RELATED_RELEVANCE
        }
        return Aspect(names, dict(list(related.items())[:_MOST_RELATED]))

    async def _recall(self, sidecar: "AsyncSidecar", project: str, query: str) -> "Sequence[RecalledMemory]":
        from sidecar.api.v1.memory_service_pb2 import RecallRequest  # noqa: PLC0415 - protobuf is for calls only

        # Internal: a person looks at it, so that it is no evidence of what an agent was shown.
        request = RecallRequest(
            query=query, n_results=_RECALLED, explain=True, internal=True, context=self._context_of(project)
        )
        return (await sidecar.recall(request)).memories

    async def _kept(self, key: tuple[str, str], find: Callable[[], Awaitable[Aspect]]) -> Aspect:
        known = self._aspects.get(key)
        if known is None or known[0] <= self._clock():
            if len(self._aspects) >= _CACHE_ENTRIES:
                self._aspects.clear()
            known = self._aspects[key] = (self._clock() + _KEPT_S, await find())
        return known[1]

    async def _look_up(
        self, sidecar: "AsyncSidecar", memory_id: str
    ) -> "tuple[pb.Memory, ExplainMemoryResponse] | None":
        from sidecar.api.v1.memory_pb2 import MEMORY_STATE_ACTIVE  # noqa: PLC0415 - as above
        from sidecar.api.v1.memory_service_pb2 import GetMemoryRequest  # noqa: PLC0415

        known = self._known.get(memory_id)
        if known is None or known[0] <= self._clock():
            if len(self._known) >= _CACHE_ENTRIES:
                self._known.clear()
            try:
                async with self._turns:
                    memory = (await sidecar.get_memory(GetMemoryRequest(memory_id=memory_id))).memory
                why = await self._explain(sidecar, memory_id)
            except NotFoundError:
                # Purged since the catalog was loaded.
                return None
            known = self._known[memory_id] = (self._clock() + _KEPT_S, memory, why)
        return (known[1], known[2]) if known[1].state == MEMORY_STATE_ACTIVE else None

    async def _explain_if_there(self, sidecar: "AsyncSidecar", memory_id: str) -> "ExplainMemoryResponse":
        from sidecar.api.v1.insights_service_pb2 import ExplainMemoryResponse  # noqa: PLC0415 - as above

        try:
            return await self._explain(sidecar, memory_id)
        except NotFoundError:
            # Purged in this moment.
            return ExplainMemoryResponse(multiplier=1)

    async def _explain(self, sidecar: "AsyncSidecar", memory_id: str) -> "ExplainMemoryResponse":
        from sidecar.api.v1.insights_service_pb2 import ExplainMemoryRequest  # noqa: PLC0415 - as above

        async with self._turns:
            return await sidecar.explain_memory(ExplainMemoryRequest(memory_id=memory_id))


def _words_of_path(place: Place) -> tuple[str, ...]:
    """Return the words of the last folders and of the name without its ending: the ending fits too many."""
    path = place.relative or place.absolute
    stem = path.rpartition(".")[0] or path
    parts = stem.split("/")[-_PATH_PARTS:]
    return tuple(word for part in parts for piece in _NO_WORD.split(part) for word in words_of(piece))
