"""Forgets, purges and restores memories in plain collections."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sidecar.adapters.in_memory.listing import catalog_row
from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.memory import Memory, MemoryState, Relation
from sidecar.domain.store_values import CatalogRow, Forgetting, RequestKey, SkipReason, skip_reason
from sidecar.errors import DuplicateMemoryError, MemoryNotForgottenError, MemoryNotFoundError, RequestKeyReusedError

REQUEST_KEY_LIFE: Final = timedelta(hours=24)


def find_kept(tables: Tables, owner: str, request: RequestKey, *, now: datetime) -> Forgetting | None:
    """See `MemoryStore.kept_forgetting`; memories are shown as they are now."""
    kept = tables.kept_forgettings.get((owner, request.key))
    if kept is None or kept.at < now - REQUEST_KEY_LIFE:
        return None
    if kept.digest != request.digest:
        raise RequestKeyReusedError(request.key)
    found = (tables.find(owner, memory_id) for memory_id in kept.outcome.forgotten_ids)
    return replace(kept.outcome, memories=tuple(memory for memory in found if memory is not None), changed=())


def forget(tables: Tables, owner: str, memory_ids: Sequence[str], *, is_forced: bool, is_purge: bool) -> Forgetting:
    """See `MemoryStore.forget`."""
    done: list[Memory] = []
    skipped: list[tuple[str, SkipReason]] = []
    changed: dict[int, CatalogRow] = {}
    for memory_id in dict.fromkeys(memory_ids):
        memory = tables.find(owner, memory_id)
        if memory is None:
            skipped.append((memory_id, SkipReason.NOT_FOUND))
        elif (reason := skip_reason(memory, is_forced=is_forced, is_purge=is_purge)) is not None:
            skipped.append((memory_id, reason))
        elif is_purge:
            done.append(memory)
            changed.pop(memory.key, None)
            changed.update((row.key, row) for row in _purge(tables, memory))
        else:
            forgotten = replace(memory, state=MemoryState.FORGOTTEN, previous_state=memory.state, superseded_by="")
            tables.memories[memory.key] = forgotten
            done.append(forgotten)
            changed[memory.key] = catalog_row(forgotten)
    return Forgetting(
        forgotten_ids=tuple(memory.id for memory in done),
        memories=() if is_purge else tuple(done),
        skipped=tuple(skipped),
        changed=tuple(changed.values()),
        purged_keys=tuple(memory.key for memory in done) if is_purge else (),
    )


def restore(tables: Tables, owner: str, memory_id: str) -> tuple[Memory, tuple[CatalogRow, ...]]:
    """See `MemoryStore.restore`."""
    memory = tables.find(owner, memory_id)
    if memory is None:
        raise MemoryNotFoundError(memory_id)
    if memory.state is not MemoryState.FORGOTTEN:
        raise MemoryNotForgottenError(memory_id)
    is_superseded = memory.previous_state is MemoryState.SUPERSEDED
    existing = None if is_superseded else find_active(tables, memory)
    if existing is not None:
        raise DuplicateMemoryError(memory_id, existing.id)
    restored = replace(
        memory,
        state=memory.previous_state,
        previous_state=MemoryState.ACTIVE,
        superseded_by=tables.successors.get(memory.key, "") if is_superseded else "",
    )
    tables.memories[memory.key] = restored
    return restored, (catalog_row(restored),)


def find_active(tables: Tables, memory: Memory) -> Memory | None:
    """Return the active memory that says the same in the same namespace."""
    said = (memory.owner, memory.namespace, memory.content_hash)
    for other in tables.memories.values():
        if other.state is MemoryState.ACTIVE and (other.owner, other.namespace, other.content_hash) == said:
            return other
    return None


def _purge(tables: Tables, memory: Memory) -> list[CatalogRow]:
    """Remove a memory, and return what its going changed."""
    superseded = [key for key, successor in tables.successors.items() if successor == memory.id]
    _delete_slices(tables, memory)
    for collection in (tables.memories, tables.first_accessed, tables.tokens, tables.jobs, tables.successors):
        collection.pop(memory.key, None)
    del tables.keys[memory.id]
    tables.multipliers.pop((memory.owner, memory.id), None)
    tables.edges = [edge for edge in tables.edges if memory.id not in (edge.source_id, edge.target_id)]
    tables.vectors = {place: vector for place, vector in tables.vectors.items() if place[1] != memory.key}
    tables.kept_outcomes = {
        place: kept for place, kept in tables.kept_outcomes.items() if kept.outcome.memory_id != memory.id
    }
    tables.claims = {place: claim for place, claim in tables.claims.items() if memory.id not in place[1:3]}
    tables.judge_jobs = {place: thread for place, thread in tables.judge_jobs.items() if place[3] != memory.id}
    rows = [_release(tables, tables.memories[key]) for key in superseded if key in tables.memories]
    return [row for row in rows if row is not None]


def _release(tables: Tables, memory: Memory) -> CatalogRow | None:
    """Point a memory whose successor is gone to the one before, or make it active again."""
    before = [
        edge.source_id for edge in tables.edges if edge.target_id == memory.id and edge.relation is Relation.SUPERSEDES
    ]
    successor = before[-1] if before else None
    if successor is None and memory.state is MemoryState.SUPERSEDED:
        same = find_active(tables, memory)
        successor = same.id if same else None
    if successor is not None:
        tables.successors[memory.key] = successor
        if memory.state is MemoryState.SUPERSEDED:
            tables.memories[memory.key] = replace(memory, superseded_by=successor)
        return None
    tables.successors.pop(memory.key, None)
    if memory.state is MemoryState.FORGOTTEN:
        tables.memories[memory.key] = replace(memory, previous_state=MemoryState.ACTIVE)
        return None
    released = replace(memory, state=MemoryState.ACTIVE, superseded_by="")
    tables.memories[memory.key] = released
    return catalog_row(released)


def _delete_slices(tables: Tables, memory: Memory) -> None:
    """Delete texts that may repeat the memory: of threads it was shown in or stored by, and any that quote it."""
    for entry in tables.threads.values():
        if entry.owner != memory.owner:
            continue
        is_of_session = bool(memory.session) and (entry.thread.client, entry.thread.session) == (
            memory.client,
            memory.session,
        )
        if is_of_session or any(shown_id == memory.id for shown_id, _ in entry.shown):
            entry.slices.clear()
        entry.slices = [(seq, piece) for seq, piece in entry.slices if memory.content not in piece.text]
