"""Meaning: purged vectors are gone whenever the purge comes, damage costs time only, and a stop waits for no model."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import numpy as np
import pytest

from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.snapshots import FaissSnapshots
from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.errors import EmbedderUnavailableError, StorageError
from sidecar.ports import Embedder, Embedding, Keys, MemoryStore, VectorIndex
from sidecar.testing.hashing_embedder import HashingEmbedder
from sidecar.use_cases.embed_memories import EmbedMemories, EmbedPolicy
from sidecar.use_cases.index_upkeep import IndexSnapshots, LoadedIndex
from sidecar.use_cases.semantic_index import SemanticIndex, SemanticState
from tests.store_builders import ALL, OWNER, SetClock, Store, new_memory
from tests.unit.fake_parts import MoodyEmbedder, semantic_index

MODEL = HashingEmbedder(dim=64).fingerprint
DOOMED, KEPT = "a doomed text about zebras", "a kept text about quaggas"


class Gate:
    """Holds up a worker thread until it is opened."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()

    def pass_through(self) -> None:
        self._reached.set()
        assert self._opened.wait(60)

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, 60)

    def open(self) -> None:
        self._opened.set()


class HeldSnapshots:
    """Real snapshots that are held up while saving or loading."""

    def __init__(self, folder: Path, *, saving: Gate | None = None, loading: Gate | None = None) -> None:
        self._inner = FaissSnapshots(folder)
        self._saving = saving
        self._loading = loading

    def load(self, model_id: str, dim: int) -> LoadedIndex:
        loaded = self._inner.load(model_id, dim)
        if self._loading is not None:
            self._loading.pass_through()
        return loaded

    def save(self, index: VectorIndex, model_id: str) -> None:
        if self._saving is not None:
            self._saving.pass_through()
        self._inner.save(index, model_id)

    def discard(self) -> None:
        self._inner.discard()


class HeldStore(InMemoryStore):
    """Holds up the answer to one kind of read, or refuses that of the keys."""

    def __init__(self) -> None:
        super().__init__(clock=SetClock())
        self.held_read = ""
        self.is_read = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.refusals = 0

    async def embeddings(self, model_id: str, keys: Sequence[int]) -> list[tuple[int, Embedding]]:
        rows = await super().embeddings(model_id, keys)
        await self._hold("embeddings")
        return rows

    async def embedded_keys(self, model_id: str) -> Keys:
        if self.refusals:
            self.refusals -= 1
            raise StorageError("the disk refuses")
        keys = await super().embedded_keys(model_id)
        await self._hold("embedded_keys")
        return keys

    async def _hold(self, read: str) -> None:
        if read == self.held_read:
            self.is_read.set()
            await self.may_answer.wait()


def index_over(
    store: MemoryStore, snapshots: IndexSnapshots | None = None, embedder: Embedder | None = None
) -> SemanticIndex:
    """Return an index of FAISS over a store, not loaded yet."""
    model = embedder or HashingEmbedder(dim=64)
    return semantic_index(store, model, snapshots=snapshots, new_index=FaissVectorIndex)


async def filled(store: Store, snapshots: IndexSnapshots | None = None) -> dict[str, int]:
    """Store both texts with their vectors, save the index, and return the keys."""
    semantic = index_over(store, snapshots)
    await semantic.load()
    keys = {}
    for content in (DOOMED, KEPT):
        keys[content] = (await store.add(new_memory(content))).changed[0].key
    await embed_all(store, semantic)
    await semantic.save()
    stop(semantic)
    return keys


async def embed_all(store: MemoryStore, semantic: SemanticIndex) -> None:
    """Work off the queue."""
    embedding = EmbedMemories(store=store, semantic=semantic, clock=SetClock(), policy=EmbedPolicy(settle_s=0.0))
    worker = asyncio.create_task(embedding.run())
    async with asyncio.timeout(20):
        while not await embedding.all_indexed():
            await asyncio.sleep(0.005)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def purge_from_store(store: Store, key: int) -> None:
    """Remove a memory from the store alone."""
    (memory,) = await store.fetch([key], ALL)
    await store.forget(OWNER, [memory.id], is_forced=False, is_purge=True, request=None)


