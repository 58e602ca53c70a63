"""Seams of the memories themselves: store and evidence of use; clock and redaction beside them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

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
from sidecar.domain.redaction import RedactedText
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
from sidecar.ports.vectors import Embedding, Keys


class MemoryStore(Protocol):
    """Holds memories, their words and their vectors. The truth.

    Every write is one transaction, durable against power loss when it returns. Reads never wait for writes.
    Methods with an `owner` touch that owner's rows only.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses; nothing was changed then.
    """

    async def add(self, new: NewMemory) -> AddOutcome:
        """Store a memory with its words, links, in-band claims and an embed job.

        An active memory with the same owner, namespace and content hash makes it a duplicate: the existing id is
        returned, its fields stay, and links that are new are added to it. `supersedes` links set the target to
        superseded with a pointer to the new memory.

        Raises:
            MemoryNotFoundError: If a link's target does not exist or is forgotten; nothing is stored then.
            RequestKeyReusedError: If the request key came before with another digest.
        """
        ...

    async def get(self, owner: str, memory_id: str) -> Memory:
        """Return one memory in whatever state.

        Raises:
            MemoryNotFoundError: If it is not there or another owner's.
        """
        ...

    async def fetch(self, keys: Sequence[int], selection: MemoryFilter) -> list[Memory]:
        """Return those of these memories that the filter covers, in the order of the keys."""
        ...

    async def rank_fields(self, keys: Sequence[int]) -> dict[int, RankFields]:
        """Return what ranking needs to know of these memories; keys that are not there are left out."""
        ...

    async def edges(self, owner: str, memory_id: str) -> tuple[Edge, ...]:
        """Return the edges that start or end at a memory, by id."""
        ...

    async def list_page(
        self, selection: MemoryFilter, *, limit: int, cursor: str, order_by: OrderBy, is_descending: bool
    ) -> Page:
        """Return one page, stable while others write: no memory twice, none left out that was there throughout.

        Raises:
            InvalidInputError: If the cursor is not one of ours for this order.
        """
        ...

    async def count(self, selection: MemoryFilter) -> MemoryCounts:
        """Count the memories that the filter covers."""
        ...

    async def forget(
        self,
        owner: str,
        memory_ids: Sequence[str],
        *,
        is_forced: bool,
        is_purge: bool,
        request: RequestKey | None,
        golden_from: float = GOLDEN_CONFIDENCE,
    ) -> Forgetting:
        """Set memories to forgotten, or remove every byte of them; `skip_reason` says what is left alone.

        A request key that came before returns the first outcome and changes nothing.

        Purging removes the row, its words, vectors, edges, jobs and slices, and leaves no copy in database or journal.
        A purged successor gives its `supersedes` targets back their active state.
        """
        ...

    async def kept_forgetting(self, owner: str, request: RequestKey) -> Forgetting | None:
        """Return the outcome of an earlier `forget` with this key, None if there was none.

        Raises:
            RequestKeyReusedError: If the key came before with another digest.
        """
        ...

    async def restore(self, owner: str, memory_id: str) -> tuple[Memory, tuple[CatalogRow, ...]]:
        """Give a forgotten memory its previous state back, and return it with every row whose catalog fields are new.

        Raises:
            MemoryNotFoundError: If it is not there.
            MemoryNotForgottenError: If it is not forgotten.
            DuplicateMemoryError: If an active memory says the same by now.
        """
        ...

    async def catalog(self) -> list[CatalogRow]:
        """Return the catalog fields of all memories of all owners."""
        ...

    # --- words ---

    async def word_query(self, terms: Sequence[str]) -> WordQuery:
        """Weigh a query's terms by how rare they are in the store; terms nobody uses are dropped."""
        ...

    async def search_words(self, query: WordQuery, selection: MemoryFilter, *, limit: int) -> list[WordHit]:
        """Return up to `limit` memories that hold any of the terms, best BM25 first, equal ones newest first.

        The filter is applied before the cut. Its cost MUST NOT grow with how common the terms are.
        """
        ...

    async def word_scores(self, query: WordQuery, keys: Sequence[int]) -> dict[int, float]:
        """Return the BM25 score of each of these memories that holds any term."""
        ...

    # --- vectors ---

    async def set_model(self, fingerprint: ModelFingerprint) -> int:
        """Make this the model in use: queue a job for each memory that has no vector of it, and return how many.

        Vectors of other models stay.
        """
        ...

    async def due_jobs(self, *, now: datetime, limit: int) -> list[EmbedJob]:
        """Return jobs whose next try is due, the newest memory first, so that what was just said is found first."""
        ...

    async def save_embeddings(self, model_id: str, rows: Sequence[tuple[int, Embedding]]) -> list[int]:
        """Store `(key, (windows, dim))` vectors, end their jobs, and return the keys that were stored.

        Memories purged meanwhile are left out: their vectors must get into no index.
        """
        ...

    async def requeue(self, model_id: str, keys: Sequence[int]) -> None:
        """Drop these memories' vectors of a model, which turned out to be unusable, and queue their jobs anew."""
        ...

    async def fail_job(self, key: int, *, reason: str, next_try_at: datetime | None) -> None:
        """Count a failed attempt; without a next try the job is parked with this reason."""
        ...

    async def retry_parked(self) -> int:
        """Make every parked job due again and return how many there were."""
        ...

    async def job_counts(self) -> JobCounts:
        """Count the jobs that wait and those that were given up."""
        ...

    async def parked_jobs(self, *, limit: int) -> list[ParkedJob]:
        """Return jobs that were given up, oldest first."""
        ...

    async def embedded_keys(self, model_id: str) -> Keys:
        """Return the keys of all memories that have a vector of this model, ascending."""
        ...

    async def unlinked_keys(self, model_id: str) -> list[int]:
        """Return the keys, ascending, of memories that have a vector of this model but are still to be related."""
        ...

    async def embeddings(self, model_id: str, keys: Sequence[int]) -> list[tuple[int, Embedding]]:
        """Return the `(key, (windows, dim))` vectors of those keys that have one, rows L2-normalised."""
        ...

    # --- use ---

    async def record_recall(self, record: RecallRecord) -> None:
        """Note a delivered recall: one surfaced event a memory, and the memories' access statistics.

        Of a briefing the events are briefed ones, and access does not move. A recall that is known by its id, or by its
        request, only gets the memories that it did not have.

        Returns when it is queued, before everything asked for later; a failure costs a statistic, never an answer, and
        is counted in `StoreHealth.counters`.
        """
        ...

    async def was_briefed(self, owner: str, client: str, session: str, kind: ContextKind) -> bool:
        """Tell whether a session was given a briefing of this kind that held something."""
        ...

    async def claim_briefing(self, record: RecallRecord) -> str:
        """Note a briefing, unless its session was given another of its kind that held something.

        Returns:
            The id that it counts as: its own or, of a request that came before, the first one's. Empty if the session
            had one. Durable.

        Raises:
            RequestKeyReusedError: If the request key came before with another digest.
        """
        ...

    async def kept_recall(self, owner: str, request: RequestKey) -> str:
        """Return the id of the recall that came first with this request key, empty if there was none.

        Raises:
            RequestKeyReusedError: If the key came before with another digest.
        """
        ...

    async def multipliers(self, memory_ids: Sequence[str]) -> dict[str, float]:
        """Return the reinforcement multiplier of those memories that have one."""
        ...

    # --- upkeep ---

    async def health(self) -> StoreHealth:
        """Report schema, sizes and problems; reads only."""
        ...

    async def check_integrity(self) -> tuple[str, ...]:
        """Return every fault the database engine and our own invariants find; empty when all is well."""
        ...

    async def close(self) -> None:
        """Finish what was accepted, checkpoint and close."""
        ...


