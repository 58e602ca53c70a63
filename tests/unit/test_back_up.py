"""Backups: whole, checked, private, and never in the place of somebody else's file."""

import asyncio
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.errors import InvalidInputError, StorageCorruptError, StorageError, StorageFullError
from tests.store_builders import ALL, OWNER, SetClock, new_memory


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    (tmp_path / "data").mkdir()
    opened = SqliteStore.open(tmp_path / "data" / "m.db", clock=SetClock())
    yield opened
    await opened.close()


async def test_backup_is_a_whole_database_made_while_others_write(store: SqliteStore, tmp_path: Path) -> None:
    """It opens as a store of its own with everything that was acknowledged before it began."""
    for number in range(50):
        await store.add(new_memory(f"memory {number}"))
    doomed = (await store.add(new_memory("swordfish"))).memory_id
    await store.forget(OWNER, [doomed], is_forced=False, is_purge=True)
    target = tmp_path / "copy.db"
    writes = asyncio.gather(*(store.add(new_memory(f"meanwhile {number}")) for number in range(50)))
    backup = await store.back_up(target)
    await writes
    assert backup.size_bytes == target.stat().st_size > 0
    assert 50 <= backup.memory_count <= 100
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "data"]
    assert b"swordfish" not in target.read_bytes()
    copy = SqliteStore.open(target, clock=SetClock())
    assert (await copy.count(ALL)).total == backup.memory_count
    assert await copy.check_integrity() == ()
    await copy.add(new_memory("the copy can be written"))
    await copy.close()


@pytest.mark.parametrize("name", ["copy.db", "link.db", "folder"])
async def test_existing_files_are_never_replaced(store: SqliteStore, tmp_path: Path, name: str) -> None:
    """Neither a file, nor what a link points to, nor a folder."""
    (tmp_path / "copy.db").write_text("precious")
    (tmp_path / "link.db").symlink_to(tmp_path / "copy.db")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInputError, match=name):
        await store.back_up(tmp_path / name)
    assert (tmp_path / "copy.db").read_text() == "precious"


async def test_file_in_the_way_of_the_unfinished_copy_is_left_alone(store: SqliteStore, tmp_path: Path) -> None:
    """The name it is written under may be somebody's too."""
    (tmp_path / "copy.db.partial").write_text("precious")
    with pytest.raises(InvalidInputError, match="partial"):
        await store.back_up(tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["copy.db.partial"]
    assert (tmp_path / "copy.db.partial").read_text() == "precious"


@pytest.mark.parametrize("path", ["copy.db", "missing/copy.db"])
async def test_path_must_be_absolute_and_in_a_folder(store: SqliteStore, tmp_path: Path, path: str) -> None:
    """The sidecar's own working directory means nothing to who calls."""
    asked = Path(path) if path == "copy.db" else tmp_path / path
    with pytest.raises(InvalidInputError, match="path"):
        await store.back_up(asked)


async def test_damaged_database_gives_no_backup(store: SqliteStore, tmp_path: Path) -> None:
    """A copy that passes for a backup and is none is worse than none."""
    for number in range(40):
        await store.add(new_memory(f"memory {number} " + "x" * 2_000))
    await store.close()
    path = tmp_path / "data" / "m.db"
    content = bytearray(path.read_bytes())
    half = len(content) // 2 // 4096 * 4096
    content[half : half + 8 * 4096] = b"\xff" * (8 * 4096)
    path.write_bytes(content)
    # Which pages are read at opening is no matter of this test: either of the two finds the damage.
    with pytest.raises(StorageError) as caught:
        await _open_and_back_up(path, tmp_path / "copy.db")
    assert isinstance(caught.value, StorageCorruptError) or "not sound" in caught.value.message
    assert [file.name for file in tmp_path.iterdir()] == ["data"]


async def _open_and_back_up(path: Path, copy: Path) -> None:
    damaged = SqliteStore.open(path, clock=SetClock())
    try:
        await damaged.back_up(copy)
    finally:
        await damaged.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_full_disk_is_told_and_no_part_is_left(store: SqliteStore, small_disk: Path) -> None:
    """The database lies elsewhere and goes on."""
    for number in range(60):
        await store.add(new_memory(f"memory {number} " + "y" * 30_000))
    with pytest.raises(StorageFullError, match="disk"):
        await store.back_up(small_disk / "copy.db")
    assert list(small_disk.iterdir()) == []
    await store.add(new_memory("goes on"))
    assert (await store.health()).problems == ()