def stop(semantic: SemanticIndex) -> None:
    """End it as the sidecar does."""
    semantic.abort()
    semantic.close()


def vector_bytes_in(folder: Path, content: str) -> list[str]:
    """Return the names of files that hold a text's vector, as the index and as the store keep it."""
    row = HashingEmbedder(dim=64).embed_query(content)
    needles = (row.tobytes(), row.astype(np.float16).tobytes())
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if any(needle in path.read_bytes() for needle in needles)]


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore(clock=SetClock())


async def test_save_that_runs_does_not_write_a_purged_row_back(store: InMemoryStore, tmp_path: Path) -> None:
    """The rows may have been copied already: the file goes after it was written, not before."""
    keys = await filled(store)
    saving = Gate()
    semantic = index_over(store, HeldSnapshots(tmp_path, saving=saving))
    await semantic.load()
    save = asyncio.create_task(semantic.save())
    await saving.reached()
    purge = asyncio.create_task(semantic.purge([keys[DOOMED]]))
    # Whatever the purge can do while the save runs, it does now.
    await asyncio.to_thread(lambda: None)
    saving.open()
    await asyncio.gather(save, purge)
    assert vector_bytes_in(tmp_path, DOOMED) == []
    await semantic.save()
    assert vector_bytes_in(tmp_path, DOOMED) == []
    assert vector_bytes_in(tmp_path, KEPT) == ["vectors.snapshot"]
    stop(semantic)


async def test_purge_while_the_saved_index_is_read_is_not_missed(store: InMemoryStore, tmp_path: Path) -> None:
    """There is no index yet from which it could be dropped."""
    keys = await filled(store, FaissSnapshots(tmp_path))
    assert vector_bytes_in(tmp_path, DOOMED)
    loading = Gate()
    semantic = index_over(store, HeldSnapshots(tmp_path, loading=loading))
    load = asyncio.create_task(semantic.load())
    await loading.reached()
    await purge_from_store(store, keys[DOOMED])
    purge = asyncio.create_task(semantic.purge([keys[DOOMED]]))
    loading.open()
    await asyncio.gather(load, purge)
    assert not await semantic.holds(keys[DOOMED])
    assert await semantic.holds(keys[KEPT])
    await semantic.save()
    stop(semantic)
    assert vector_bytes_in(tmp_path, DOOMED) == []


@pytest.mark.parametrize(
    ("is_saved", "read"), [(True, "embedded_keys"), (False, "embedded_keys"), (False, "embeddings")]
)
async def test_purge_while_the_index_is_brought_in_line_is_not_missed(
    tmp_path: Path, is_saved: bool, read: str
) -> None:
    """What was read of the store before the purge, keys or vectors, must not bring a row in, or keep it, after it."""
    store = HeldStore()
    keys = await filled(store, FaissSnapshots(tmp_path) if is_saved else None)
    store.held_read = read
    semantic = index_over(store, FaissSnapshots(tmp_path))
    load = asyncio.create_task(semantic.load())
    await store.is_read.wait()
    await purge_from_store(store, keys[DOOMED])
    await semantic.purge([keys[DOOMED]])
    store.may_answer.set()
    await load
    assert not await semantic.holds(keys[DOOMED])
    assert semantic.status.index_size == 1
    stop(semantic)
    assert vector_bytes_in(tmp_path, DOOMED) == []


async def test_row_purged_just_before_a_kill_leaves_the_disk_at_the_next_start(
    store: InMemoryStore, tmp_path: Path
) -> None:
    """The store had done its part, the saved index was not reached any more."""
    keys = await filled(store, FaissSnapshots(tmp_path))
    (tmp_path / "vectors.snapshot.partial").write_bytes((tmp_path / "vectors.snapshot").read_bytes())
    await purge_from_store(store, keys[DOOMED])
    semantic = index_over(store, FaissSnapshots(tmp_path))
    await semantic.load()
    assert vector_bytes_in(tmp_path, DOOMED) == []
    assert semantic.status.index_size == 1
    stop(semantic)


