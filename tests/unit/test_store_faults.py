"""The store when it is killed, when power fails, when the disk is full or lies about syncing."""

import asyncio
import multiprocessing
import multiprocessing.process
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.adapters.sqlite.connection import open_writer
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.domain.memory import MemoryState
from sidecar.errors import StorageError
from tests.store_builders import ALL, OWNER, SetClock, new_memory
from tests.unit import store_workload
from tests.unit.recorded_disk import RecordingVfs, Step, disk_after

ROOT = Path(__file__).parents[2]
KILL_CYCLES = 30
CUT_POINTS = 60
WORDS = ("added", "purging", "purged")


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.unit.store_workload", *arguments]


def told(lines: list[str], what: str) -> set[str]:
    return {memory_id for line in lines for word, _, memory_id in [line.partition(" ")] if word == what}


async def states_of(path: Path) -> dict[str, MemoryState]:
    store = SqliteStore.open(path, clock=SetClock())
    try:
        assert await store.check_integrity() == ()
        catalog = await store.catalog()
        memories = await store.fetch([row.key for row in catalog], ALL)
        return {memory.id: memory.state for memory in memories}
    finally:
        await store.close()


def _write(path: Path, name: str, log: Path) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    import asyncio

    asyncio.run(store_workload.write_for_ever(path, name))


async def test_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """Killed at random moments, again and again on the same database: all acknowledged adds are there, purged ones
    are gone, forgotten ones stay forgotten, and the database is sound."""
    path, log = tmp_path / "m.db", tmp_path / "log"
    log.touch()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    chance = random.Random(1)
    for cycle in range(KILL_CYCLES):
        size = log.stat().st_size
        writer = context.Process(target=_write, args=(path, f"cycle{cycle}", log))
        writer.start()
        deadline = time.monotonic() + 30
        # Wait for its first acknowledgements, so that the kill hits writing, not starting.
        while log.stat().st_size < size + 2_000 and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.05)
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    lines = log.read_text().splitlines()
    states = await states_of(path)
    purging = told(lines, "purging")
    assert len(told(lines, "added")) > 10 * KILL_CYCLES
    assert told(lines, "added") - purging - set(states) == set()
    assert told(lines, "purged") & set(states) == set()
    assert {states[memory_id] for memory_id in told(lines, "forgotten")} == {MemoryState.FORGOTTEN}


async def test_power_failure_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """At any moment, with any part of what was not synced: every acknowledged memory is there, purged ones are not
    back, and the database is sound."""
    trace: list[Step] = []
    vfs = RecordingVfs(trace)
    try:
        store = SqliteStore.open(tmp_path / "m.db", clock=SetClock())
        for number in range(60):
            memory_id = (await store.add(new_memory(f"memory {number} " + "y" * 300 * (number % 5)))).memory_id
            trace.append(Step("added", memory_id))
            if number % 10 == 9:
                trace.append(Step("purging", memory_id))
                await store.forget(OWNER, [memory_id], is_forced=False, is_purge=True)
                trace.append(Step("purged", memory_id))
        await store.close()
    finally:
        vfs.unregister()
    chance = random.Random(2)
    for cut in sorted(chance.sample(range(len(trace)), CUT_POINTS)):
        folder = tmp_path / f"cut-{cut}"
        folder.mkdir()
        for name, content in disk_after(trace[:cut], chance).items():
            if content:
                (folder / name).write_bytes(content)
        said = {what: {step.name for step in trace[:cut] if step.what == what} for what in WORDS}
        found = set(await states_of(folder / "m.db"))
        assert said["added"] - said["purging"] - found == set(), f"lost after step {cut}"
        assert said["purged"] & found == set(), f"back after step {cut}"
        shutil.rmtree(folder)


async def test_statistics_that_cannot_be_built_are_told_and_hold_nobody_up(tmp_path: Path) -> None:
    """A fault in one row must not make recalls, or the end of the sidecar, wait for ever."""
    path = tmp_path / "m.db"
    store = SqliteStore.open(path, clock=SetClock())
    await store.add(new_memory("some words"))
    await store.close()
    connection = open_writer(path)
    connection.execute("UPDATE memory_words SET terms = x'00'")
    connection.close()
    store = SqliteStore.open(path, clock=SetClock())
    async with asyncio.timeout(30):
        with pytest.raises(StorageError, match="ValueError"):
            await store.word_query(["words"])
        await store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_full_disk_refuses_plainly_and_writing_resumes(small_disk: Path) -> None:
    """What was acknowledged is kept, reading goes on, and freed space is all it takes to go on."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (2 << 20))
    path = small_disk / "m.db"
    store = SqliteStore.open(path, clock=SetClock())
    acknowledged, refusals = [], []
    for number in range(200):
        try:
            outcome = await store.add(new_memory(f"memory {number} " + "z" * 30_000))
            acknowledged.append(outcome.memory_id)
        except Exception as error:
            refusals.append(error)
    assert {type(error).__name__ for error in refusals} == {"StorageFullError"}
    assert len(acknowledged) > 5
    assert any("no space left" in problem for problem in (await store.health()).problems)
    for memory_id in acknowledged:
        assert (await store.get(OWNER, memory_id)).id == memory_id
    ballast.unlink()
    late = await store.add(new_memory("after the space was freed"))
    assert not any("writes fail" in problem for problem in (await store.health()).problems)
    await store.close()
    assert set(await states_of(path)) == {*acknowledged, late.memory_id}


async def test_file_size_limit_is_told_as_no_space(tmp_path: Path) -> None:
    """A quota by any other name: the caller is told to free space, and what was acknowledged is kept."""
    path = tmp_path / "m.db"

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = subprocess.run(
        program("failures", str(path), "150"), cwd=ROOT, capture_output=True, text=True, check=True, preexec_fn=limit
    )
    lines = done.stdout.splitlines()
    assert told(lines, "refused") == {"STORAGE_FULL"}
    added = told(lines, "added")
    assert len(added) > 5
    assert set(await states_of(path)) == added


@pytest.mark.parametrize("call", [1, 13, 40])
async def test_failed_sync_is_never_acknowledged(tmp_path: Path, call: int) -> None:
    """The disk reports an error at one sync: that write is refused, the connection is made anew, and all that was
    acknowledged before and after is there."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace to make a sync fail")
    path = tmp_path / "m.db"
    await SqliteStore.open(path, clock=SetClock()).close()
    inject = ["strace", "-f", "-o", "/dev/null", "-e", f"inject=fdatasync,fsync:error=EIO:when={call}"]
    done = subprocess.run(
        [*inject, *program("failures", str(path), "60")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if "PTRACE" in done.stderr:
        pytest.skip("may not trace processes here")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line for line in lines if line.startswith("refused")] == ["refused STORAGE_FAILED"]
    assert lines[-1] == "health fine"
    found = set(await states_of(path))
    assert told(lines, "added") == found
