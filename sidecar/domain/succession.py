"""Decides which memories stand aside for which: the states that `supersedes` edges lead to. Pure rules over rows.

A memory is superseded while one that replaced it is there and not forgotten. So forgetting or purging a successor gives
its targets back, and restoring it takes their place again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from sidecar.domain.memory import Memory, MemoryState


class SuccessionRows(Protocol):
    """What the rules read and change, for one owner, within one transaction."""

    def memory(self, key: int) -> Memory:
        """Return a memory that is known to exist."""
        ...

    def successors(self, key: int) -> Sequence[Memory]:
        """Return the memories that have a `supersedes` edge to this one, the newest edge first."""
        ...

    def replaced(self, memory: Memory) -> Sequence[int]:
        """Return the keys of those that it has a `supersedes` edge to, or that name it as their successor."""
        ...

    def active_twin(self, memory: Memory) -> str:
        """Return the id of the active memory that says the same in the same namespace; empty for none."""
        ...

    def named_twin(self, key: int) -> str:
        """Return the id of the successor that a memory names, if that says the same and is not forgotten; else empty.

        A forgotten memory still names the one that it had.
        """
        ...

    def save_state(self, memory: Memory) -> None:
        """Store a memory's `state`, `previous_state` and `superseded_by`, the latter also where it is forgotten."""
        ...


def settle_states(rows: SuccessionRows, keys: Iterable[int]) -> list[Memory]:
    """Give memories the state that their successors lead to, after edges or states of those changed.

    Returns:
        Those whose state is another now, as they are now.
    """
    changed: dict[int, Memory] = {}
    for key in keys:
        _settle(rows, key, changed)
    return list(changed.values())


def living_successor(rows: SuccessionRows, key: int) -> Memory | None:
    """Return who stands in a memory's place: the newest successor that is not forgotten, or one of a forgotten one."""
    successors = rows.successors(key)
    for successor in successors:
        if successor.state is not MemoryState.FORGOTTEN:
            return successor
    for successor in successors:
        further = living_successor(rows, successor.key)
        if further is not None:
            return further
    return None


def _settle(rows: SuccessionRows, key: int, changed: dict[int, Memory]) -> None:
    memory = rows.memory(key)
    successor = living_successor(rows, key)
    # Who stood aside for one that says the same does so while that is there, whoever else goes.
    successor_id = successor.id if successor else rows.named_twin(key)
    if memory.state is MemoryState.FORGOTTEN:
        previous = MemoryState.SUPERSEDED if successor_id else MemoryState.ACTIVE
        rows.save_state(replace(memory, previous_state=previous, superseded_by=successor_id))
        # What it replaced looks through it to its own successor.
        for replaced in rows.replaced(memory):
            _settle(rows, replaced, changed)
        return
    if not successor_id and memory.state is MemoryState.SUPERSEDED:
        # Said again meanwhile: two active memories must not say the same, so that one is the successor.
        successor_id = rows.active_twin(memory)
    state = MemoryState.SUPERSEDED if successor_id else MemoryState.ACTIVE
    settled = replace(memory, state=state, superseded_by=successor_id)
    if settled != memory:
        rows.save_state(settled)
    if state is not memory.state:
        changed[key] = settled
