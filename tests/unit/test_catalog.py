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


def _row(key: int, session: str, *, minutes: int = 0, namespace: str = "project:a") -> CatalogRow:
    at = START + timedelta(minutes=minutes)
    return CatalogRow(key, "local", namespace, MemoryType.FACT, 0.5, MemoryState.ACTIVE, at, session)


def test_neighbours_are_those_of_the_same_session() -> None:
    """Two sessions that take turns do not stand next to each other."""
    catalog = MemoryCatalog()
    catalog.apply([_row(1, "a"), _row(2, "b"), _row(3, "a"), _row(4, "b"), _row(5, "a")])
    found = catalog.neighbours([1, 3, 4, 5])
    assert found == {1: (None, None, 3, 5), 3: (None, 1, 5, None), 5: (1, 3, None, None)}


def test_neighbours_are_close_in_time_and_of_one_namespace() -> None:
    """A session that goes on for days does other work later, and a project's memory is no context for another's."""
    catalog = MemoryCatalog()
    catalog.apply([_row(1, "a"), _row(2, "a", minutes=90), _row(3, "a", minutes=100, namespace="global")])
    assert all(near == (None,) * 4 for near in catalog.neighbours([1, 2, 3]).values())


def test_without_a_session_nothing_has_neighbours() -> None:
    """That two memories have one date, as imported ones do, does not make one the context of the other."""
    catalog = MemoryCatalog()
    catalog.apply([_row(1, ""), _row(2, "")])
    assert catalog.neighbours([1, 2]) == {}


def test_changed_row_keeps_its_place_among_its_neighbours() -> None:
    """A new state or importance does not move a memory to the end of its session."""
    catalog = MemoryCatalog()
    catalog.apply([_row(1, "a"), _row(2, "a")])
    catalog.apply([_row(1, "a")])
    assert catalog.neighbours([1, 2])[1] == (None, None, 2, None)


def test_memory_that_is_not_here_yet_has_no_neighbours() -> None:
    """Words may find what was stored a moment ago, before its row arrives, however high its key."""
    catalog = MemoryCatalog()
    catalog.apply([_row(1, "a"), _row(2, "a")])
    assert catalog.neighbours([1, 2, 50_000])[1] == (None, None, 2, None)
