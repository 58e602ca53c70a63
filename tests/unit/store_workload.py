"""Programs that a test starts, kills and starves: they print each id once it was acknowledged, one a line."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.domain.ids import memory_id
from sidecar.domain.store_values import NewMemory
from sidecar.errors import StorageError
from tests.store_builders import OWNER, SetClock, new_memory


async def write_for_ever(path: Path, name: str) -> None:
    """Add memories from four callers, forget some and purge some, until killed."""
    store = SqliteStore.open(path, clock=SetClock())

    async def caller(number: int) -> None:
        count = 0
        while True:
            count += 1
            outcome = await store.add(unique_memory(f"{name} caller{number} memory{count}"))
            tell(f"added {outcome.memory_id}")
            if count % 7 == 0:
                is_purge = count % 2 == 0
                tell(f"{'purging' if is_purge else 'forgetting'} {outcome.memory_id}")
                await store.forget(OWNER, [outcome.memory_id], is_forced=False, is_purge=is_purge)
                tell(f"{'purged' if is_purge else 'forgotten'} {outcome.memory_id}")

    await asyncio.gather(*(caller(number) for number in range(4)))


async def write_through_failures(path: Path, count: int) -> None:
    """Add memories one after another; tell of each whether it was stored or refused, and at last how the store is."""
    store = SqliteStore.open(path, clock=SetClock())
    for number in range(count):
        try:
            outcome = await store.add(unique_memory(f"memory{number} {'x' * 2_000}"))
            tell(f"added {outcome.memory_id}")
        except StorageError as error:
            tell(f"refused {error.reason}")
    health = await store.health()
    tell(f"health {' '.join(health.problems) or 'fine'}")
    await store.close()


def unique_memory(content: str) -> NewMemory:
    """Return a memory whose id no other process makes."""
    new = new_memory(content)
    return replace(new, memory=replace(new.memory, id=memory_id(0, os.urandom(10))))


def tell(line: str) -> None:
    """Write a line in one piece, past any buffer: a line that was begun was acknowledged."""
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    program, database, argument = sys.argv[1:]
    if program == "for-ever":
        asyncio.run(write_for_ever(Path(database), argument))
    else:
        asyncio.run(write_through_failures(Path(database), int(argument)))
