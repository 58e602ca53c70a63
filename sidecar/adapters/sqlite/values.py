"""Turns rows into values and back. Knows the columns of `memories`, runs no statement."""

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Final

from sidecar.adapters.sqlite.connection import Row, Value, placeholders
from sidecar.domain.memory import Memory, MemoryState, MemoryType, Provenance
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import CatalogRow

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT_AS_FLOAT_US: Final = 1 << 52
"""In 2112; below it, seconds as a float still round to the right microsecond."""
_MICROSECOND: Final = timedelta(microseconds=1)

MEMORY_COLUMNS: Final = (
    "m.key, m.id, m.owner, m.namespace, m.type, m.state, m.previous_state, m.importance, m.confidence, m.created_at, "
    "m.accessed_at, m.access_count, m.provenance, m.client, m.session, m.superseded_by, m.content_hash, m.metadata, "
    "m.content"
)
CATALOG_COLUMNS: Final = "m.key, m.owner, m.namespace, m.type, m.importance, m.state, m.created_at, m.session"

# A look-up costs a fifth of making an enumeration's member from its value; ranking does it for each candidate.
MEMORY_TYPES: Final = {str(member): member for member in MemoryType}
PROVENANCES: Final = {str(member): member for member in Provenance}
_MEMORY_STATES: Final = {str(state): state for state in MemoryState}


def to_us(at: datetime) -> int:
    """Return microseconds since 1970 UTC."""
    return (at - _EPOCH) // _MICROSECOND


def from_us(value: int) -> datetime:
    """Return the time of so many microseconds since 1970 UTC."""
    if 0 <= value < _EXACT_AS_FLOAT_US:
        # Half the time of the sum below; ranking makes hundreds of times for one recall.
        return datetime.fromtimestamp(value / 1e6, UTC)
    return _EPOCH + timedelta(microseconds=value)


def memory_from_row(row: Row) -> Memory:
    """Return a memory from `MEMORY_COLUMNS`."""
    state = MemoryState(row[5])
    return Memory(
        key=row[0],
        id=row[1],
        owner=row[2],
        namespace=row[3],
        type=MemoryType(row[4]),
        state=state,
        previous_state=MemoryState(row[6]),
        importance=row[7],
        confidence=row[8],
        created_at=from_us(row[9]),
        accessed_at=from_us(row[10]),
        access_count=row[11],
        provenance=Provenance(row[12]),
        client=row[13],
        session=row[14],
        # Kept in the row of a forgotten memory too: restoring it needs the pointer.
        superseded_by=row[15] if state is MemoryState.SUPERSEDED else "",
        content_hash=row[16],
        metadata=json.loads(row[17]),
        content=row[18],
    )


def metadata_text(memory: Memory) -> str:
    """Return a memory's metadata as JSON text."""
    # Not orjson: it refuses whole numbers over 64 bits, which are good JSON.
    return json.dumps(dict(memory.metadata), ensure_ascii=False, separators=(",", ":")) if memory.metadata else "{}"


def catalog_from_row(row: Row) -> CatalogRow:
    """Return the catalog fields from `CATALOG_COLUMNS`."""
    return CatalogRow(
        key=row[0],
        owner=row[1],
        namespace=row[2],
        type=MEMORY_TYPES[row[3]],
        importance=row[4],
        state=_MEMORY_STATES[row[5]],
        created_at=from_us(row[6]),
        session=row[7],
    )


def catalog_of(memory: Memory) -> CatalogRow:
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


def selection_clause(selection: MemoryFilter) -> tuple[str, list[Value]]:
    """Return a filter as a condition on `memories m` and its arguments."""
    parts = ["m.owner = ?"]
    arguments: list[Value] = [selection.owner]

    def any_of(column: str, values: tuple[str, ...]) -> None:
        parts.append(f"m.{column} IN ({placeholders(len(values))})")
        arguments.extend(str(value) for value in values)

    any_of("state", selection.states)
    if not selection.scope.covers_everything:
        any_of("namespace", selection.scope.names)
    if selection.types:
        any_of("type", selection.types)
    if selection.min_importance > 0 or math.isnan(selection.min_importance):
        parts.append("m.importance >= ?")
        arguments.append(selection.min_importance)
    if selection.created_after is not None:
        parts.append("m.created_at >= ?")
        arguments.append(to_us(selection.created_after))
    if selection.created_before is not None:
        parts.append("m.created_at < ?")
        arguments.append(to_us(selection.created_before))
    return " AND ".join(parts), arguments
