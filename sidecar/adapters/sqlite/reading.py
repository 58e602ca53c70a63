"""Reads memories and edges. Runs on a reader's connection, inside its transaction."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

from collections.abc import Sequence
from typing import Final

import apsw

from sidecar.adapters.page_cursor import PageCursor, decode_cursor, encode_cursor
from sidecar.adapters.sqlite.connection import Value, fetch_all, fetch_one, fetch_value, key_list, placeholders
from sidecar.adapters.sqlite.values import (
    CATALOG_COLUMNS,
    MEMORY_COLUMNS,
    MEMORY_TYPES,
    PROVENANCES,
    catalog_from_row,
    from_us,
    memory_from_row,
    selection_clause,
)
from sidecar.domain.evidence import Valence
from sidecar.domain.memory import Memory, Relation
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.reinforcement import NEUTRAL
from sidecar.domain.store_values import CatalogRow, Edge, MemoryCounts, OrderBy, Page, RankFields
from sidecar.errors import MemoryNotFoundError

_AT_ONCE: Final = 512

_ORDER_COLUMNS: Final = {
    OrderBy.CREATED_AT: "m.created_at",
    OrderBy.IMPORTANCE: "m.importance",
    OrderBy.CONFIDENCE: "m.confidence",
}


def find(connection: apsw.Connection, owner: str, memory_id: str) -> Memory | None:
    """Return an owner's memory, None if there is none of that id."""
    row = fetch_one(
        connection, f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE m.id = ? AND m.owner = ?", (memory_id, owner)
    )
    return None if row is None else memory_from_row(row)


