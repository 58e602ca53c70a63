"""What was acknowledged survives the sidecar's sudden death, and the index agrees with the store afterwards."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from sidecar.adapters.embedders.minilm_onnx import DIM
from sidecar.adapters.faiss.flat import IndexRows
from sidecar.adapters.faiss.snapshot import load_snapshot
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.system_clock import SystemClock
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.client import DataFolder, Sidecar, stop
from sidecar.errors import SidecarError, UnavailableError
from tests.e2e.running import CONTEXT, running_sidecar, wait_until_embedded, write_settings

WRITERS = 3
EVERYWHERE = pb.MemoryFilter(namespace="*")
CYCLES = 100
_PART_BYTES = 64


class Writer(threading.Thread):
    """Remembers as fast as it can until the sidecar is gone, and forgets every fifth; keeps what was acknowledged."""

    def __init__(self, home: Path, cycle: int, number: int) -> None:
        super().__init__()
        self._home = home
        self._label = f"{cycle}/{number}"
        self.acknowledged: dict[str, str] = {}
        self.forgotten: list[str] = []
        self.first = threading.Event()

    def run(self) -> None:
        try:
            with Sidecar.connect(self._home, start=False, context=CONTEXT) as sidecar:
                self._write(sidecar)
        except SidecarError:
            return
        finally:
            self.first.set()

    def _write(self, sidecar: Sidecar) -> None:
        endpoint = sidecar.endpoint
        count = 0
        while sidecar.endpoint == endpoint:
            content = f"Fact {self._label}/{count} about the build."
            stored = sidecar.remember(pb.RememberRequest(content=content), deadline_s=5)
            if count % 5 == 4:
                sidecar.forget_memories(pb.ForgetMemoriesRequest(memory_id=stored.memory_id), deadline_s=5)
                self.forgotten.append(stored.memory_id)
            else:
                self.acknowledged[stored.memory_id] = content
            count += 1
            self.first.set()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    write_settings(tmp_path / "home", index_save_after_writes=50)
    yield tmp_path / "home"
    with contextlib.suppress(UnavailableError):
        stop(tmp_path / "home", force=True)


@pytest.mark.timeout(400)
async def test_a_hundred_kills_lose_nothing(home: Path) -> None:
    """Killed while several clients write and forget: all acknowledged there, none forgotten back, index = database."""
    acknowledged: dict[str, str] = {}
    forgotten: set[str] = set()
    for cycle in range(CYCLES):
        with Sidecar.connect(home, context=CONTEXT) as sidecar:
            pid = sidecar.get_status(admin.GetStatusRequest()).pid
        writers = [Writer(home, cycle, number) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.first.wait(20)
        os.kill(pid, signal.SIGKILL)
        for writer in writers:
            writer.join(20)
            assert writer.acknowledged or writer.forgotten, "a writer got nothing acknowledged before the kill"
            acknowledged |= writer.acknowledged
            forgotten |= set(writer.forgotten)
    with Sidecar.connect(home, context=CONTEXT) as sidecar:
        found = _everything(sidecar)
        wait_until_embedded(sidecar)
        status = sidecar.get_status(admin.GetStatusRequest())
        total = sum(_counts(sidecar).by_state.values())
    assert {memory_id: found.get(memory_id) for memory_id in acknowledged} == acknowledged
    assert not forgotten & set(found)
    assert status.index.size == total
    assert list(status.problems) == []
    stop(home)
    memories, vectors, indexed = _keys(home)
    assert memories == vectors == indexed
    store = SqliteStore.open(DataFolder.at(home).database_path, clock=SystemClock())
    try:
        assert await store.check_integrity() == ()
    finally:
        await store.close()


def _everything(sidecar: Sidecar) -> dict[str, str]:
    found: dict[str, str] = {}
    token = ""
    while True:
        page = sidecar.list_memories(pb.ListMemoriesRequest(filter=EVERYWHERE, page_size=1000, page_token=token))
        found |= {memory.id: memory.content for memory in page.memories}
        token = page.next_page_token
        if not token:
            return found


def _counts(sidecar: Sidecar) -> pb.CountMemoriesResponse:
    request = pb.CountMemoriesRequest(filter=pb.MemoryFilter(namespace="*", states=memory_pb2.MemoryState.values()[1:]))
    return sidecar.count_memories(request)


def test_restart_keeps_answers(tmp_path: Path) -> None:
    """The same question has the same answer after an orderly stop, with the index loaded instead of rebuilt."""
    home = tmp_path / "home"
    query = pb.RecallRequest(query="who owns the build", internal=True)
    with running_sidecar(home) as sidecar:
        for number in range(20):
            sidecar.remember(pb.RememberRequest(content=f"Team {number} owns build step {number}."))
        wait_until_embedded(sidecar)
        before = [r.memory.id for r in sidecar.recall(query).memories]
    with running_sidecar(home) as sidecar:
        wait_until_meaning(sidecar)
        assert [r.memory.id for r in sidecar.recall(query).memories] == before
        assert sidecar.get_status(admin.GetStatusRequest()).index.origin == "loaded"


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "gone"])
def test_damaged_index_is_rebuilt(tmp_path: Path, damage: str) -> None:
    """A bad index file costs time, never an answer, and is told of."""
    home = tmp_path / "home"
    query = pb.RecallRequest(query="which port does the broker use", internal=True)
    with running_sidecar(home) as sidecar:
        for number in range(20):
            sidecar.remember(pb.RememberRequest(content=f"Broker {number} listens on port {4000 + number}."))
        wait_until_embedded(sidecar)
        before = [r.memory.id for r in sidecar.recall(query).memories]
    (snapshot,) = DataFolder.at(home).index_folder.glob("*")
    _damage(snapshot, damage)
    with running_sidecar(home) as sidecar:
        wait_until_meaning(sidecar)
        assert [r.memory.id for r in sidecar.recall(query).memories] == before
        index = sidecar.get_status(admin.GetStatusRequest()).index
        assert (index.origin, bool(index.rebuild_reason)) == ("rebuilt", True)


def test_purge_leaves_no_bytes(tmp_path: Path) -> None:
    """Neither of its text nor of its vectors, in the database, its journal, the index or the logs."""
    home = tmp_path / "home"
    secret = "zanzibarquokka"
    with running_sidecar(home, index_save_after_writes=1) as sidecar:
        kept = sidecar.remember(pb.RememberRequest(content="The printer is on the second floor."))
        stored = sidecar.remember(pb.RememberRequest(content=f"The launch name is {secret}."))
        wait_until_embedded(sidecar)
        written = [secret.encode(), *_vectors(home, stored.memory_id)]
        assert all(_holding(home, [needle]) for needle in written)
        doomed = [*written, secret.encode("utf-16-le")]
        sidecar.forget_memories(pb.ForgetMemoriesRequest(memory_id=stored.memory_id, purge=True))
        assert _holding(home, doomed) == []
        assert sidecar.get_status(admin.GetStatusRequest()).index.size == 1
    assert _holding(home, doomed) == []
    with running_sidecar(home) as sidecar:
        assert list(_everything(sidecar)) == [kept.memory_id]
        wait_until_meaning(sidecar)
        assert sidecar.get_status(admin.GetStatusRequest()).index.size == 1
    assert _holding(home, doomed) == []


def wait_until_meaning(sidecar: Sidecar) -> None:
    """Return when meaning takes part in recalls."""
    for _ in range(600):
        if sidecar.get_status(admin.GetStatusRequest()).embedder.state == admin.PART_STATE_READY:
            return
        threading.Event().wait(0.05)
    raise AssertionError("the model was not loaded within 30 s")


def _damage(path: Path, damage: str) -> None:
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
        return
    middle = len(content) // 2
    damaged = {
        "empty": b"",
        "cut": content[:middle],
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }
    path.write_bytes(damaged[damage])


def _holding(home: Path, needles: list[bytes]) -> list[str]:
    """Return the names of the files that hold any of these bytes."""
    files = (path for path in home.rglob("*") if path.is_file())
    return [path.name for path in files if any(needle in path.read_bytes() for needle in needles)]


def _vectors(home: Path, memory_id: str) -> list[bytes]:
    """Return parts of a memory's vector as the database keeps it, float16, and as the saved index does, float32."""
    database = apsw.Connection(str(DataFolder.at(home).database_path), flags=apsw.SQLITE_OPEN_READONLY)
    ((key, stored),) = database.execute(
        "SELECT m.key, e.vector FROM embeddings e JOIN memories m ON m.key = e.key WHERE m.id = ?", (memory_id,)
    )
    database.close()
    rows = _saved_rows(home, key)
    indexed = rows.embeddings[rows.keys == key].tobytes()
    assert len(indexed) == 2 * len(stored)
    # In parts, since a page of the database may end within the vector.
    return [vector[start : start + _PART_BYTES] for vector in (stored, indexed) for start in range(0, 512, _PART_BYTES)]


