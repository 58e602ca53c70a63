"""A collection in a real store: SQLite, FAISS and the default model, asked through the use case that serves recalls."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.system_clock import SystemClock
from sidecar.domain import ids
from sidecar.domain.edges import NewEdge
from sidecar.domain.memory import Caller, Memory, Relation
from sidecar.domain.recall import RecalledMemory
from sidecar.domain.store_values import NewMemory
from sidecar.domain.text import normalise
from sidecar.domain.words import tokenise
from sidecar.ports import Embedder
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.recall import Recall, RecallPolicy, RecallQuery
from sidecar.use_cases.semantic_index import SemanticIndex
from tests.bench.quality.collections import Collection, Document
from tests.bench.quality.golden_set import NOW

OWNER: Final = "local"
DEPTH: Final = 100
_BATCH: Final = 32
_ID_BYTES: Final = 10


class _AskingTime(SystemClock):
    """The time at which questions are asked."""

    def now(self) -> datetime:
        return NOW


@dataclass(frozen=True)
class FilledStore:
    """A store that holds a collection.

    Attributes:
        names: The data set's name of each key. A text that is there twice is one memory under its first name.
        first_names: For each document, the name its memory has.
    """

    store: SqliteStore
    semantic: SemanticIndex
    catalog: MemoryCatalog
    recall: Recall
    names: dict[int, str]
    first_names: dict[str, str]

    async def ours(self, text: str, project: str) -> tuple[RecalledMemory, ...]:
        """Return what a recall delivers, best first."""
        answer = await self.recall.run(_caller(project), _query(text))
        return answer.memories

    async def words_only(self, text: str, project: str) -> list[str]:
        """Return what word search alone finds, best first."""
        query = await self.store.word_query(tuple(dict.fromkeys(tokenise(normalise(text)))))
        selection = self.recall.selection(_caller(project), _query(text))
        hits = await self.store.search_words(query, selection, limit=DEPTH) if query.terms else []
        return [self.names[hit.key] for hit in hits]

    async def vectors_only(self, text: str, project: str) -> list[str]:
        """Return what the vector index alone finds, best first."""
        selection = self.recall.selection(_caller(project), _query(text))
        _, hits = await self.semantic.nearest(normalise(text), limit=DEPTH, allowed=self.catalog.mask(selection))
        return [self.names[key] for key, _ in hits]


@asynccontextmanager
async def filled_store(
    collection: Collection, folder: Path, embedder: Embedder, policy: RecallPolicy
) -> AsyncIterator[FilledStore]:
    """Fill a store in a folder with a collection, and close it in the end."""
    clock = _AskingTime()
    store = SqliteStore.open(folder / "memories.db", clock=clock)
    catalog = MemoryCatalog()
    semantic = SemanticIndex(
        store=store, load_embedder=lambda: embedder, new_index=FaissVectorIndex, snapshots=None, cache_size=1
    )
    try:
        await semantic.load()
        filled = FilledStore(
            store=store,
            semantic=semantic,
            catalog=catalog,
            recall=Recall(
                store=store, catalog=catalog, semantic=semantic, clock=clock, policy=policy, validation=store
            ),
            names={},
            first_names={},
        )
        ids_by_name = await _add(collection.documents, filled)
        await _replace(collection.documents, ids_by_name, filled)
        await _embed(filled)
        yield filled
    finally:
        semantic.close()
        await store.close()


async def _add(documents: Sequence[Document], filled: FilledStore) -> dict[str, str]:
    """Store the texts; return the id of each document's memory."""
    ids_by_name: dict[str, str] = {}
    names_by_id: dict[str, str] = {}
    for number, document in enumerate(documents):
        outcome = await filled.store.add(_new_memory(document, number))
        filled.catalog.apply(outcome.changed)
        ids_by_name[document.name] = outcome.memory_id
        first_name = names_by_id.setdefault(outcome.memory_id, document.name)
        filled.first_names[document.name] = first_name
        if not outcome.is_deduplicated:
            filled.names[outcome.changed[0].key] = document.name
    return ids_by_name


async def _replace(documents: Sequence[Document], ids_by_name: dict[str, str], filled: FilledStore) -> None:
    for document in documents:
        if document.superseded_by:
            edge = NewEdge(
                source_id=ids_by_name[document.superseded_by],
                target_id=ids_by_name[document.name],
                relation=Relation.SUPERSEDES,
            )
            stored = await filled.store.put_edge(OWNER, edge)
            filled.catalog.apply(stored.changed)


async def _embed(filled: FilledStore) -> None:
    while jobs := await filled.store.due_jobs(now=NOW, limit=_BATCH):
        embeddings = await filled.semantic.embed([job.content for job in jobs])
        rows = [(job.key, embedding) for job, embedding in zip(jobs, embeddings, strict=True)]
        await filled.store.save_embeddings(filled.semantic.model_id, rows)
        await filled.semantic.add(rows)


def _new_memory(document: Document, number: int) -> NewMemory:
    content = normalise(document.text)
    memory = Memory(
        id=ids.memory_id(int(document.created_at.timestamp() * 1000), number.to_bytes(_ID_BYTES, "big")),
        owner=OWNER,
        namespace=f"project:{document.project}",
        type=document.memory_type,
        content=content,
        content_hash=hashlib.sha256(content.encode()).hexdigest(),
        created_at=document.created_at,
        accessed_at=document.created_at,
        client="bench",
        session=document.session,
    )
    return NewMemory(memory, tokenise(content))


def _caller(project: str) -> Caller:
    return Caller(owner=OWNER, client="bench", project=project)


def _query(text: str) -> RecallQuery:
    return RecallQuery(text, limit=DEPTH, is_internal=True)