def of_key(connection: apsw.Connection, key: int) -> Memory:
    """Return a memory that is known to exist."""
    row = fetch_one(connection, f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE m.key = ?", (key,))
    assert row is not None, "an edge names a memory that the foreign key should have kept"
    return memory_from_row(row)


def get(connection: apsw.Connection, owner: str, memory_id: str) -> Memory:
    """See `MemoryStore.get`."""
    memory = find(connection, owner, memory_id)
    if memory is None:
        raise MemoryNotFoundError(memory_id)
    return memory


def fetch(connection: apsw.Connection, keys: Sequence[int], selection: MemoryFilter) -> list[Memory]:
    """See `MemoryStore.fetch`."""
    condition, arguments = selection_clause(selection)
    found: dict[int, Memory] = {}
    for start in range(0, len(keys), _AT_ONCE):
        listed, asked = key_list(keys[start : start + _AT_ONCE])
        rows = fetch_all(
            connection,
            f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE m.key IN ({listed}) AND {condition}",
            [*asked, *arguments],
        )
        found.update((row[0], memory_from_row(row)) for row in rows)
    return [found[key] for key in dict.fromkeys(keys) if key in found]


def rank_fields(connection: apsw.Connection, keys: Sequence[int]) -> dict[int, RankFields]:
    """See `MemoryStore.rank_fields`; reads the filter's index and two small tables, no memory's row."""
    found: dict[int, RankFields] = {}
    for start in range(0, len(keys), _AT_ONCE):
        listed, asked = key_list(keys[start : start + _AT_ONCE])
        rows = fetch_all(
            connection,
            "SELECT m.key, m.type, m.created_at, m.provenance, x.value, s.key IS NOT NULL "
            "FROM memories m INDEXED BY memories_filter LEFT JOIN multipliers x ON x.key = m.key "
            "LEFT JOIN standing_rules s ON s.key = m.key "
            f"WHERE m.key IN ({listed})",
            asked,
        )
        for key, memory_type, created_at, provenance, value, is_standing in rows:
            factor = NEUTRAL if value is None else value
            # By position: names cost a quarter more, two hundred times for each recall.
            found[key] = RankFields(
                MEMORY_TYPES[memory_type], from_us(created_at), PROVENANCES[provenance], factor, bool(is_standing)
            )
    return found


def edges(connection: apsw.Connection, owner: str, memory_id: str) -> tuple[Edge, ...]:
    """See `MemoryStore.edges`."""
    rows = fetch_all(
        connection,
        "SELECT e.id, s.id, t.id, e.relation, e.weight, e.created_at FROM memories m "
        "JOIN edges e ON e.source_key = m.key OR e.target_key = m.key "
        "JOIN memories s ON s.key = e.source_key JOIN memories t ON t.key = e.target_key "
        "WHERE m.id = ? AND m.owner = ? ORDER BY e.id",
        (memory_id, owner),
    )
    return tuple(Edge(row[0], row[1], row[2], Relation(row[3]), row[4], from_us(row[5])) for row in rows)


def list_page(
    connection: apsw.Connection,
    selection: MemoryFilter,
    *,
    limit: int,
    cursor: str,
    order_by: OrderBy,
    is_descending: bool,
) -> Page:
    """See `MemoryStore.list_page`; equal values are ordered by id, in the same direction."""
    start = decode_cursor(cursor, order_by=order_by, is_descending=is_descending) if cursor else None
    last_event = start.last_event if start else int(fetch_value(connection, "SELECT max(id) FROM usage_events") or 0)
    condition, arguments = selection_clause(selection)
    direction, beyond = ("DESC", "<") if is_descending else ("ASC", ">")
    column = _ORDER_COLUMNS.get(order_by) or _accessed_then(last_event)
    bound: list[Value] = [*arguments]
    after = ""
    if start is not None:
        after = f"AND ({column}, m.id) {beyond} (?, ?)"
        bound += [start.value, start.memory_id]
    # Sorted by key alone first: a sorter that carries the texts takes ten times as long.
    rows = fetch_all(
        connection,
        f"WITH page AS MATERIALIZED (SELECT m.key AS page_key, {column} AS place, m.id AS page_id FROM memories m "
        f"WHERE {condition} {after} ORDER BY place {direction}, m.id {direction} LIMIT ?) "
        f"SELECT {MEMORY_COLUMNS}, place FROM page CROSS JOIN memories m ON m.key = page_key "
        f"ORDER BY place {direction}, page_id {direction}",
        [*bound, limit + 1],
    )
    memories = tuple(memory_from_row(row) for row in rows[:limit])
    if len(rows) <= limit or not memories:
        return Page(memories, "")
    end = PageCursor(order_by, is_descending, rows[limit - 1][-1], memories[-1].id, last_event)
    return Page(memories, encode_cursor(end))


def count(connection: apsw.Connection, selection: MemoryFilter) -> MemoryCounts:
    """See `MemoryStore.count`."""
    condition, arguments = selection_clause(selection)
    rows = fetch_all(
        connection,
        f"SELECT m.namespace, m.type, m.state, count(*) FROM memories m WHERE {condition} GROUP BY 1, 2, 3",
        arguments,
    )
    tables: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
    for *names, number in rows:
        for table, name in zip(tables, names, strict=True):
            table[name] = table.get(name, 0) + number
    by_namespace, by_type, by_state = tables
    return MemoryCounts(sum(by_state.values()), by_namespace, by_type, by_state)


def catalog(connection: apsw.Connection) -> list[CatalogRow]:
    """See `MemoryStore.catalog`; ordered by key, and read from the filter's index, without the texts."""
    rows = connection.execute(f"SELECT {CATALOG_COLUMNS} FROM memories m INDEXED BY memories_filter ORDER BY m.key")
    return [catalog_from_row(row) for row in rows]


def multipliers(connection: apsw.Connection, memory_ids: Sequence[str]) -> dict[str, float]:
    """See `MemoryStore.multipliers`."""
    found: dict[str, float] = {}
    for start in range(0, len(memory_ids), _AT_ONCE):
        asked = memory_ids[start : start + _AT_ONCE]
        rows = fetch_all(
            connection,
            "SELECT m.id, x.value FROM memories m JOIN multipliers x ON x.key = m.key "
            f"WHERE m.id IN ({placeholders(len(asked))})",
            asked,
        )
        found.update((row[0], row[1]) for row in rows)
    return found


def _accessed_then(last_event: int) -> str:
    """Return an expression for what `accessed_at` was after the usage event with that number."""
    then = (
        # With a plus, or else the index of all deliveries is taken instead of that of one memory's events.
        "(SELECT max(u.at) FROM usage_events u WHERE u.owner = m.owner AND u.memory_id = m.id "
        f"AND +u.valence = '{Valence.SURFACED}' AND u.id <= {last_event:d})"
    )
    return (
        f"CASE WHEN m.id IN (SELECT memory_id FROM usage_events WHERE id > {last_event:d}) "
        f"THEN max(m.first_accessed_at, coalesce({then}, m.first_accessed_at)) ELSE m.accessed_at END"
    )
