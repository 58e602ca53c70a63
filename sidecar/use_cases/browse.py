"""Looks at memories without recalling them: one, a page, or how many. Nothing here counts as delivered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sidecar.domain.evidence import UsageEvent
from sidecar.domain.memory import Caller, Memory, MemoryState, MemoryType, parse_fraction
from sidecar.domain.namespace import read_scope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.reinforcement import NEUTRAL
from sidecar.domain.store_values import Edge, MemoryCounts, OrderBy, Page
from sidecar.errors import InvalidInputError
from sidecar.ports import EvidenceStore, MemoryStore

DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Selection:
    """Which memories are meant; see `MemoryFilter`. Without states, the active ones."""

    namespace: str = ""
    types: tuple[MemoryType, ...] = ()
    min_importance: float = 0.0
    states: tuple[MemoryState, ...] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """One memory with its relations and the evidence about it."""

    memory: Memory
    edges: tuple[Edge, ...]
    usage_events: tuple[UsageEvent, ...]
    reinforcement: float


class Browse:
    """Reads memories."""

    def __init__(self, *, store: MemoryStore, evidence: EvidenceStore, page_size: int = DEFAULT_PAGE) -> None:
        """Take what is needed; a page has `page_size` memories where the caller names no number."""
        self._page_size = page_size
        self._store = store
        self._evidence = evidence

    async def get(self, caller: Caller, memory_id: str) -> MemoryDetail:
        """Return one memory in whatever state.

        Raises:
            MemoryNotFoundError: If the caller has none with this id.
        """
        memory = await self._store.get(caller.owner, memory_id)
        edges = await self._store.edges(caller.owner, memory_id)
        events = await self._evidence.usage_events(caller.owner, memory_id)
        multipliers = await self._store.multipliers([memory_id])
        return MemoryDetail(memory, edges, tuple(events), multipliers.get(memory_id, NEUTRAL))

    async def list_page(
        self,
        caller: Caller,
        selection: Selection,
        *,
        limit: int = 0,
        cursor: str = "",
        order_by: OrderBy = OrderBy.CREATED_AT,
        is_descending: bool = True,
    ) -> Page:
        """Return one page.

        Raises:
            InvalidInputError: If the limit, cursor, namespace or a fraction is wrong.
        """
        limit = limit or self._page_size
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidInputError("page_size", limit, f"a whole number from 1 to {MAX_PAGE}")
        return await self._store.list_page(
            _filter(caller, selection), limit=limit, cursor=cursor, order_by=order_by, is_descending=is_descending
        )

    async def count(self, caller: Caller, selection: Selection) -> MemoryCounts:
        """Count the memories that are meant."""
        return await self._store.count(_filter(caller, selection))


def _filter(caller: Caller, selection: Selection) -> MemoryFilter:
    return MemoryFilter(
        owner=caller.owner,
        scope=read_scope(selection.namespace, project=caller.project),
        types=selection.types,
        min_importance=parse_fraction(selection.min_importance, field_name="min_importance"),
        states=selection.states or (MemoryState.ACTIVE,),
        created_after=selection.created_after,
        created_before=selection.created_before,
    )
