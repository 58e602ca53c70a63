"""A snapshot of the vector index comes back whole or not at all."""

import hashlib
import json
import os
import resource
import stat
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.snapshot import SnapshotLoad, SnapshotRefusal, load_snapshot, save_snapshot
from sidecar.adapters.faiss.snapshots import FaissSnapshots
from sidecar.errors import StorageError, StorageFullError
from sidecar.ports import Embedding

DIM = 8
MODEL = "tiny@0123456789abcdef"
PREFIX = struct.Struct("<8sI32s")


def unit_rows(count: int, *, seed: int = 0) -> Embedding:
    rows = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def filled_index(count: int = 20, *, seed: int = 0) -> FaissVectorIndex:
    index = FaissVectorIndex(DIM)
    keys = np.arange(count, dtype=np.int64)
    index.upsert(np.concatenate((keys, keys[:3])), unit_rows(count + 3, seed=seed))
    return index


def load(path: Path) -> SnapshotLoad:
    return load_snapshot(path, fingerprint_id=MODEL, dim=DIM)


def assert_refused(path: Path, *reasons: SnapshotRefusal) -> None:
    loaded = load(path)
    assert loaded.index is None
    assert loaded.refusal in reasons


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.snapshot"
    save_snapshot(path, filled_index(), fingerprint_id=MODEL)
    return path


def test_saved_index_answers_as_before(saved: Path) -> None:
    """Keys, windows and answers are the same after a restart."""
    before, loaded = filled_index(), load(saved)
    assert loaded.refusal is None
    assert loaded.index is not None
    assert loaded.index.keys().tolist() == before.keys().tolist()
    for query in unit_rows(10, seed=9):
        assert loaded.index.search(query, limit=6) == before.search(query, limit=6)


def test_empty_index_is_kept_as_empty(tmp_path: Path) -> None:
    """An empty index is an answer too, and told apart from a missing file."""
    path = tmp_path / "vectors.snapshot"
    save_snapshot(path, FaissVectorIndex(DIM), fingerprint_id=MODEL)
    loaded = load(path)
    assert loaded.index is not None
    assert len(loaded.index) == 0


def test_file_is_for_its_owner_only_and_leaves_nothing_beside(saved: Path) -> None:
    """Embeddings tell much about a text, so nobody else may read them; the partial file is gone."""
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert [entry.name for entry in saved.parent.iterdir()] == [saved.name]


def test_left_over_partial_file_is_replaced(saved: Path) -> None:
    """A process killed while saving must not keep the next one from it, nor a link lead it elsewhere."""
    elsewhere = saved.with_name("elsewhere")
    elsewhere.write_bytes(b"untouched")
    saved.with_name(f"{saved.name}.partial").symlink_to(elsewhere)
    save_snapshot(saved, filled_index(), fingerprint_id=MODEL)
    assert elsewhere.read_bytes() == b"untouched"
    assert load(saved).refusal is None


def test_missing_file_is_told(tmp_path: Path) -> None:
    """The first start has no snapshot."""
    assert_refused(tmp_path / "none", SnapshotRefusal.MISSING)


def test_folder_link_and_fifo_are_unreadable(saved: Path) -> None:
    """Only a regular file of our own is read, and nothing makes loading hang."""
    link, fifo = saved.with_name("link"), saved.with_name("fifo")
    link.symlink_to(saved)
    os.mkfifo(fifo)
    for path in (link, fifo, saved.parent):
        assert_refused(path, SnapshotRefusal.UNREADABLE)


def test_other_model_and_dimension_are_refused(saved: Path) -> None:
    """Vectors of another model look the same and mean something else."""
    assert load_snapshot(saved, fingerprint_id="other@1", dim=DIM).refusal is SnapshotRefusal.OTHER_MODEL
    assert load_snapshot(saved, fingerprint_id=MODEL, dim=DIM + 1).refusal is SnapshotRefusal.OTHER_DIMENSION


def test_file_over_the_size_bound_is_not_read(saved: Path) -> None:
    """A giant file dropped in our place must not fill the memory."""
    loaded = load_snapshot(saved, fingerprint_id=MODEL, dim=DIM, max_bytes=saved.stat().st_size - 1)
    assert loaded.refusal is SnapshotRefusal.TOO_LARGE


def test_every_flipped_byte_is_refused(saved: Path) -> None:
    """FAISS's own format loads a flipped bit without complaint; ours must not, wherever it is (T-03)."""
    whole = saved.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 8)
        saved.write_bytes(damaged)
        assert_refused(saved, SnapshotRefusal.DAMAGED, SnapshotRefusal.UNKNOWN_FORMAT)


def test_every_truncation_is_refused(saved: Path) -> None:
    """A file cut at any byte, or with bytes added, is not served as a smaller index (B06)."""
    whole = saved.read_bytes()
    for length in range(len(whole)):
        saved.write_bytes(whole[:length])
        assert_refused(saved, SnapshotRefusal.DAMAGED)
    saved.write_bytes(whole + b"\x00")
    assert_refused(saved, SnapshotRefusal.DAMAGED)


def test_five_hundred_mutated_files_are_refused(saved: Path) -> None:
    """Bytes changed, moved, cut, doubled: never a crash, never an index (T18)."""
    rng = np.random.default_rng(2026)
    whole = np.frombuffer(saved.read_bytes(), np.uint8)
    for _ in range(500):
        start, end = sorted(rng.integers(0, len(whole) + 1, size=2).tolist())
        noise = rng.integers(0, 256, size=max(end - start, 1), dtype=np.uint8)
        mutated = (
            np.concatenate((whole[:start], noise, whole[end:])),
            np.concatenate((whole[:start], whole[end:], noise)),
            np.concatenate((whole[:end], whole[start:])),
            np.concatenate((whole[end:], whole[:end], noise)),
        )[int(rng.integers(4))]
        if np.array_equal(mutated, whole):
            continue
        saved.write_bytes(mutated.tobytes())
        assert load(saved).index is None