class EvidenceStore(Protocol):
    """Keeps the ledger of what sessions were shown, the slices that wait for a judge, and the cursors."""

    async def apply_batch(self, owner: str, batch: EvidenceBatch, *, at: datetime) -> BatchOutcome:
        """Take a batch's events and its cursor in one transaction; events that were seen before change nothing.

        Text is expected redacted. A shown memory that the same session superseded or built upon becomes a usage event,
        whichever of the two came first.
        """
        ...

    async def cursors(self, owner: str, client: str) -> list[TranscriptCursor]:
        """Return where each transcript of a client was left; all clients' for an empty name."""
        ...

    async def sessions(self, owner: str, *, limit: int) -> list[SessionCoverage]:
        """Return what is known of each session, the latest first."""
        ...

    async def session_recalls(self, owner: str, client: str, session: str) -> list[SessionRecall]:
        """Return the recalls of a session and its sub-agents, in the order in which they were first reported."""
        ...

    async def coverage(self, owner: str, client: str) -> list[ClientCoverage]:
        """Return how much of a client's sessions could be read; of all clients' for an empty name."""
        ...

    async def end_session(self, owner: str, client: str, session: str, *, at: datetime) -> bool:
        """Note that the client said at that time that a session ends; tell whether anything is known of it.

        Its judge jobs are due as soon as nothing more of it comes, unless it goes on; see `DueRule`.
        """
        ...

    async def usage_events(self, owner: str, memory_id: str) -> list[UsageEvent]:
        """Return the events about a memory or credited to it, newest first."""
        ...

    async def slices(self, owner: str, thread: SessionThread, memory_id: str) -> list[tuple[SliceKind, str]]:
        """Return the texts gathered for judging a shown memory, in order, those after the recall only."""
        ...


class Clock(Protocol):
    """Tells the time, and makes ids unique."""

    def now(self) -> datetime:
        """Return the time, UTC and aware."""
        ...

    def random_bytes(self, count: int) -> bytes:
        """Return unpredictable bytes."""
        ...


class Redactor(Protocol):
    """Takes secrets out of texts."""

    def redact(self, text: str) -> RedactedText:
        """Return the text with each secret replaced by `[redacted:<rule>]`, and what was found. Linear in time."""
        ...
