"""The memory store on SQLite: which operation runs where. The operations themselves are in the modules beside it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, Self

import apsw

from sidecar.adapters.sqlite import (
    coverage,
    deliveries,
    embeddings,
    evidence,
    forgetting,
    graph,
    reading,
    upkeep,
    usage,
    words,
)
from sidecar.adapters.sqlite.connection import open_writer, storage_error
from sidecar.adapters.sqlite.forgetting import ForgetMemories
from sidecar.adapters.sqlite.insights_store import SqliteInsights
from sidecar.adapters.sqlite.judge_store import SqliteJudging
from sidecar.adapters.sqlite.llm_ledger import SqliteLlmLedger
from sidecar.adapters.sqlite.maintenance_store import SqliteMaintenance
from sidecar.adapters.sqlite.migration import find_version, migrate, shipped_migrations
from sidecar.adapters.sqlite.readers import Readers
from sidecar.adapters.sqlite.reinforcement_store import SqliteReinforcement
from sidecar.adapters.sqlite.remembering import AddMemory, RestoreMemory
from sidecar.adapters.sqlite.report_store import SqliteReports
from sidecar.adapters.sqlite.term_statistics import StatisticsLoading
from sidecar.adapters.sqlite.values import to_us
from sidecar.adapters.sqlite.writer import Writer
from sidecar.domain.context import ContextKind
from sidecar.domain.coverage import ClientCoverage
from sidecar.domain.evidence import (
    BatchOutcome,
    EvidenceBatch,
    SessionCoverage,
    SessionRecall,
    SessionThread,
    SliceKind,
    TranscriptCursor,
    UsageEvent,
)
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Memory
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.recall import MemoryFilter
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
    RecallRecord,
    RequestKey,
    StoreHealth,
    WordHit,
    WordQuery,
)
from sidecar.domain.word_selection import POSTING_BUDGET
from sidecar.errors import StorageError
from sidecar.ports import Clock, Embedding, Keys

_RECALL_RECORD: Final = "recall_record"


class SqliteStore(SqliteReports, SqliteMaintenance, SqliteJudging, SqliteReinforcement, SqliteInsights):
    """Implements every store on one database file."""

    def __init__(
        self, path: Path, *, clock: Clock, writer: Writer, loading: StatisticsLoading, posting_budget: int
    ) -> None:
        self._path = path
        self._clock = clock
        self._writer = writer
        self._readers = Readers(path)
        self.llm_ledger = SqliteLlmLedger(self._writer, self._readers)
        self._loading = loading
        self._statistics = loading.statistics
        self._posting_budget = posting_budget

    @classmethod
    def open(cls, path: Path, *, clock: Clock, posting_budget: int = POSTING_BUDGET) -> Self:
        """Open a database, made or migrated if need be. Blocks; the caller holds the data folder's lock.

        Args:
            path: The file; its folder exists.
            posting_budget: Most candidates that one word search looks at.

        Raises:
            SchemaTooNewError: If a newer version wrote it; no byte of it is changed.
            StorageCorruptError: If it is damaged; it is left as it is. StorageError: If it cannot be opened.
        """
        migrations = shipped_migrations()
        find_version(path, supported=len(migrations))
        try:
            connection = open_writer(path)
        except (apsw.Error, OSError) as error:
            raise storage_error(error, path) from error
        try:
            migrate(connection, path, migrations=migrations, now_us=to_us(clock.now()))
            # Before the writer starts: what is written from now on it counts itself.
            loading = StatisticsLoading(path)
        except BaseException:
            connection.close()
            raise
        writer = Writer(path, connection, chore=lambda work: evidence.forget_idle_slices(work, now=clock.now()))
        return cls(path, clock=clock, writer=writer, loading=loading, posting_budget=posting_budget)

    # --- memories ---

    async def add(self, new: NewMemory) -> AddOutcome:
        """See `MemoryStore.add`."""
        return await self._writer.run(AddMemory(new, self._statistics, self._clock.now()))

    async def get(self, owner: str, memory_id: str) -> Memory:
        """See `MemoryStore.get`."""
        return await self._readers.run(partial(reading.get, owner=owner, memory_id=memory_id))

    async def fetch(self, keys: Sequence[int], selection: MemoryFilter) -> list[Memory]:
        """See `MemoryStore.fetch`."""
        return await self._readers.run(partial(reading.fetch, keys=keys, selection=selection))

    async def rank_fields(self, keys: Sequence[int]) -> dict[int, RankFields]:
        """See `MemoryStore.rank_fields`."""
        return await self._readers.run(partial(reading.rank_fields, keys=keys))

    async def edges(self, owner: str, memory_id: str) -> tuple[Edge, ...]:
        """See `MemoryStore.edges`."""
        return await self._readers.run(partial(reading.edges, owner=owner, memory_id=memory_id))

    async def list_page(
        self, selection: MemoryFilter, *, limit: int, cursor: str, order_by: OrderBy, is_descending: bool
    ) -> Page:
        """See `MemoryStore.list_page`."""
        return await self._readers.run(
            partial(
                reading.list_page,
                selection=selection,
                limit=limit,
                cursor=cursor,
                order_by=order_by,
                is_descending=is_descending,
            )
        )

    async def count(self, selection: MemoryFilter) -> MemoryCounts:
        """See `MemoryStore.count`."""
        return await self._readers.run(partial(reading.count, selection=selection))

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
        return await self._writer.run(
            ForgetMemories(
                owner=owner,
                memory_ids=tuple(memory_ids),
                is_forced=is_forced,
                is_purge=is_purge,
                request=request,
                golden_from=golden_from,
                now=self._clock.now(),
                statistics=self._statistics,
                empty_journal=self._writer.empty_journal,
            )
        )

    async def kept_forgetting(self, owner: str, request: RequestKey) -> Forgetting | None:
        """See `MemoryStore.kept_forgetting`."""
        return await self._readers.run(
            partial(forgetting.find_kept, owner=owner, request=request, now=self._clock.now())
        )

    async def restore(self, owner: str, memory_id: str) -> tuple[Memory, tuple[CatalogRow, ...]]:
        """See `MemoryStore.restore`."""
        return await self._writer.run(RestoreMemory(owner, memory_id))

    async def catalog(self) -> list[CatalogRow]:
        """See `MemoryStore.catalog`."""
        return await self._readers.run(reading.catalog)

    # --- words ---

    async def word_query(self, terms: Sequence[str]) -> WordQuery:
        """See `MemoryStore.word_query`."""
        await self._loading.wait()
        return words.weigh_query(self._statistics, terms)

    async def search_words(self, query: WordQuery, selection: MemoryFilter, *, limit: int) -> list[WordHit]:
        """See `MemoryStore.search_words`."""
        await self._loading.wait()
        return await self._readers.run(
            partial(
                words.search,
                statistics=self._statistics,
                query=query,
                selection=selection,
                limit=limit,
                budget=self._posting_budget,
            )
        )

    async def word_scores(self, query: WordQuery, keys: Sequence[int]) -> dict[int, float]:
        """See `MemoryStore.word_scores`."""
        await self._loading.wait()
        return await self._readers.run(partial(words.score_keys, statistics=self._statistics, query=query, keys=keys))

    # --- vectors ---

    async def set_model(self, fingerprint: ModelFingerprint) -> int:
        """See `MemoryStore.set_model`; counts the jobs that were queued before, too."""
        return await self._writer.run(partial(embeddings.set_model, fingerprint=fingerprint, now=self._clock.now()))

    async def due_jobs(self, *, now: datetime, limit: int) -> list[EmbedJob]:
        """See `MemoryStore.due_jobs`."""
        return await self._readers.run(partial(embeddings.due_jobs, now=now, limit=limit))

    async def save_embeddings(self, model_id: str, rows: Sequence[tuple[int, Embedding]]) -> list[int]:
        """See `MemoryStore.save_embeddings`."""
        return await self._writer.run(partial(embeddings.save, model_id=model_id, rows=embeddings.pack(rows)))

    async def requeue(self, model_id: str, keys: Sequence[int]) -> None:
        """See `MemoryStore.requeue`."""
        await self._writer.run(partial(embeddings.requeue, model_id=model_id, keys=keys, now=self._clock.now()))

    async def fail_job(self, key: int, *, reason: str, next_try_at: datetime | None) -> None:
        """See `MemoryStore.fail_job`."""
        await self._writer.run(partial(embeddings.fail_job, key=key, reason=reason, next_try_at=next_try_at))

    async def retry_parked(self) -> int:
        """See `MemoryStore.retry_parked`."""
        return await self._writer.run(partial(embeddings.retry_parked, now=self._clock.now()))

    async def job_counts(self) -> JobCounts:
        """See `MemoryStore.job_counts`."""
        return await self._readers.run(embeddings.job_counts)

    async def parked_jobs(self, *, limit: int) -> list[ParkedJob]:
        """See `MemoryStore.parked_jobs`."""
        return await self._readers.run(partial(embeddings.parked_jobs, limit=limit))

    async def embedded_keys(self, model_id: str) -> Keys:
        """See `MemoryStore.embedded_keys`."""
        return await self._readers.run(partial(embeddings.embedded_keys, model_id=model_id))

    async def unlinked_keys(self, model_id: str) -> list[int]:
        """See `MemoryStore.unlinked_keys`."""
        return await self._readers.run(partial(graph.unlinked_keys, model_id=model_id))

    async def embeddings(self, model_id: str, keys: Sequence[int]) -> list[tuple[int, Embedding]]:
        """See `MemoryStore.embeddings`."""
        return await self._readers.run(partial(embeddings.load, model_id=model_id, keys=keys))

    # --- use ---

    async def record_recall(self, record: RecallRecord) -> None:
        """See `MemoryStore.record_recall`."""
        self._writer.submit_nowait(partial(deliveries.record_recall, record=record), what=_RECALL_RECORD)

    async def was_briefed(self, owner: str, client: str, session: str, kind: ContextKind) -> bool:
        """See `MemoryStore.was_briefed`."""
        return await self._readers.run(
            partial(deliveries.was_briefed, owner=owner, client=client, session=session, kind=kind)
        )

    async def claim_briefing(self, record: RecallRecord) -> str:
        """See `MemoryStore.claim_briefing`."""
        return await self._writer.run(partial(deliveries.claim_briefing, record=record))

    async def kept_recall(self, owner: str, request: RequestKey) -> str:
        """See `MemoryStore.kept_recall`."""
        return await self._readers.run(
            partial(deliveries.kept_recall, owner=owner, request=request, now=self._clock.now())
        )

    async def multipliers(self, memory_ids: Sequence[str]) -> dict[str, float]:
        """See `MemoryStore.multipliers`."""
        return await self._readers.run(partial(reading.multipliers, memory_ids=memory_ids))

    # --- evidence ---

    async def apply_batch(self, owner: str, batch: EvidenceBatch, *, at: datetime) -> BatchOutcome:
        """See `EvidenceStore.apply_batch`."""
        return await self._writer.run(partial(evidence.apply_batch, owner=owner, batch=batch, at=at))

    async def cursors(self, owner: str, client: str) -> list[TranscriptCursor]:
        """See `EvidenceStore.cursors`."""
        return await self._readers.run(partial(evidence.cursors, owner=owner, client=client))

    async def sessions(self, owner: str, *, limit: int) -> list[SessionCoverage]:
        """See `EvidenceStore.sessions`."""
        return await self._readers.run(partial(coverage.sessions, owner=owner, limit=limit))

    async def session_recalls(self, owner: str, client: str, session: str) -> list[SessionRecall]:
        """See `EvidenceStore.session_recalls`."""
        return await self._readers.run(partial(coverage.session_recalls, owner=owner, client=client, session=session))

    async def coverage(self, owner: str, client: str) -> list[ClientCoverage]:
        """See `EvidenceStore.coverage`."""
        return await self._readers.run(partial(coverage.clients, owner=owner, client=client))

    async def end_session(self, owner: str, client: str, session: str, *, at: datetime) -> bool:
        """See `EvidenceStore.end_session`."""
        return await self._writer.run(
            lambda transaction: evidence.end_session(transaction.connection, owner, client, session, at=at)
        )

    async def usage_events(self, owner: str, memory_id: str) -> list[UsageEvent]:
        """See `EvidenceStore.usage_events`."""
        return await self._readers.run(partial(usage.events_about, owner=owner, memory_id=memory_id))

    async def slices(self, owner: str, thread: SessionThread, memory_id: str) -> list[tuple[SliceKind, str]]:
        """See `EvidenceStore.slices`."""
        return await self._readers.run(partial(coverage.slices, owner=owner, thread=thread, memory_id=memory_id))

    # --- upkeep ---

    async def health(self) -> StoreHealth:
        """See `MemoryStore.health`; answers also when the database cannot be read."""
        writing = self._writer.health()
        try:
            figures = await self._readers.run(upkeep.read_figures)
        except StorageError as error:
            return upkeep.health_of(self._path, writing, None, problem=error.message)
        return upkeep.health_of(self._path, writing, figures)

    async def check_integrity(self) -> tuple[str, ...]:
        """See `MemoryStore.check_integrity`."""
        return await asyncio.to_thread(upkeep.find_faults, self._path)

    async def close(self) -> None:
        """See `MemoryStore.close`."""
        await self._loading.stop()
        await self._readers.close()
        await self._writer.close()
