"""The memory store in plain collections: for tests, and for trying things without a file. Nothing outlives it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np

from sidecar.adapters.in_memory import forgetting, listing, succession, word_index
from sidecar.adapters.in_memory.deliveries import InMemoryDeliveries
from sidecar.adapters.in_memory.evidence_store import InMemoryEvidence
from sidecar.adapters.in_memory.insights import InMemoryInsights
from sidecar.adapters.in_memory.judging import InMemoryJudging
from sidecar.adapters.in_memory.ledger_rows import InMemoryLedgerRows
from sidecar.adapters.in_memory.maintenance import InMemoryMaintenance
from sidecar.adapters.in_memory.reinforcement import InMemoryReinforcement
from sidecar.adapters.in_memory.reports import InMemoryReports
from sidecar.adapters.in_memory.tables import Job, KeptForgetting, KeptOutcome, Tables
from sidecar.domain.confirmation import make_claims, settle
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Link, Memory, MemoryState, Relation
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.reinforcement import NEUTRAL
from sidecar.domain.store_values import (
    AddOutcome,
    CatalogRow,
    Edge,
    EmbedJob,
    Forgetting,
    JobCounts,
    MemoryCounts,
    NewMemory,
    OrderBy,
    Page,
    ParkedJob,
    RankFields,
    RequestKey,
    StoreHealth,
    WordHit,
    WordQuery,
    skip_reason,
)
from sidecar.domain.word_selection import POSTING_BUDGET
from sidecar.errors import IndexRowError, InvalidInputError, MemoryNotFoundError, RequestKeyReusedError
from sidecar.ports import Clock, Embedding, Keys


class InMemoryStore(
    InMemoryDeliveries,
    InMemoryEvidence,
    InMemoryReports,
    InMemoryMaintenance,
    InMemoryJudging,
    InMemoryReinforcement,
    InMemoryInsights,
):
    """Implements every store. Every method runs to its end at once, so each is a transaction."""

    def __init__(self, *, clock: Clock, posting_budget: int = POSTING_BUDGET) -> None:
        super().__init__(Tables())
        self._clock = clock
        self._posting_budget = posting_budget

    async def add(self, new: NewMemory) -> AddOutcome:
        """See `MemoryStore.add`."""
        kept = self._kept_outcome(new)
        if kept is not None:
            return kept
        targets = [(link, self._link_target(new.memory.owner, link)) for link in dict.fromkeys(new.links)]
        existing = succession.find_active(self._tables, new.memory)
        outcome = self._add_to(existing, new, targets) if existing else self._store(new, targets)
        if new.request_key:
            identity = (new.memory.owner, new.request_key)
            self._tables.kept_outcomes[identity] = KeptOutcome(new.request_digest, outcome, self._clock.now())
        return outcome

    async def get(self, owner: str, memory_id: str) -> Memory:
        """See `MemoryStore.get`."""
        memory = self._tables.find(owner, memory_id)
        if memory is None:
            raise MemoryNotFoundError(memory_id)
        return memory

    async def fetch(self, keys: Sequence[int], selection: MemoryFilter) -> list[Memory]:
        """See `MemoryStore.fetch`."""
        found = (self._tables.memories.get(key) for key in dict.fromkeys(keys))
        return [memory for memory in found if memory is not None and selection.covers(memory)]

    async def rank_fields(self, keys: Sequence[int]) -> dict[int, RankFields]:
        """See `MemoryStore.rank_fields`."""
        memories = {key: self._tables.memories[key] for key in keys if key in self._tables.memories}
        multipliers = self._tables.multipliers
        return {
            key: RankFields(
                memory_type=memory.type,
                created_at=memory.created_at,
                provenance=memory.provenance,
                reinforcement=multipliers.get((memory.owner, memory.id), NEUTRAL),
                is_standing_rule=key in self._tables.standing_rules,
            )
            for key, memory in memories.items()
        }

    async def edges(self, owner: str, memory_id: str) -> tuple[Edge, ...]:
        """See `MemoryStore.edges`."""
        if self._tables.find(owner, memory_id) is None:
            return ()
        return tuple(edge for edge in self._tables.edges if memory_id in (edge.source_id, edge.target_id))

    async def list_page(
        self, selection: MemoryFilter, *, limit: int, cursor: str, order_by: OrderBy, is_descending: bool
    ) -> Page:
        """See `MemoryStore.list_page`; equal values are ordered by id, in the same direction."""
        return listing.list_page(
            self._tables, selection, limit=limit, cursor=cursor, order_by=order_by, is_descending=is_descending
        )

    async def count(self, selection: MemoryFilter) -> MemoryCounts:
        """See `MemoryStore.count`."""
        covered = [memory for memory in self._tables.memories.values() if selection.covers(memory)]
        return MemoryCounts(
            total=len(covered),
            by_namespace=Counter(memory.namespace for memory in covered),
            by_type=Counter(str(memory.type) for memory in covered),
            by_state=Counter(str(memory.state) for memory in covered),
        )

    async def forget(
        self,
        owner: str,
        memory_ids: Sequence[str],
        *,
        is_forced: bool,
        is_purge: bool,
        request: RequestKey | None = None,
        golden_from: float = GOLDEN_CONFIDENCE,
    ) -> Forgetting:
        """See `MemoryStore.forget`."""
        kept = None if request is None else await self.kept_forgetting(owner, request)
        if kept is not None:
            return kept
        now = self._clock.now()
        reason = partial(skip_reason, is_forced=is_forced, is_purge=is_purge, golden_from=golden_from)
        outcome = forgetting.forget(self._tables, owner, memory_ids, reason=reason, is_purge=is_purge, now=now)
        if request is not None:
            kept_now = KeptForgetting(request.digest, outcome, now)
            self._tables.kept_forgettings[owner, request.key] = kept_now
        return outcome

    async def kept_forgetting(self, owner: str, request: RequestKey) -> Forgetting | None:
        """See `MemoryStore.kept_forgetting`."""
        return forgetting.find_kept(self._tables, owner, request, now=self._clock.now())

    async def restore(self, owner: str, memory_id: str) -> tuple[Memory, tuple[CatalogRow, ...]]:
        """See `MemoryStore.restore`."""
        return forgetting.restore(self._tables, owner, memory_id)

    async def catalog(self) -> list[CatalogRow]:
        """See `MemoryStore.catalog`."""
        return [listing.catalog_row(memory) for _, memory in sorted(self._tables.memories.items())]

    # --- words ---

    async def word_query(self, terms: Sequence[str]) -> WordQuery:
        """See `MemoryStore.word_query`."""
        return word_index.weigh_query(self._tables, terms)

    async def search_words(self, query: WordQuery, selection: MemoryFilter, *, limit: int) -> list[WordHit]:
        """See `MemoryStore.search_words`."""
        return word_index.search(self._tables, query, selection, limit=limit, budget=self._posting_budget)

    async def word_scores(self, query: WordQuery, keys: Sequence[int]) -> dict[int, float]:
        """See `MemoryStore.word_scores`."""
        return word_index.score_keys(self._tables, query, keys)

    # --- vectors ---

    async def set_model(self, fingerprint: ModelFingerprint) -> int:
        """See `MemoryStore.set_model`; counts the jobs that were queued before, too."""
        tables, now = self._tables, self._clock.now()
        if tables.model_id != fingerprint.id:
            tables.model_id = fingerprint.id
            tables.jobs.clear()
        for key in tables.memories:
            if (fingerprint.id, key) not in tables.vectors:
                tables.jobs.setdefault(key, Job(0, now, now))
        return len(tables.jobs)

    async def due_jobs(self, *, now: datetime, limit: int) -> list[EmbedJob]:
        """See `MemoryStore.due_jobs`."""
        due = [
            (key, job)
            for key, job in sorted(self._tables.jobs.items(), reverse=True)
            if job.next_try_at is not None and job.next_try_at <= now
        ]
        memories = self._tables.memories
        return [EmbedJob(key, memories[key].id, memories[key].content, job.attempts) for key, job in due[:limit]]

    async def save_embeddings(self, model_id: str, rows: Sequence[tuple[int, Embedding]]) -> list[int]:
        """See `MemoryStore.save_embeddings`."""
        for key, embedding in rows:
            if embedding.ndim != 2 or not embedding.size or not np.isfinite(embedding).all():
                raise IndexRowError(f"shape {embedding.shape} or a value that is not finite, for key {key}")
        stored = [key for key, _ in rows if key in self._tables.memories]
        for key, embedding in rows:
            if key in self._tables.memories:
                self._tables.vectors[model_id, key] = embedding.copy()
                if model_id == self._tables.model_id:
                    self._tables.jobs.pop(key, None)
        return stored

    async def requeue(self, model_id: str, keys: Sequence[int]) -> None:
        """See `MemoryStore.requeue`; of another model than the one in use only the vectors go."""
        tables, now = self._tables, self._clock.now()
        for key in keys:
            tables.vectors.pop((model_id, key), None)
            if key in tables.memories and model_id == tables.model_id:
                tables.jobs[key] = Job(0, now, now)

    async def fail_job(self, key: int, *, reason: str, next_try_at: datetime | None) -> None:
        """See `MemoryStore.fail_job`; a job that has ended meanwhile stays ended."""
        job = self._tables.jobs.get(key)
        if job is not None:
            job.attempts += 1
            job.reason = reason
            job.next_try_at = next_try_at

    async def retry_parked(self) -> int:
        """See `MemoryStore.retry_parked`; attempts count anew."""
        parked = [job for job in self._tables.jobs.values() if job.next_try_at is None]
        for job in parked:
            job.attempts, job.next_try_at = 0, self._clock.now()
        return len(parked)

    async def job_counts(self) -> JobCounts:
        """See `MemoryStore.job_counts`."""
        waiting = [job.queued_at for job in self._tables.jobs.values() if job.next_try_at is not None]
        return JobCounts(len(waiting), len(self._tables.jobs) - len(waiting), min(waiting, default=None))

    async def parked_jobs(self, *, limit: int) -> list[ParkedJob]:
        """See `MemoryStore.parked_jobs`."""
        parked = [(job.queued_at, key, job) for key, job in self._tables.jobs.items() if job.next_try_at is None]
        parked.sort(key=lambda entry: entry[:2])
        memories = self._tables.memories
        return [ParkedJob(memories[key].id, job.attempts, job.reason) for _, key, job in parked[:limit]]

    async def embedded_keys(self, model_id: str) -> Keys:
        """See `MemoryStore.embedded_keys`."""
        return np.array(sorted(key for model, key in self._tables.vectors if model == model_id), np.int64)

    async def unlinked_keys(self, model_id: str) -> list[int]:
        """See `MemoryStore.unlinked_keys`."""
        return sorted(key for key in self._tables.link_wishes if (model_id, key) in self._tables.vectors)

    async def embeddings(self, model_id: str, keys: Sequence[int]) -> list[tuple[int, Embedding]]:
        """See `MemoryStore.embeddings`; ordered by key."""
        vectors = self._tables.vectors
        return [(key, vectors[model_id, key].copy()) for key in sorted(set(keys)) if (model_id, key) in vectors]

    # --- use ---

    async def multipliers(self, memory_ids: Sequence[str]) -> dict[str, float]:
        """See `MemoryStore.multipliers`."""
        asked = set(memory_ids)
        return {memory_id: value for (_, memory_id), value in self._tables.multipliers.items() if memory_id in asked}

    # --- upkeep ---

    async def health(self) -> StoreHealth:
        """See `MemoryStore.health`."""
        threads = self._tables.threads.values()
        return StoreHealth(
            schema=0,
            engine="in memory",
            database_bytes=0,
            wal_bytes=0,
            free_bytes=0,
            counters={
                "shown_ids_not_in_store": sum(entry.missing_ids for entry in threads),
                "slices_dropped": sum(entry.dropped_slices for entry in threads),
            },
        )

    async def check_integrity(self) -> tuple[str, ...]:
        """See `MemoryStore.check_integrity`; collections cannot be damaged."""
        return ()

    async def close(self) -> None:
        """See `MemoryStore.close`; there is nothing to close."""

    # --- adding ---

    def _kept_outcome(self, new: NewMemory) -> AddOutcome | None:
        kept = self._tables.kept_outcomes.get((new.memory.owner, new.request_key))
        if kept is None or not new.request_key or kept.at < self._clock.now() - forgetting.REQUEST_KEY_LIFE:
            return None
        if kept.digest != new.request_digest:
            raise RequestKeyReusedError(new.request_key)
        return replace(kept.outcome, changed=(), is_indexed=self._is_indexed(kept.outcome.memory_id))

    def _add_to(self, existing: Memory, new: NewMemory, targets: Sequence[tuple[Link, Memory]]) -> AddOutcome:
        """Give the memory that says the same the links that are new."""
        if any(target.id == existing.id for _, target in targets):
            raise InvalidInputError("links", existing.id, "ids of other memories: this one says what you remember")
        return AddOutcome(
            memory_id=existing.id,
            content_hash=existing.content_hash,
            is_deduplicated=True,
            is_indexed=self._is_indexed(existing.id),
            changed=tuple(self._link(existing.id, targets)),
            used_memory_ids=self._settle_claims(new, existing.id),
        )

    def _is_indexed(self, memory_id: str) -> bool:
        return (self._tables.model_id, self._tables.keys.get(memory_id, 0)) in self._tables.vectors

    def _store(self, new: NewMemory, targets: Sequence[tuple[Link, Memory]]) -> AddOutcome:
        tables, now = self._tables, self._clock.now()
        tables.last_key += 1
        memory = replace(
            new.memory,
            key=tables.last_key,
            state=MemoryState.ACTIVE,
            previous_state=MemoryState.ACTIVE,
            superseded_by="",
        )
        tables.memories[memory.key] = memory
        tables.keys[memory.id] = memory.key
        tables.first_accessed[memory.key] = memory.accessed_at
        tables.tokens[memory.key] = Counter(new.tokens)
        tables.jobs[memory.key] = Job(0, now, now)
        if new.link_wish is not None:
            tables.link_wishes[memory.key] = new.link_wish
        superseded = self._link(memory.id, targets)
        return AddOutcome(
            memory_id=memory.id,
            content_hash=memory.content_hash,
            is_deduplicated=False,
            is_indexed=False,
            changed=(listing.catalog_row(memory), *superseded),
            used_memory_ids=self._settle_claims(new, memory.id),
        )

    def _link(self, source_id: str, targets: Sequence[tuple[Link, Memory]]) -> list[CatalogRow]:
        """Store the edges that are new, and return the catalog fields of what they superseded."""
        now = self._clock.now()
        added = [
            (link, target)
            for link, target in targets
            if self._tables.add_edge(source_id, target.id, link.relation, at=now)
        ]
        superseded = [target.key for link, target in added if link.relation is Relation.SUPERSEDES]
        return succession.settle(self._tables, superseded)

    def _link_target(self, owner: str, link: Link) -> Memory:
        target = self._tables.find(owner, link.memory_id)
        if target is None or target.state is MemoryState.FORGOTTEN:
            raise MemoryNotFoundError(link.memory_id)
        return target

    def _settle_claims(self, new: NewMemory, source_id: str) -> tuple[str, ...]:
        claims = make_claims(new.links, remembered=new.memory, source_id=source_id, project=new.project)
        rows = InMemoryLedgerRows(self._tables, new.memory.owner)
        return tuple(claim.target_id for claim in claims if settle(rows, claim, at=self._clock.now()))
