"""Rows that tell which memories stand aside for which, in plain collections. The rules are in the domain."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sidecar.adapters.in_memory.listing import catalog_row
from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.memory import Memory, MemoryState, Relation
from sidecar.domain.store_values import CatalogRow, Edge
from sidecar.domain.succession import settle_states


class InMemorySuccessionRows:
    """See `SuccessionRows`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def memory(self, key: int) -> Memory:
        """See `SuccessionRows.memory`."""
        return self._tables.memories[key]

    def successors(self, key: int) -> Sequence[Memory]:
        """See `SuccessionRows.successors`."""
        target_id = self._tables.memories[key].id
        found = [edge.source_id for edge in self._superseding() if edge.target_id == target_id]
        return [self.memory(self._tables.keys[source_id]) for source_id in reversed(found)]

    def replaced(self, memory: Memory) -> Sequence[int]:
        """See `SuccessionRows.replaced`."""
        by_edge = [self._tables.keys[edge.target_id] for edge in self._superseding() if edge.source_id == memory.id]
        by_name = [key for key, successor in self._tables.successors.items() if successor == memory.id]
        return sorted({*by_edge, *by_name})

    def active_twin(self, memory: Memory) -> str:
        """See `SuccessionRows.active_twin`."""
        twin = find_active(self._tables, memory)
        return twin.id if twin else ""

    def named_twin(self, key: int) -> str:
        """See `SuccessionRows.named_twin`."""
        twin_key = self._tables.keys.get(self._tables.successors.get(key, ""))
        if twin_key is None:
            return ""
        memory, twin = self.memory(key), self.memory(twin_key)
        says_the_same = (memory.namespace, memory.content_hash) == (twin.namespace, twin.content_hash)
        return twin.id if says_the_same and twin.state is not MemoryState.FORGOTTEN else ""

    def save_state(self, memory: Memory) -> None:
        """See `SuccessionRows.save_state`."""
        if memory.superseded_by:
            self._tables.successors[memory.key] = memory.superseded_by
        else:
            self._tables.successors.pop(memory.key, None)
        is_superseded = memory.state is MemoryState.SUPERSEDED
        self._tables.memories[memory.key] = memory if is_superseded else replace(memory, superseded_by="")

    def _superseding(self) -> list[Edge]:
        return [edge for edge in self._tables.edges if edge.relation is Relation.SUPERSEDES]


def settle(tables: Tables, keys: Iterable[int]) -> list[CatalogRow]:
    """Settle the states of these memories, and return the catalog fields of those whose state is another now."""
    return [catalog_row(memory) for memory in settle_states(InMemorySuccessionRows(tables), keys)]


def find_active(tables: Tables, memory: Memory) -> Memory | None:
    """Return the active memory that says the same in the same namespace."""
    said = (memory.owner, memory.namespace, memory.content_hash)
    for other in tables.memories.values():
        if other.state is MemoryState.ACTIVE and (other.owner, other.namespace, other.content_hash) == said:
            return other
    return None
