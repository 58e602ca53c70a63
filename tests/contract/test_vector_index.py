"""What every vector index keeps, run on the FAISS index and on its numpy twin."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from sidecar.adapters.brute_force import BruteForceVectorIndex
from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.layered import LayeredVectorIndex
from sidecar.errors import IndexRowError
from sidecar.ports import Embedding, KeyMask, Keys, VectorIndex

DIM = 16
THREAD_TEST_S = 2.0
INDEXES: dict[str, Callable[[int], VectorIndex]] = {
    "brute-force": BruteForceVectorIndex,
    "faiss": FaissVectorIndex,
    "layered": LayeredVectorIndex,
}


@pytest.fixture(params=list(INDEXES))
def index(request: pytest.FixtureRequest) -> VectorIndex:
    return INDEXES[request.param](DIM)


def unit_rows(count: int, *, seed: int = 0, dim: int = DIM) -> Embedding:
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def axis(position: int) -> Embedding:
    row = np.zeros(DIM, np.float32)
    row[position] = 1.0
    return row


def keys_of(*keys: int) -> Keys:
    return np.array(keys, np.int64)


def mask_of(length: int, *keys: int) -> KeyMask:
    mask = np.zeros(length, np.bool_)
    mask[list(keys)] = True
    return mask


def test_empty_index_finds_nothing(index: VectorIndex) -> None:
    """An index without rows has no neighbours, and says so without failing."""
    assert index.search(axis(0), limit=3) == []
    assert index.search(axis(0), limit=3, allowed=mask_of(5, 1)) == []
    assert len(index) == 0
    assert index.keys().tolist() == []
    assert index.similarities(axis(0), keys_of(1)) == [None]
    assert index.remove(keys_of(1, 2)) == 0


def test_search_orders_by_cosine_then_key(index: VectorIndex) -> None:
    """The nearest comes first, and equal ones in the order of their keys, however they were stored."""
    index.upsert(keys_of(9, 4, 7, 2), np.stack((axis(0), axis(0), axis(1), axis(0))))
    assert index.search(axis(0), limit=10) == [(2, 1.0), (4, 1.0), (9, 1.0), (7, 0.0)]
    assert index.search(axis(0), limit=2) == [(2, 1.0), (4, 1.0)]


def test_search_agrees_with_arithmetic(index: VectorIndex) -> None:
    """The answers are those of a sorted list of dot products."""
    rows = unit_rows(500)
    index.upsert(np.arange(500, dtype=np.int64), rows)
    for query in unit_rows(20, seed=1):
        cosines = rows @ query
        found = index.search(query, limit=10)
        assert [key for key, _ in found] == np.argsort(-cosines)[:10].tolist()
        assert [cosine for _, cosine in found] == pytest.approx(np.sort(cosines)[::-1][:10].tolist(), abs=2e-6)


def test_storing_a_key_twice_replaces_it(index: VectorIndex) -> None:
    """FAISS itself would keep both rows and return the key twice (T-02)."""
    index.upsert(keys_of(1, 2), np.stack((axis(0), axis(1))))
    index.upsert(keys_of(1), axis(2)[np.newaxis])
    assert len(index) == 2
    assert index.search(axis(2), limit=5) == [(1, 1.0), (2, 0.0)]
    assert index.similarities(axis(0), keys_of(1)) == [0.0]


def test_windows_of_one_key_count_once_with_the_best(index: VectorIndex) -> None:
    """A long text has several rows; it takes one place in the answer and the cosine of its best row."""
    index.upsert(keys_of(3, 3, 5, 3), np.stack((axis(0), axis(1), axis(2), axis(3))))
    assert len(index) == 2
    assert index.keys().tolist() == [3, 5]
    assert index.search(axis(3), limit=2) == [(3, 1.0), (5, 0.0)]
    assert index.similarities(axis(1), keys_of(5, 3, 4)) == [0.0, 1.0, None]
    index.upsert(keys_of(3), axis(4)[np.newaxis])
    assert index.similarities(axis(0), keys_of(3)) == [0.0]
    assert index.remove(keys_of(3)) == 1
    assert index.search(axis(4), limit=2) == [(5, 0.0)]


def test_many_windows_leave_room_for_other_keys(index: VectorIndex) -> None:
    """Sixty-four near rows of one key must not push the next keys out of the answer."""
    near = np.tile(axis(0), (64, 1))
    index.upsert(np.full(64, 1, np.int64), near)
    index.upsert(np.full(64, 2, np.int64), near)
    index.upsert(keys_of(3, 4, 5), np.stack((axis(1), axis(2), axis(3))))
    assert [key for key, _ in index.search(axis(0), limit=5)] == [1, 2, 3, 4, 5]


def test_equal_cosines_at_the_cut_go_to_the_lowest_keys(index: VectorIndex) -> None:
    """Which of many equal rows are returned does not depend on the order in which they were stored."""
    keys = np.random.default_rng(3).permutation(400).astype(np.int64)
    index.upsert(keys, np.tile(axis(0), (400, 1)))
    assert [key for key, _ in index.search(axis(0), limit=5)] == [0, 1, 2, 3, 4]


def test_filter_is_applied_before_the_cut(index: VectorIndex) -> None:
    """What may not be returned takes no place, and keys beyond the mask may not."""
    index.upsert(np.arange(100, dtype=np.int64), np.tile(axis(0), (100, 1)))
    assert index.search(axis(0), limit=3, allowed=mask_of(60, 50, 55, 57, 59)) == [(50, 1.0), (55, 1.0), (57, 1.0)]
    assert index.search(axis(0), limit=3, allowed=mask_of(50)) == []
    assert index.search(axis(0), limit=3, allowed=np.zeros(0, np.bool_)) == []


def test_narrow_filter_returns_all_it_allows(index: VectorIndex) -> None:
    """One row in a thousand allowed: the answer is complete and exact (T-06, at the size of this index)."""
    rows = unit_rows(20_000)
    index.upsert(np.arange(20_000, dtype=np.int64), rows)
    allowed_keys = np.arange(7, 20_000, 1000)
    query = unit_rows(1, seed=5)[0]
    found = index.search(query, limit=10, allowed=mask_of(20_000, *allowed_keys.tolist()))
    expected = allowed_keys[np.argsort(-(rows[allowed_keys] @ query))][:10]
    assert [key for key, _ in found] == expected.tolist()


def test_forgotten_near_duplicates_take_no_places(index: VectorIndex) -> None:
    """1,000 near-duplicates, 900 forgotten, five asked for: five live ones come (B09)."""
    rows = axis(0) + 1e-3 * unit_rows(1000)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index.upsert(np.arange(1000, dtype=np.int64), rows)
    assert index.remove(np.arange(900, dtype=np.int64)) == 900
    found = index.search(axis(0), limit=5)
    assert len(found) == 5
    assert all(key >= 900 for key, _ in found)
    assert len(index) == 100


def test_remove_counts_each_present_key_once(index: VectorIndex) -> None:
    """Unknown and repeated keys do not count, and the other rows stay findable."""
    rows = unit_rows(50)
    index.upsert(np.arange(50, dtype=np.int64), rows)
    assert index.remove(keys_of(3, 3, 49, 70, 0)) == 3
    assert index.keys().tolist() == [key for key in range(50) if key not in {0, 3, 49}]
    for key in index.keys().tolist():
        assert index.search(rows[key], limit=1)[0][0] == key


def test_large_sparse_keys_are_kept(index: VectorIndex) -> None:
    """A key is any int64 from 0 up; the largest costs no more than the smallest."""
    top = np.iinfo(np.int64).max
    index.upsert(keys_of(top, 0), np.stack((axis(0), axis(1))))
    assert index.search(axis(0), limit=1) == [(int(top), 1.0)]
    assert index.search(axis(0), limit=2, allowed=mask_of(1, 0)) == [(0, 0.0)]


def test_limit_of_zero_returns_nothing(index: VectorIndex) -> None:
    """Asking for no results is not an error."""
    index.upsert(keys_of(1), axis(0)[np.newaxis])
    assert index.search(axis(0), limit=0) == []


GOOD_ROWS = unit_rows(2)
BAD_ROWS: dict[str, tuple[object, object]] = {
    "float64": (keys_of(1, 2), GOOD_ROWS.astype(np.float64)),
    "wrong dim": (keys_of(1, 2), unit_rows(2, dim=DIM + 1)),
    "too few rows": (keys_of(1, 2), GOOD_ROWS[:1]),
    "one dimension": (keys_of(1), GOOD_ROWS[0]),
    "nan": (keys_of(1, 2), np.where(np.arange(DIM) == 3, np.float32("nan"), GOOD_ROWS)),
    "infinite": (keys_of(1, 2), np.where(np.arange(DIM) == 3, np.float32("inf"), GOOD_ROWS)),
    "zero": (keys_of(1, 2), np.zeros((2, DIM), np.float32)),
    "not unit length": (keys_of(1, 2), GOOD_ROWS * np.float32(1.01)),
    "negative key": (keys_of(1, -2), GOOD_ROWS),
    "uint64 keys": (np.array([1, 2**63 + 5], np.uint64), GOOD_ROWS),
    "int32 keys": (np.array([1, 2], np.int32), GOOD_ROWS),
    "two-dimensional keys": (np.array([[1, 2]], np.int64), GOOD_ROWS),
    "a list": ([1, 2], GOOD_ROWS),
    "rows as a list": (keys_of(1, 2), GOOD_ROWS.tolist()),
}


@pytest.mark.parametrize("problem", BAD_ROWS)
def test_bad_rows_are_refused_whole(index: VectorIndex, problem: str) -> None:
    """A typed error, nothing stored, and what was there is untouched (T-07)."""
    index.upsert(keys_of(1), axis(0)[np.newaxis])
    keys, rows = BAD_ROWS[problem]
    with pytest.raises(IndexRowError):
        index.upsert(keys, rows)  # type: ignore[arg-type]
    assert index.search(axis(0), limit=5) == [(1, 1.0)]


@pytest.mark.parametrize(
    "query",
    [
        axis(0).astype(np.float64),
        unit_rows(1),
        unit_rows(1, dim=DIM - 1)[0],
        np.full(DIM, np.nan, np.float32),
        0 * axis(0),
    ],
    ids=["float64", "two-dimensional", "wrong dim", "nan", "zero"],
)
def test_bad_query_is_refused(index: VectorIndex, query: Embedding) -> None:
    """A query that cannot be compared is a typed error, never an answer (T-07)."""
    index.upsert(keys_of(1), axis(0)[np.newaxis])
    with pytest.raises(IndexRowError):
        index.search(query, limit=1)
    with pytest.raises(IndexRowError):
        index.similarities(query, keys_of(1))


def test_bad_filter_is_refused(index: VectorIndex) -> None:
    """Key numbers in place of a mask would select the wrong rows."""
    index.upsert(keys_of(1), axis(0)[np.newaxis])
    with pytest.raises(IndexRowError):
        index.search(axis(0), limit=1, allowed=keys_of(1))  # type: ignore[arg-type]


CHECKS_WITHOUT_ASSERT = """
import numpy as np
from sidecar.adapters.brute_force import BruteForceVectorIndex
from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.layered import LayeredVectorIndex
from sidecar.errors import IndexRowError
refused = 0
for make in (BruteForceVectorIndex, FaissVectorIndex):
    index = make(8)
    one = np.eye(8, dtype=np.float32)[:1]
    index.upsert(np.array([1]), one)
    for call in (
        lambda: index.upsert(np.array([2]), np.ones((1, 4), np.float32) / 2),
        lambda: index.search(np.ones(4, np.float32) / 2, limit=1),
        lambda: index.upsert(np.array([2]), one * np.float32("nan")),
        lambda: index.upsert(np.array([2]), one.astype(np.float64)),
        lambda: index.upsert(np.array([2]), one * 0),
    ):
        try:
            call()
        except IndexRowError:
            refused += 1
