"""Lists memories page by page over plain collections."""

from datetime import UTC, datetime, timedelta
from typing import Final

from sidecar.adapters.in_memory.tables import Tables
from sidecar.adapters.page_cursor import PageCursor, decode_cursor, encode_cursor
from sidecar.domain.evidence import Valence
from sidecar.domain.memory import Memory
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import CatalogRow, OrderBy, Page

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def list_page(
    tables: Tables, selection: MemoryFilter, *, limit: int, cursor: str, order_by: OrderBy, is_descending: bool
) -> Page:
    """See `MemoryStore.list_page`."""
    start = decode_cursor(cursor, order_by=order_by, is_descending=is_descending) if cursor else None
    last_event = start.last_event if start else tables.last_usage
    places = sorted(
        (
            (_place(tables, memory, order_by, last_event=last_event), memory.id)
            for memory in tables.memories.values()
            if selection.covers(memory)
        ),
        reverse=is_descending,
    )
    if start is not None:
        end = (start.value, start.memory_id)
        places = [place for place in places if (place < end if is_descending else place > end)]
    memories = tuple(tables.memories[tables.keys[memory_id]] for _, memory_id in places[:limit])
    if len(places) <= limit or not memories:
        return Page(memories, "")
    value, memory_id = places[limit - 1]
    return Page(memories, encode_cursor(PageCursor(order_by, is_descending, value, memory_id, last_event)))


def catalog_row(memory: Memory) -> CatalogRow:
    """Return a memory's catalog fields."""
    return CatalogRow(
        key=memory.key,
        owner=memory.owner,
        namespace=memory.namespace,
        type=memory.type,
        importance=memory.importance,
        state=memory.state,
        created_at=memory.created_at,
        session=memory.session,
    )


def _place(tables: Tables, memory: Memory, order_by: OrderBy, *, last_event: int) -> float:
    match order_by:
        case OrderBy.CREATED_AT:
            return _microseconds(memory.created_at)
        case OrderBy.IMPORTANCE:
            return memory.importance
        case OrderBy.CONFIDENCE:
            return memory.confidence
        case OrderBy.ACCESSED_AT:
            return _microseconds(_accessed_then(tables, memory, last_event=last_event))


def _accessed_then(tables: Tables, memory: Memory, *, last_event: int) -> datetime:
    """Return when the memory had been accessed last at the time of that usage event."""
    accesses = [
        entry.event.at
        for entry in tables.usage
        if entry.number <= last_event
        and entry.event.valence is Valence.SURFACED
        and (entry.event.owner, entry.event.memory_id) == (memory.owner, memory.id)
    ]
    return max([tables.first_accessed[memory.key], *accesses])


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
