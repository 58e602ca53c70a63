"""The index of large stores: its graph finds what an exact search finds, and forgets, moves and is kept as well."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sidecar.adapters.brute_force import BruteForceVectorIndex
from sidecar.adapters.faiss.graph_file import load_graph
from sidecar.adapters.faiss.layered import LayeredVectorIndex
from sidecar.adapters.faiss.snapshots import FaissSnapshots
from sidecar.ports import Embedding, Keys

DIM = 32
COUNT = 6_000
MODEL = "model@1"


def rows(count: int, *, seed: int = 0) -> Embedding:
    """Return unit rows in clusters, as those of texts are."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, DIM))
    found = centres[rng.integers(0, 40, count)] + 0.7 * rng.standard_normal((count, DIM))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found.astype(np.float32)


def keys_up_to(count: int) -> Keys:
    return np.arange(1, count + 1, dtype=np.int64)


def filled(count: int = COUNT, *, fresh_limit: int = 500) -> LayeredVectorIndex:
    """Return an index whose rows are in its graph."""
    index = LayeredVectorIndex(DIM, graph_from=1_000, fresh_limit=fresh_limit)
    index.upsert(keys_up_to(count), rows(count))
    index.settle()
    assert index.graph_size == count
    return index


def shared(found: list[tuple[int, float]], exact: list[tuple[int, float]]) -> float:
    return len({key for key, _ in found} & {key for key, _ in exact}) / len(exact)