async def test_damaged_vector_is_made_anew(tmp_path: Path) -> None:
    """A zeroed row costs itself a moment, and none of the others anything; it is counted."""
    store = SqliteStore.open(tmp_path / "memories.db", clock=SetClock())
    keys = await filled(store)
    await store.close()
    connection = apsw.Connection(str(tmp_path / "memories.db"))
    connection.execute("UPDATE embeddings SET vector = zeroblob(length(vector)) WHERE key = ?", (keys[DOOMED],))
    connection.close()
    store = SqliteStore.open(tmp_path / "memories.db", clock=SetClock())
    semantic = index_over(store)
    await semantic.load()
    assert semantic.status.state is SemanticState.READY
    assert semantic.status.counters["damaged_vectors"] == 1
    assert await semantic.holds(keys[KEPT])
    assert (await store.job_counts()).pending == 1
    await embed_all(store, semantic)
    assert await semantic.holds(keys[DOOMED])
    stop(semantic)
    await store.close()


async def test_load_may_be_tried_again() -> None:
    """A disk that refuses for a moment is neither told as ready nor given up, and the model is loaded once."""
    store = HeldStore()
    await filled(store)
    store.refusals = 1
    loads: list[Embedder] = []

    def load_embedder() -> Embedder:
        loads.append(HashingEmbedder(dim=64))
        return loads[-1]

    semantic = of_loader(store, load_embedder)
    with pytest.raises(StorageError):
        await semantic.load()
    assert not semantic.loaded.is_set()
    with pytest.raises(EmbedderUnavailableError, match="still being loaded"):
        await semantic.nearest("zebras", limit=1, allowed=None)
    await semantic.load()
    assert semantic.loaded.is_set()
    assert semantic.status.index_size == 2
    assert len(loads) == 1
    stop(semantic)


async def test_disk_that_refuses_the_saved_index_costs_nothing_else(store: InMemoryStore, tmp_path: Path) -> None:
    """It is counted; a purge tells, since it could not keep its promise."""
    keys = await filled(store)
    (tmp_path / "index").write_text("a file where the folder should be")
    semantic = index_over(store, FaissSnapshots(tmp_path / "index"))
    await semantic.load()
    await semantic.save()
    assert semantic.status.counters["index_save_failures"] == 1
    with pytest.raises(StorageError):
        await semantic.purge([keys[DOOMED]])
    assert not await semantic.holds(keys[DOOMED])
    assert await semantic.holds(keys[KEPT])
    stop(semantic)


async def test_stop_waits_for_no_model(store: InMemoryStore) -> None:
    """Closing returns while the model is still being loaded, and what comes out of that is closed."""
    gate = Gate()
    model = MoodyEmbedder()

    def load_embedder() -> Embedder:
        gate.pass_through()
        return model

    semantic = of_loader(store, load_embedder)
    load = asyncio.create_task(semantic.load())
    await gate.reached()
    load.cancel()
    await asyncio.gather(load, return_exceptions=True)
    # Were it to wait, the gate would stay closed and time out.
    await asyncio.to_thread(stop, semantic)
    assert not model.is_down
    gate.open()
    async with asyncio.timeout(20):
        while not model.is_down:
            await asyncio.sleep(0.005)


async def test_stop_calls_off_a_load_that_takes_long(store: InMemoryStore) -> None:
    """Such as that of a child process, which is ended."""
    gate = Gate()

    def load_embedder() -> Embedder:
        gate.pass_through()
        raise EmbedderUnavailableError("it was closed")

    semantic = of_loader(store, load_embedder, abort_load=gate.open)
    load = asyncio.create_task(semantic.load())
    await gate.reached()
    semantic.abort()
    await load
    assert semantic.status.state is SemanticState.OFF
    semantic.close()


def of_loader(
    store: MemoryStore, load_embedder: Callable[[], Embedder], *, abort_load: Callable[[], None] | None = None
) -> SemanticIndex:
    """Return an index whose model is loaded in this way."""
    return SemanticIndex(
        store=store,
        load_embedder=load_embedder,
        abort_load=abort_load,
        new_index=FaissVectorIndex,
        snapshots=None,
        cache_size=8,
    )