HOSTILE: dict[str, tuple[dict[str, object], bytes]] = {
    "huge count": ({"row_count": 2**60, "payload_bytes": 2**60 * (8 + 4 * DIM)}, b""),
    "negative count": ({"row_count": -1, "payload_bytes": -40}, b""),
    "count as text": ({"row_count": "1"}, b""),
    "count as float": ({"row_count": 1.0}, b""),
    "dimension missing": ({"dim": None}, b""),
    "unknown field": ({"code": "import os"}, b""),
    "NaN rows": ({}, struct.pack("<q", 1) + b"\x00\x00\xc0\x7f" * DIM),
    "negative key": ({}, struct.pack("<q", -1) + unit_rows(1).tobytes()),
    "zero row": ({}, struct.pack("<q", 1) + bytes(4 * DIM)),
}


@pytest.mark.parametrize("problem", HOSTILE)
def test_right_checksums_over_wrong_content_are_refused(tmp_path: Path, problem: str) -> None:
    """Whoever can write the file can also compute its checksums; the content is checked all the same."""
    changes, payload = HOSTILE[problem]
    manifest: dict[str, object] = {
        "fingerprint_id": MODEL,
        "dim": DIM,
        "row_count": 1,
        "payload_bytes": len(payload),
        "payload_blake2b": hashlib.blake2b(payload, digest_size=32).hexdigest(),
    }
    encoded = json.dumps(manifest | changes).encode()
    digest = hashlib.blake2b(encoded, digest_size=32).digest()
    path = tmp_path / "vectors.snapshot"
    path.write_bytes(PREFIX.pack(b"MSVEC\x00\x00\x01", len(encoded), digest) + encoded + payload)
    assert_refused(path, SnapshotRefusal.DAMAGED, SnapshotRefusal.UNKNOWN_FORMAT)


@pytest.mark.parametrize("manifest", [b"[]", b"null", b"{}", b"\xff", b"[" * 4000, b"1e999"])
def test_manifest_that_is_no_manifest_is_refused(tmp_path: Path, manifest: bytes) -> None:
    """Any JSON or none, with a right checksum: refused, not raised."""
    path = tmp_path / "vectors.snapshot"
    digest = hashlib.blake2b(manifest, digest_size=32).digest()
    path.write_bytes(PREFIX.pack(b"MSVEC\x00\x00\x01", len(manifest), digest) + manifest)
    assert_refused(path, SnapshotRefusal.UNKNOWN_FORMAT)


SAVE_WITH_A_FULL_DISK = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.unit.test_index_snapshot import MODEL, filled_index
from sidecar.adapters.faiss.snapshot import save_snapshot
from sidecar.errors import StorageFullError
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    save_snapshot(Path(sys.argv[1]), filled_index(500), fingerprint_id=MODEL)
except StorageFullError as error:
    print(error.reason)
"""


def test_full_disk_leaves_the_old_snapshot(saved: Path) -> None:
    """The new file did not fit: the caller is told, the old file is whole, the partial one is gone (T-05)."""
    before = saved.read_bytes()
    program = SAVE_WITH_A_FULL_DISK.format(root=str(Path(__file__).parents[2]))
    run = subprocess.run(
        [sys.executable, "-c", program, str(saved)], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout.strip() == StorageFullError.reason
    assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == [saved.name]
    assert load(saved).refusal is None


def test_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    """What the disk refuses comes as one of our errors, whichever step it refuses: nobody expects another."""
    (tmp_path / "index").write_text("in the way")
    snapshots = FaissSnapshots(tmp_path / "index")
    with pytest.raises(StorageError):
        snapshots.save(filled_index(), MODEL)
    with pytest.raises(StorageError):
        snapshots.discard()
    with pytest.raises(StorageError):
        save_snapshot(tmp_path / "no" / "parent" / "x", filled_index(), fingerprint_id=MODEL)


def test_nothing_of_a_killed_save_stays(tmp_path: Path) -> None:
    """Its partial file holds vectors too: the next start removes it, and so does a purge."""
    snapshots = FaissSnapshots(tmp_path)
    for clean in (lambda: snapshots.load(MODEL, DIM), snapshots.discard):
        (tmp_path / "vectors.snapshot.partial").write_bytes(b"vectors")
        clean()
        assert list(tmp_path.iterdir()) == []
    snapshots.save(filled_index(), MODEL)
    snapshots.discard()
    assert list(tmp_path.iterdir()) == []


def test_loading_a_damaged_file_takes_no_more_memory_than_the_file(tmp_path: Path) -> None:
    """A manifest that announces terabytes is refused before anything of that size is made."""
    path = tmp_path / "vectors.snapshot"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for count in (2**33, 2**40):
        manifest = {"fingerprint_id": MODEL, "dim": DIM, "row_count": count}
        encoded = json.dumps(manifest | {"payload_bytes": count * 40, "payload_blake2b": ""}).encode()
        digest = hashlib.blake2b(encoded, digest_size=32).digest()
        path.write_bytes(PREFIX.pack(b"MSVEC\x00\x00\x01", len(encoded), digest) + encoded)
        assert_refused(path, SnapshotRefusal.DAMAGED)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