@pytest.fixture
def everything_by_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no filter be narrow enough for an exact scan, except one under a tenth of the rows."""
    monkeypatch.setattr("sidecar.adapters.faiss.graph.EXACT_BELOW", 0)


@pytest.mark.usefixtures("everything_by_graph")
@pytest.mark.parametrize("share", [1.0, 0.5, 0.15, 0.05, 0.002])
def test_graph_finds_what_an_exact_search_finds(share: float) -> None:
    """Nineteen of twenty of the ten nearest at the least, under wide and narrow filters (T-06)."""
    index, exact = filled(), BruteForceVectorIndex(DIM)
    exact.upsert(keys_up_to(COUNT), rows(COUNT))
    allowed = np.random.default_rng(4).random(COUNT + 1) < share
    recalls = []
    for query in rows(60, seed=9):
        expected = exact.search(query, limit=10, allowed=allowed)
        found = index.search(query, limit=10, allowed=allowed)
        assert len(found) == len(expected)
        assert all(allowed[key] for key, _ in found)
        recalls.append(shared(found, expected))
    assert np.mean(recalls) >= 0.95


@pytest.mark.usefixtures("everything_by_graph")
def test_removed_keys_never_come_back(tmp_path: Path) -> None:
    """Not from the graph, not from its links, not from the rebuilt one; and the others are still found."""
    index = filled(fresh_limit=10_000)
    gone = keys_up_to(1_000)
    assert index.remove(gone) == 1_000
    assert index.remove(gone) == 0
    for query in rows(COUNT)[:1_000:50]:
        found = index.search(query, limit=50)
        assert len(found) == 50
        assert all(key > 1_000 for key, _ in found)
    assert index.similarities(rows(1)[0], gone[:2]) == [None, None]
    assert len(index) == COUNT - 1_000


def test_many_removals_make_a_new_graph() -> None:
    """A graph of mostly dead rows is slow and misses the rest."""
    index = filled()
    index.remove(keys_up_to(2_500))
    index.settle()
    with index.unchanged() as (fresh, graph):
        assert len(fresh) == 0
        assert graph is not None
        assert (graph.row_count, graph.dead_count) == (COUNT - 2_500, 0)
    assert index.keys().tolist() == list(range(2_501, COUNT + 1))


def test_later_rows_are_moved_into_the_graph() -> None:
    """New rows are found exactly at once, and again after they were moved."""
    index = filled(2_000)
    more = rows(700, seed=5)
    index.upsert(np.arange(5_001, 5_701, dtype=np.int64), more)
    assert index.search(more[3], limit=1)[0][0] == 5_004
    index.settle()
    assert index.graph_size == 2_700
    assert len(index) == 2_700
    assert index.search(more[3], limit=1)[0][0] == 5_004


def test_replacing_a_key_of_the_graph_leaves_only_the_new_row() -> None:
    """The old row stays in the graph as a dead one and is never returned."""
    index = filled()
    old = rows(COUNT)[0]
    new = -old
    index.upsert(keys_up_to(1), new[np.newaxis])
    assert index.search(new, limit=1) == [(1, 1.0)]
    assert 1 not in {key for key, _ in index.search(old, limit=5)}
    assert len(index) == COUNT


def test_windows_of_a_key_stay_one_answer_in_the_graph() -> None:
    """Long texts have many rows; each key takes one place."""
    index = LayeredVectorIndex(DIM, graph_from=300, fresh_limit=100)
    keys = np.repeat(keys_up_to(400), 5)
    embeddings = rows(2_000)
    index.upsert(keys, embeddings)
    index.settle()
    assert index.graph_size == 400
    found = index.search(embeddings[777], limit=300)
    assert len(found) == len({key for key, _ in found}) == 300
    assert found[0][0] == keys[777]


def test_changes_while_a_graph_is_built_are_kept() -> None:
    """What is removed or replaced meanwhile must not come out of the new graph."""
    index = LayeredVectorIndex(DIM, graph_from=1_000, fresh_limit=10_000)
    embeddings = rows(COUNT)
    index.upsert(keys_up_to(COUNT), embeddings)
    index.remove(keys_up_to(10))
    index.upsert(np.array([11], np.int64), -embeddings[10:11])
    index.upsert(np.array([9_000], np.int64), embeddings[:1])
    index.settle()
    assert index.search(embeddings[0], limit=1)[0][0] == 9_000
    [(key, cosine)] = index.search(-embeddings[10], limit=1)
    assert (key, round(cosine, 3)) == (11, 1.0)
    assert index.keys().tolist() == [*range(11, COUNT + 1), 9_000]


def test_searches_beside_building_and_moving_are_always_whole() -> None:
    """Readers see every key at every moment: while the graph is built, put in place, and grows."""
    index = LayeredVectorIndex(DIM, graph_from=2_000, fresh_limit=200)
    embeddings = rows(COUNT)
    index.upsert(keys_up_to(1_900), embeddings[:1_900])
    stop, problems = threading.Event(), []

    def search() -> None:
        while not stop.is_set():
            if index.search(embeddings[5], limit=1)[0][0] != 6:
                problems.append("a stored key was not found")
            if len({key for key, _ in index.search(embeddings[5], limit=50)}) != 50:
                problems.append("a key came twice")

    readers = [threading.Thread(target=search) for _ in range(2)]
    for reader in readers:
        reader.start()
    for start in range(1_900, COUNT, 100):
        end = min(start + 100, COUNT)
        index.upsert(np.arange(start + 1, end + 1, dtype=np.int64), embeddings[start:end])
    index.settle()
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert len(index) == COUNT


def test_graph_survives_a_restart(tmp_path: Path) -> None:
    """The same answers come from the files, dead rows stay dead, and the rest comes from both segments."""
    index = filled()
    index.remove(keys_up_to(7))
    index.upsert(np.array([9_999], np.int64), rows(1))
    FaissSnapshots(tmp_path).save(index, MODEL)
    loaded = FaissSnapshots(tmp_path).load(MODEL, DIM).index
    assert isinstance(loaded, LayeredVectorIndex)
    assert loaded.graph_size == COUNT - 7
    assert loaded.keys().tolist() == index.keys().tolist()
    for query in rows(10, seed=3):
        assert loaded.search(query, limit=20) == index.search(query, limit=20)


def test_removed_vectors_are_in_no_file(tmp_path: Path) -> None:
    """A vector tells much of its text: after a purge it must not be on disk, not even in a dead row."""
    index = filled()
    secret = rows(COUNT)[0].astype(np.float16).tobytes()
    FaissSnapshots(tmp_path).save(index, MODEL)
    assert secret in (tmp_path / "vectors.graph").read_bytes()
    index.remove(keys_up_to(1))
    snapshots = FaissSnapshots(tmp_path)
    snapshots.discard()
    assert list(tmp_path.iterdir()) == []
    snapshots.save(index, MODEL)
    assert secret not in (tmp_path / "vectors.graph").read_bytes()


def test_small_growth_does_not_rewrite_the_graph(tmp_path: Path) -> None:
    """It is a gigabyte at a million rows; what it lacks is brought back from the store."""
    index, snapshots = filled(), FaissSnapshots(tmp_path)
    snapshots.save(index, MODEL)
    before = (tmp_path / "vectors.graph").stat().st_mtime_ns
    index.upsert(np.array([9_999], np.int64), rows(1))
    snapshots.save(index, MODEL)
    assert (tmp_path / "vectors.graph").stat().st_mtime_ns == before


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped bit": lambda folder: _flip(folder / "vectors.graph"),
    "flipped bit in the manifest": lambda folder: _flip(folder / "vectors.graph.manifest"),
    "cut short": lambda folder: (folder / "vectors.graph").write_bytes(b"x"),
    "no manifest": lambda folder: (folder / "vectors.graph.manifest").unlink(),
    "no graph": lambda folder: (folder / "vectors.graph").unlink(),
    "empty manifest": lambda folder: (folder / "vectors.graph.manifest").write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_graph_in_doubt_is_refused(tmp_path: Path, damage: str) -> None:
    """FAISS itself takes flipped bits without complaint (T-03); what is lost comes back from the store."""
    FaissSnapshots(tmp_path).save(filled(2_000), MODEL)
    assert load_graph(tmp_path / "vectors.graph", fingerprint_id=MODEL, dim=DIM) is not None
    assert load_graph(tmp_path / "vectors.graph", fingerprint_id="other@1", dim=DIM) is None
    DAMAGES[damage](tmp_path)
    assert load_graph(tmp_path / "vectors.graph", fingerprint_id=MODEL, dim=DIM) is None


ENDING_WHILE_BUILDING = """
import numpy as np
from sidecar.adapters.faiss.layered import LayeredVectorIndex
rows = np.random.default_rng(0).standard_normal((30_000, 64)).astype(np.float32)
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
index = LayeredVectorIndex(64)
index.upsert(np.arange(30_000), rows)
print(index.graph_size)
"""


def test_process_ends_well_while_a_graph_is_built() -> None:
    """A thread inside FAISS when the interpreter ends would abort the process, which looks like a crash."""
    run = subprocess.run(
        [sys.executable, "-c", ENDING_WHILE_BUILDING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "0\n", "")
