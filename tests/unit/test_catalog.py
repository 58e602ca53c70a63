"""The catalog's mask covers exactly what the filter covers."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.memory import Memory, MemoryState, MemoryType
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import CatalogRow
from sidecar.use_cases.catalog import MemoryCatalog

START = datetime(2026, 1, 1, tzinfo=UTC)
times = st.integers(0, 100).map(lambda hours: START + timedelta(hours=hours))
namespaces = st.sampled_from(["global", "project:a", "project:b"])
types = st.sampled_from(list(MemoryType))
states = st.sampled_from(list(MemoryState))
rows = st.builds(
    CatalogRow,
    key=st.integers(1, 3000),
    owner=st.sampled_from(["local", "other"]),
    namespace=namespaces,
    type=types,
    importance=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    state=states,
    created_at=times,
)
filters = st.builds(
    MemoryFilter,
    owner=st.sampled_from(["local", "other", "nobody"]),
    scope=st.lists(namespaces, max_size=2, unique=True).map(lambda names: NamespaceScope(tuple(names))),
    types=st.lists(types, max_size=3, unique=True).map(tuple),
    min_importance=st.sampled_from([0.0, 0.25, 0.6]),
    states=st.lists(states, min_size=1, max_size=3, unique=True).map(tuple),
    created_after=st.none() | times,
    created_before=st.none() | times,
)


@given(st.lists(rows, max_size=30), filters, st.integers(0, 3))
def test_mask_agrees_with_the_filter(stored: list[CatalogRow], selection: MemoryFilter, purged: int) -> None:
    """Rows that come twice count as they came last; purged ones match nothing."""
    catalog = MemoryCatalog()
    catalog.mask(selection)
    catalog.apply(stored)
    latest = {row.key: row for row in stored}
    gone = list(latest)[:purged]
    catalog.remove(gone)
    mask = catalog.mask(selection)
    found = {int(key) for key in mask.nonzero()[0]}
    expected = {key for key, row in latest.items() if key not in gone and selection.covers(_memory(row))}
    assert found == expected


def _memory(row: CatalogRow) -> Memory:
    return Memory(
        id=f"mem_{row.key}",
        owner=row.owner,
        namespace=row.namespace,
        type=row.type,
        content="x",
        content_hash="",
        created_at=row.created_at,
        accessed_at=row.created_at,
        importance=row.importance,
        state=row.state,
    )