def _saved_rows(home: Path, key: int) -> IndexRows:
    """Return the rows of the saved index once it holds this key; it is saved when nothing is left to embed."""
    (fingerprint_id,) = _models(home)
    for _ in range(600):
        for path in DataFolder.at(home).index_folder.glob("*.snapshot"):
            index = load_snapshot(path, fingerprint_id=fingerprint_id, dim=DIM).index
            if index is not None and key in set(index.keys().tolist()):
                return index.export_rows()
        threading.Event().wait(0.05)
    raise AssertionError("the index was not saved within 30 s")


def _models(home: Path) -> list[str]:
    """Return the fingerprints of the models whose vectors are stored."""
    database = apsw.Connection(str(DataFolder.at(home).database_path), flags=apsw.SQLITE_OPEN_READONLY)
    models = [row[0] for row in database.execute("SELECT model_id FROM models")]
    database.close()
    return models


def _keys(home: Path) -> tuple[set[int], set[int], set[int]]:
    """Return the keys of the memories, of the stored vectors and of the saved index, after a stop."""
    database = apsw.Connection(str(DataFolder.at(home).database_path), flags=apsw.SQLITE_OPEN_READONLY)
    memories = {row[0] for row in database.execute("SELECT key FROM memories")}
    vectors = {row[0] for row in database.execute("SELECT key FROM embeddings")}
    database.close()
    (path,) = DataFolder.at(home).index_folder.iterdir()
    (fingerprint_id,) = _models(home)
    index = load_snapshot(path, fingerprint_id=fingerprint_id, dim=DIM).index
    assert index is not None
    return memories, vectors, set(index.keys().tolist())
