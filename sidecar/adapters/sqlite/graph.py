"""Rows of edges: stores, deletes and reads them. The states that they lead to are settled in `succession`."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import apsw

from sidecar.adapters.sqlite import reading
from sidecar.adapters.sqlite.connection import Row, Value, fetch_all, fetch_one, fetch_value, placeholders
from sidecar.adapters.sqlite.succession import SqliteSuccessionRows, settle
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.values import MEMORY_COLUMNS, from_us, memory_from_row, to_us
from sidecar.domain.edge_paths import MAX_EDGES_PER_MEMORY, Direction
from sidecar.domain.edges import (
    DeletedEdges,
    EdgeOfId,
    EdgeOrigin,
    EdgeSelector,
    EdgesOfMemory,
    NewEdge,
    StoredEdge,
    check_refinement,
    closes_circle,
    may_auto_link,
)
from sidecar.domain.memory import Memory, MemoryState, Relation
from sidecar.domain.store_values import Edge
from sidecar.errors import EdgeNotFoundError, MemoryNotFoundError, SupersessionCircleError

_EDGES: Final = (
    "SELECT e.id, s.id, t.id, e.relation, e.weight, e.created_at FROM edges e "
    "JOIN memories s ON s.key = e.source_key JOIN memories t ON t.key = e.target_key "
)
_INSERT: Final = (
    "INSERT INTO edges (owner, source_key, target_key, relation, weight, origin, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_REFINE: Final = (
    f"UPDATE edges AS e SET relation = ?1, origin = '{EdgeOrigin.DETECTED}' "
    f"WHERE e.id = ?2 AND e.owner = ?3 AND e.origin = '{EdgeOrigin.AUTO}' AND e.relation = '{Relation.RELATES_TO}' "
    "AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.key IN (e.source_key, e.target_key) AND m.state <> 'active') "
    "AND NOT EXISTS (SELECT 1 FROM edges o WHERE o.id <> e.id AND o.relation = ?1 AND "
    "((o.source_key = e.source_key AND o.target_key = e.target_key) "
    "OR (o.source_key = e.target_key AND o.target_key = e.source_key))) RETURNING id"
)
_AROUND: Final = (
    f"{_EDGES} WHERE e.id IN (SELECT id FROM edges WHERE source_key = ?1 UNION SELECT id FROM edges WHERE "
    "target_key = ?1) AND s.state <> 'forgotten' AND t.state <> 'forgotten' "
    "AND (?2 = '' OR instr(?2, ' ' || e.relation || ' ') > 0) ORDER BY e.weight DESC, e.id LIMIT ?3"
)


def put_edge(transaction: Transaction, owner: str, new: NewEdge, *, now: datetime) -> StoredEdge:
    """See `GraphStore.put_edge`."""
    connection = transaction.connection
    source, target = _end(connection, owner, new.source_id), _end(connection, owner, new.target_id)
    found = fetch_one(
        connection,
        "SELECT id, origin FROM edges WHERE source_key = ? AND target_key = ? AND relation = ?",
        (source.key, target.key, new.relation),
    )
    if found is not None:
        if new.may_replace(EdgeOrigin(found[1])):
            connection.execute(
                "UPDATE edges SET weight = ?, origin = ? WHERE id = ?", (new.weight, new.origin, found[0])
            )
        return StoredEdge(_of_id(connection, found[0]), is_created=False)
    is_superseding = new.relation is Relation.SUPERSEDES
    if is_superseding and closes_circle(SqliteSuccessionRows(connection), source.key, target.key):
        raise SupersessionCircleError(source.id, target.id)
    edge_id = _insert(connection, source, target, new, now=now)
    changed = settle(connection, [target.key]) if is_superseding else []
    return StoredEdge(_of_id(connection, edge_id), is_created=True, changed=tuple(changed))


def delete_edges(transaction: Transaction, owner: str, selector: EdgeSelector) -> DeletedEdges:
    """See `GraphStore.delete_edges`."""
    connection = transaction.connection
    condition, arguments = _selection(connection, owner, selector)
    rows = fetch_all(
        connection,
        f"DELETE FROM edges WHERE owner = ? AND {condition} RETURNING id, relation, target_key",
        [owner, *arguments],
    )
    if not rows and isinstance(selector, EdgeOfId):
        raise EdgeNotFoundError(selector.edge_id)
    given_back = sorted({target_key for _, relation, target_key in rows if relation == Relation.SUPERSEDES})
    return DeletedEdges(tuple(sorted(row[0] for row in rows)), tuple(settle(connection, given_back)))


def neighbours(
    connection: apsw.Connection, owner: str, memory_ids: Sequence[str], *, relations: frozenset[Relation]
) -> dict[str, tuple[Edge, ...]]:
    """See `GraphStore.neighbours`."""
    wanted = f" {' '.join(sorted(relations))} " if relations else ""
    found: dict[str, tuple[Edge, ...]] = {}
    for memory_id in dict.fromkeys(memory_ids):
        key = fetch_value(connection, "SELECT key FROM memories WHERE id = ? AND owner = ?", (memory_id, owner))
        rows = fetch_all(connection, _AROUND, (key, wanted, MAX_EDGES_PER_MEMORY))
        if rows:
            found[memory_id] = tuple(_edge_from_row(row) for row in rows)
    return found


def auto_link(
    transaction: Transaction, key: int, near: Sequence[tuple[int, float]], *, now: datetime
) -> tuple[Edge, ...]:
    """See `GraphStore.auto_link`."""
    connection = transaction.connection
    source = _find(connection, key)
    if source is None:
        return ()
    added = []
    for target_key, cosine in near:
        target = _find(connection, target_key)
        if target is None or not may_auto_link(source, target) or _is_related(connection, key, target_key):
            continue
        weight = min(max(cosine, 0.0), 1.0)
        new = NewEdge(source.id, target.id, Relation.RELATES_TO, weight, EdgeOrigin.AUTO)
        added.append(_of_id(connection, _insert(connection, source, target, new, now=now)))
    return tuple(added)


def refine_edge(transaction: Transaction, owner: str, edge_id: int, *, relation: Relation) -> Edge | None:
    """See `GraphStore.refine_edge`."""
    check_refinement(relation)
    connection = transaction.connection
    changed = fetch_one(connection, _REFINE, (relation, edge_id, owner))
    return None if changed is None else _of_id(connection, changed[0])


def _insert(connection: apsw.Connection, source: Memory, target: Memory, new: NewEdge, *, now: datetime) -> int:
    connection.execute(
        _INSERT, (source.owner, source.key, target.key, new.relation, new.weight, new.origin, to_us(now))
    )
    return connection.last_insert_rowid()


def _selection(connection: apsw.Connection, owner: str, selector: EdgeSelector) -> tuple[str, list[Value]]:
    """Return a selector as a condition on `edges` and its arguments."""
    if isinstance(selector, EdgeOfId):
        return "id = ?", [selector.edge_id]
    if isinstance(selector, EdgesOfMemory):
        key = reading.get(connection, owner, selector.memory_id).key
        sides = {Direction.OUT: "source_key = ?", Direction.IN: "target_key = ?"}
        condition = sides.get(selector.direction, "(source_key = ? OR target_key = ?)")
        arguments: list[Value] = [key] * condition.count("?")
    else:
        condition = "source_key = ? AND target_key = ?"
        ends = (selector.source_id, selector.target_id)
        arguments = [reading.get(connection, owner, memory_id).key for memory_id in ends]
    if selector.relations:
        condition += f" AND relation IN ({placeholders(len(selector.relations))})"
        arguments += sorted(selector.relations)
    return condition, arguments


def _end(connection: apsw.Connection, owner: str, memory_id: str) -> Memory:
    memory = reading.find(connection, owner, memory_id)
    if memory is None or memory.state is MemoryState.FORGOTTEN:
        raise MemoryNotFoundError(memory_id)
    return memory


def _find(connection: apsw.Connection, key: int) -> Memory | None:
    row = fetch_one(connection, f"SELECT {MEMORY_COLUMNS} FROM memories m WHERE m.key = ?", (int(key),))
    return None if row is None else memory_from_row(row)


def _is_related(connection: apsw.Connection, key: int, other_key: int) -> bool:
    found = fetch_value(
        connection,
        "SELECT EXISTS (SELECT 1 FROM edges WHERE (source_key = ?1 AND target_key = ?2) "
        "OR (source_key = ?2 AND target_key = ?1))",
        (key, other_key),
    )
    return bool(found)


def _of_id(connection: apsw.Connection, edge_id: int) -> Edge:
    row = fetch_one(connection, f"{_EDGES} WHERE e.id = ?", (edge_id,))
    assert row is not None, "the edge was found or stored within this transaction"
    return _edge_from_row(row)


def _edge_from_row(row: Row) -> Edge:
    return Edge(row[0], row[1], row[2], Relation(row[3]), row[4], from_us(row[5]))
