"""Checks ids that a caller names, and finds the memories of many ids at once."""

import asyncio
from collections.abc import Iterable

from sidecar.domain.memory import Memory
from sidecar.errors import InvalidInputError, MemoryNotFoundError
from sidecar.ports import MemoryStore


def require_id(memory_id: str, *, field_name: str = "memory_id") -> str:
    """Return the id if one is given; whether it is somebody's is for the store to say.

    Raises:
        InvalidInputError: If it is empty.
    """
    if not memory_id:
        raise InvalidInputError(field_name, memory_id, "the id of a memory, such as `remember` returns")
    return memory_id


async def memories_of(store: MemoryStore, owner: str, memory_ids: Iterable[str]) -> dict[str, Memory]:
    """Return those of these memories that are there, in the order of the ids; one purged meanwhile is left out."""
    wanted = tuple(dict.fromkeys(memory_ids))
    found = await asyncio.gather(*(_get(store, owner, memory_id) for memory_id in wanted))
    return {memory.id: memory for memory in found if memory is not None}


async def _get(store: MemoryStore, owner: str, memory_id: str) -> Memory | None:
    try:
        return await store.get(owner, memory_id)
    except MemoryNotFoundError:
        return None