print(refused)
"""


def test_checks_hold_without_asserts() -> None:
    """Under `python -O` FAISS answers a wrong dimension from stray memory; our checks stay on (T-07)."""
    run = subprocess.run(
        [sys.executable, "-O", "-c", CHECKS_WITHOUT_ASSERT], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.strip() == "10"


def test_changes_beside_searches_show_no_stale_key(index: VectorIndex) -> None:
    """Two threads search while one adds and removes: no crash, and a removed key never comes back (T-01)."""
    # Large enough for a search and a change to take milliseconds: without the lock they meet within a second.
    count, fixed = 30_000, 20_000
    rows = unit_rows(count)
    moving = np.arange(fixed, count, dtype=np.int64)
    # Removals move the later rows up, so those that stay are stored last.
    index.upsert(moving, rows[fixed:])
    index.upsert(np.arange(fixed, dtype=np.int64), rows[:fixed])
    query = rows[fixed]
    stop = threading.Event()
    problems: list[str] = []
    searches = [0, 0]

    def search(worker: int) -> None:
        while not stop.is_set():
            found = index.search(query, limit=10)
            searches[worker] += 1
            if len({key for key, _ in found}) != 10:
                problems.append(f"answer {found}")
            if any(abs(cosine - float(rows[key] @ query)) > 1e-5 for key, cosine in found):
                problems.append("a cosine belongs to another key")

    def change() -> None:
        while not stop.is_set():
            if index.remove(moving) != len(moving):
                problems.append("not all were removed")
            if any(key >= fixed for key, _ in index.search(query, limit=10)):
                problems.append("a removed key came back")
            index.upsert(moving, rows[fixed:])

    run_in_threads([lambda: search(0), lambda: search(1), change], stop, seconds=THREAD_TEST_S)
    assert problems == []
    assert min(searches) > 0


def run_in_threads(jobs: list[Callable[[], None]], stop: threading.Event, *, seconds: float) -> None:
    failures: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    stop.wait(max(0.0, deadline - time.monotonic()))
    stop.set()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def test_every_thread_searches_with_one_openmp_thread() -> None:
    """FAISS keeps the number for each thread, so a new one would take all processors (T-08)."""
    import faiss

    index = FaissVectorIndex(DIM)
    index.upsert(keys_of(1), axis(0)[np.newaxis])
    seen: list[int] = []

    def search() -> None:
        faiss.omp_set_num_threads(2)
        index.search(axis(0), limit=1)
        seen.append(faiss.omp_get_max_threads())

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1]


def test_both_indexes_agree_after_the_same_history() -> None:
    """The same thousand changes leave both with the same keys and the same answers."""
    rng = np.random.default_rng(11)
    twin, index = BruteForceVectorIndex(DIM), FaissVectorIndex(DIM)
    for step in range(120):
        keys = rng.integers(0, 300, size=rng.integers(1, 20)).astype(np.int64)
        rows = unit_rows(len(keys), seed=step)
        for each in (twin, index):
            if step % 3 == 2:
                each.remove(keys)
            else:
                each.upsert(keys, rows)
        query = unit_rows(1, seed=10_000 + step)[0]
        allowed = rng.random(250) < 0.2
        assert twin.keys().tolist() == index.keys().tolist()
        for expected, found in (
            (twin.search(query, limit=7), index.search(query, limit=7)),
            (twin.search(query, limit=7, allowed=allowed), index.search(query, limit=7, allowed=allowed)),
        ):
            assert [key for key, _ in found] == [key for key, _ in expected]
            assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected], abs=2e-6)
        assert index.similarities(query, keys) == pytest.approx(twin.similarities(query, keys), abs=2e-6)
