"""Forgets memories, or removes every byte of them. An operation of the writer."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import apsw

from sidecar.adapters.sqlite import judging, reading
from sidecar.adapters.sqlite.connection import fetch_all, fetch_one
from sidecar.adapters.sqlite.remembering import REQUEST_KEY_LIFE
from sidecar.adapters.sqlite.succession import SqliteSuccessionRows, settle
from sidecar.adapters.sqlite.term_statistics import TermStatistics
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.usage import SqliteConfirmationRows
from sidecar.adapters.sqlite.values import catalog_of, to_us
from sidecar.adapters.sqlite.words import remove_traces, remove_words
from sidecar.domain.confirmation import give_credit_back
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Memory, MemoryState, Relation
from sidecar.domain.store_values import CatalogRow, Forgetting, RequestKey, SkipReason, skip_reason
from sidecar.domain.succession import living_successor
from sidecar.errors import RequestKeyReusedError

INHERITED: Final = "inherited"
"""Origin of an edge that took the place of two when the memory between them was purged."""


@dataclass(frozen=True, slots=True)
class ForgetMemories:
    """Forgets or purges memories. See `MemoryStore.forget`.

    Attributes:
        empty_journal: Called after a purge, to have the journal emptied behind the commit.
    """

    owner: str
    memory_ids: tuple[str, ...]
    is_forced: bool
    is_purge: bool
    request: RequestKey | None
    now: datetime
    statistics: TermStatistics
    empty_journal: Callable[[], None]
    golden_from: float = GOLDEN_CONFIDENCE

    def __call__(self, transaction: Transaction) -> Forgetting:
        """Run as an operation of the writer."""
        if self.request is None:
            return self._forget_all(transaction)
        connection = transaction.connection
        kept = find_kept(connection, self.owner, self.request, now=self.now)
        if kept is not None:
            return kept
        outcome = self._forget_all(transaction)
        _keep(connection, self.owner, self.request, outcome, now=self.now)
        return outcome

    def _reason(self, memory: Memory) -> SkipReason | None:
        return skip_reason(memory, is_forced=self.is_forced, is_purge=self.is_purge, golden_from=self.golden_from)

    def _forget_all(self, transaction: Transaction) -> Forgetting:
        connection = transaction.connection
        done: list[Memory] = []
        skipped: list[tuple[str, SkipReason]] = []
        changed: dict[int, CatalogRow] = {}
        removed_terms: set[str] = set()
        for memory_id in dict.fromkeys(self.memory_ids):
            memory = reading.find(connection, self.owner, memory_id)
            if memory is None:
                skipped.append((memory_id, SkipReason.NOT_FOUND))
            elif (reason := self._reason(memory)) is not None:
                skipped.append((memory_id, reason))
            elif self.is_purge:
                done.append(memory)
                changed.pop(memory.key, None)
                removed_terms |= remove_words(transaction, self.statistics, memory.key, memory.content)
                changed.update((row.key, row) for row in self._purge(transaction, memory))
            else:
                forgotten = _forget(connection, memory)
                done.append(forgotten)
                changed[memory.key] = catalog_of(forgotten)
                replaced = SqliteSuccessionRows(connection).replaced(memory)
                changed.update((row.key, row) for row in settle(connection, replaced))
        if removed_terms:
            transaction.before_commit(partial(remove_traces, connection, removed_terms))
        return Forgetting(
            forgotten_ids=tuple(memory.id for memory in done),
            memories=() if self.is_purge else tuple(done),
            skipped=tuple(skipped),
            changed=tuple(changed.values()),
            purged_keys=tuple(memory.key for memory in done) if self.is_purge else (),
        )

    def _purge(self, transaction: Transaction, memory: Memory) -> list[CatalogRow]:
        """Remove a memory, and return what its going changed."""
        connection = transaction.connection
        rows = SqliteSuccessionRows(connection)
        replaced, heir = rows.replaced(memory), living_successor(rows, memory.key)
        _delete_slices(connection, memory)
        connection.execute("DELETE FROM judge_jobs WHERE owner = ? AND memory_id = ?", (self.owner, memory.id))
        connection.execute("DELETE FROM verdicts WHERE owner = ? AND memory_id = ?", (self.owner, memory.id))
        connection.execute("DELETE FROM request_keys WHERE memory_id = ?", (memory.id,))
        connection.execute(
            "DELETE FROM claims WHERE owner = ?1 AND (source_id = ?2 OR target_id = ?2)", (self.owner, memory.id)
        )
        connection.execute("DELETE FROM citations WHERE owner = ? AND memory_id = ?", (self.owner, memory.id))
        # Vectors, jobs, edges and the multiplier go with the row.
        connection.execute("DELETE FROM memories WHERE key = ?", (memory.key,))
        give_credit_back(SqliteConfirmationRows(connection, self.owner), memory.id, at=self.now)
        transaction.after_commit(self.empty_journal)
        for key in replaced:
            if heir is not None and living_successor(rows, key) is None:
                _inherit(connection, heir, key, now=self.now)
        return settle(connection, replaced)


def find_kept(connection: apsw.Connection, owner: str, request: RequestKey, *, now: datetime) -> Forgetting | None:
    """See `MemoryStore.kept_forgetting`; memories are shown as they are now."""
    row = fetch_one(
        connection,
        "SELECT digest, forgotten_ids, skipped, purged_keys FROM forget_requests "
        "WHERE owner = ? AND request_key = ? AND created_at >= ?",
        (owner, request.key, to_us(now - REQUEST_KEY_LIFE)),
    )
    if row is None:
        return None
    if row[0] != request.digest:
        raise RequestKeyReusedError(request.key)
    forgotten_ids = tuple(row[1].split())
    found = (reading.find(connection, owner, memory_id) for memory_id in forgotten_ids)
    return Forgetting(
        forgotten_ids=forgotten_ids,
        memories=tuple(memory for memory in found if memory is not None),
        skipped=tuple((str(memory_id), SkipReason(reason)) for memory_id, reason in json.loads(row[2])),
        # Again: who asks again may have ended before the vectors were out of the index.
        purged_keys=tuple(int(key) for key in json.loads(row[3])),
    )


def _keep(connection: apsw.Connection, owner: str, request: RequestKey, outcome: Forgetting, *, now: datetime) -> None:
    connection.execute("DELETE FROM forget_requests WHERE created_at < ?", (to_us(now - REQUEST_KEY_LIFE),))
    connection.execute(
        "INSERT INTO forget_requests VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            owner,
            request.key,
            request.digest,
            " ".join(outcome.forgotten_ids),
            json.dumps(outcome.skipped),
            json.dumps(outcome.purged_keys),
            to_us(now),
        ),
    )


def _forget(connection: apsw.Connection, memory: Memory) -> Memory:
    connection.execute(
        "UPDATE memories SET state = 'forgotten', previous_state = state WHERE key = ?",
        (memory.key,),
    )
    return replace(memory, state=MemoryState.FORGOTTEN, previous_state=memory.state, superseded_by="")


def _inherit(connection: apsw.Connection, heir: Memory, key: int, *, now: datetime) -> None:
    """Let a purged memory's successor stand in for what that had replaced itself."""
    connection.execute(
        "INSERT OR IGNORE INTO edges (owner, source_key, target_key, relation, weight, origin, created_at) "
        "VALUES (?, ?, ?, ?, 1.0, ?, ?)",
        (heir.owner, heir.key, key, Relation.SUPERSEDES, INHERITED, to_us(now)),
    )


def _delete_slices(connection: apsw.Connection, memory: Memory) -> None:
    """Delete texts that may repeat the memory: of threads it was shown in or stored by, and any that quote it."""
    rows = fetch_all(
        connection,
        "DELETE FROM slices WHERE owner = ?1 AND (instr(text, ?2) > 0 OR thread IN ("
        "SELECT thread FROM shown WHERE owner = ?1 AND memory_id = ?3 "
        "UNION SELECT id FROM evidence_sessions WHERE owner = ?1 AND client = ?4 AND session = ?5 AND session <> '') "
        # The answer to a call that was not read yet may be the memory itself.
        "OR awaited_call IN (SELECT call_id FROM evidence_calls WHERE owner = ?1 AND kind = 'unseen' "
        "AND instr(memory_ids, ?3) > 0)) RETURNING thread",
        (memory.owner, memory.content, memory.id, memory.client, memory.session),
    )
    # Of the other memories that these sessions were shown.
    judging.note_lost_text(connection, list({row[0] for row in rows}))
