"""Forgets, purges and restores memories in plain collections."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sidecar.adapters.in_memory.ledger_rows import InMemoryLedgerRows
from sidecar.adapters.in_memory.listing import catalog_row
from sidecar.adapters.in_memory.quotations import delete_reports
from sidecar.adapters.in_memory.succession import InMemorySuccessionRows, find_active, settle
from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.confirmation import give_credit_back
from sidecar.domain.edges import EdgeOrigin
from sidecar.domain.ledger import CallKind
from sidecar.domain.memory import Memory, MemoryState, Relation
from sidecar.domain.store_values import CatalogRow, Forgetting, RequestKey, SkipReason
from sidecar.domain.succession import living_successor
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


def forget(
    tables: Tables,
    owner: str,
    memory_ids: Sequence[str],
    *,
    reason: Callable[[Memory], SkipReason | None],
    is_purge: bool,
    now: datetime,
) -> Forgetting:
    """See `MemoryStore.forget`; `reason` is `skip_reason` with what was asked for."""
    done: list[Memory] = []
    skipped: list[tuple[str, SkipReason]] = []
    changed: dict[int, CatalogRow] = {}
    for memory_id in dict.fromkeys(memory_ids):
        memory = tables.find(owner, memory_id)
        if memory is None:
            skipped.append((memory_id, SkipReason.NOT_FOUND))
        elif (why := reason(memory)) is not None:
            skipped.append((memory_id, why))
        elif is_purge:
            done.append(memory)
            changed.pop(memory.key, None)
            changed.update((row.key, row) for row in _purge(tables, memory, now=now))
        else:
            forgotten = replace(memory, state=MemoryState.FORGOTTEN, previous_state=memory.state, superseded_by="")
            tables.memories[memory.key] = forgotten
            done.append(forgotten)
            changed[memory.key] = catalog_row(forgotten)
            replaced = InMemorySuccessionRows(tables).replaced(memory)
            changed.update((row.key, row) for row in settle(tables, replaced))
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
    replaced = InMemorySuccessionRows(tables).replaced(restored)
    return restored, (catalog_row(restored), *settle(tables, replaced))


def _purge(tables: Tables, memory: Memory, *, now: datetime) -> list[CatalogRow]:
    """Remove a memory, and return what its going changed."""
    rows = InMemorySuccessionRows(tables)
    replaced, heir = rows.replaced(memory), living_successor(rows, memory.key)
    _delete_slices(tables, memory)
    delete_reports(tables, memory)
    by_key = (tables.memories, tables.first_accessed, tables.tokens, tables.jobs, tables.successors, tables.link_wishes)
    for collection in by_key:
        collection.pop(memory.key, None)
    del tables.keys[memory.id]
    tables.multipliers.pop((memory.owner, memory.id), None)
    tables.edges = [edge for edge in tables.edges if memory.id not in (edge.source_id, edge.target_id)]
    tables.vectors = {place: vector for place, vector in tables.vectors.items() if place[1] != memory.key}
    tables.kept_outcomes = {
        place: kept for place, kept in tables.kept_outcomes.items() if kept.outcome.memory_id != memory.id
    }
    tables.claims = {
        place: claim for place, claim in tables.claims.items() if memory.id not in (claim.source_id, claim.target_id)
    }
    tables.citations = {place: one for place, one in tables.citations.items() if one.memory_id != memory.id}
    tables.judge_jobs = {key: job for key, job in tables.judge_jobs.items() if key.memory_id != memory.id}
    tables.verdicts = {key: stored for key, stored in tables.verdicts.items() if key.memory_id != memory.id}
    give_credit_back(InMemoryLedgerRows(tables, memory.owner), memory.id, at=now)
    for key in replaced:
        if heir is not None and living_successor(rows, key) is None:
            replaced_id = tables.memories[key].id
            tables.add_edge(heir.id, replaced_id, Relation.SUPERSEDES, at=now, origin=EdgeOrigin.INHERITED)
    return settle(tables, replaced)


def _delete_slices(tables: Tables, memory: Memory) -> None:
    """Delete texts that may repeat the memory: of threads it was shown in or stored by, and any that quote it."""
    for entry in tables.threads.values():
        if entry.owner != memory.owner:
            continue
        before = len(entry.slices)
        is_of_session = bool(memory.session) and (entry.thread.client, entry.thread.session) == (
            memory.client,
            memory.session,
        )
        if is_of_session or any(shown_id == memory.id for shown_id, _ in entry.shown):
            entry.slices.clear()
        # The answer to a call that was not read yet may be the memory itself.
        unseen = {
            call.call_id
            for (owner, _, _), call in tables.calls.items()
            if owner == memory.owner and call.kind is CallKind.UNSEEN and memory.id in call.shown.memory_ids
        }
        entry.slices = [
            (seq, piece)
            for seq, piece in entry.slices
            if memory.content not in piece.text and piece.awaited_call not in unseen
        ]
        if len(entry.slices) < before:
            # Of the other memories that its session was shown.
            tables.note_lost_text(entry)
