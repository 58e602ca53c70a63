"""Stores a memory: normalise, redact, check, store, acknowledge. Embedding comes after, in the background."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sidecar.domain import ids
from sidecar.domain.memory import (
    DEFAULT_CONFIDENCE,
    DEFAULT_IMPORTANCE,
    MAX_CONTENT_BYTES,
    MAX_METADATA_BYTES,
    Caller,
    Link,
    Memory,
    MemoryType,
    Provenance,
    parse_fraction,
)
from sidecar.domain.namespace import GLOBAL, NamespaceScope, parse_namespace, project_namespace
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.redaction import Redaction
from sidecar.domain.store_values import AddOutcome, Edge, NewMemory
from sidecar.domain.words import tokenise
from sidecar.errors import ContentTooLargeError, EmbedderUnavailableError, InvalidInputError
from sidecar.ports import Clock, MemoryStore, Redactor
from sidecar.use_cases.auto_link import BY_DEFAULT, AutoLink, AutoLinkWish
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.clean_text import LONG_TEXT_CHARACTERS, CleanText, clean
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.embed_memories import EmbedMemories
from sidecar.use_cases.request_keys import check_request_key
from sidecar.use_cases.semantic_index import SemanticIndex

MAX_LINKS: Final = 64
MAX_HINTS: Final = 10
LONGEST_INDEX_WAIT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class RememberQuery:
    """What to store. What is None means its default; see `RememberDefaults`.

    Attributes:
        namespace: Empty for the caller's project, or `global` without one.
    """

    content: str
    memory_type: MemoryType | None = None
    namespace: str = ""
    importance: float | None = None
    confidence: float | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    provenance: Provenance = Provenance.AGENT
    request_key: str = ""
    is_waiting_for_index: bool = False
    auto_link: AutoLinkWish = BY_DEFAULT


@dataclass(frozen=True, slots=True)
class RememberDefaults:
    """What holds where the caller says nothing. Importance and confidence are 0 to 1."""

    memory_type: MemoryType = MemoryType.SESSION
    importance: float = DEFAULT_IMPORTANCE
    confidence: float = DEFAULT_CONFIDENCE


USUAL: Final = RememberDefaults()


@dataclass(frozen=True, slots=True)
class RememberAnswer:
    """What became of it.

    Attributes:
        auto_edges: Relations that were made automatically; empty unless it was waited for.
        similar: (id, cosine) pairs, nearest first, once it is embedded.
    """

    outcome: AddOutcome
    redactions: tuple[Redaction, ...]
    is_indexed: bool
    auto_edges: tuple[Edge, ...] = ()
    similar: tuple[tuple[str, float], ...] = ()


class Remember:
    """Stores memories."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        catalog: MemoryCatalog,
        semantic: SemanticIndex,
        embedding: EmbedMemories,
        redactor: Redactor,
        completion: Completion,
        clock: Clock,
        auto_link: AutoLink | None = None,
        defaults: RememberDefaults = USUAL,
    ) -> None:
        """Take what is needed; without `auto_link` nothing is related by itself."""
        self._defaults = defaults
        self._store = store
        self._auto_link = auto_link
        self._catalog = catalog
        self._semantic = semantic
        self._embedding = embedding
        self._redactor = redactor
        self._completion = completion
        self._clock = clock

    async def run(self, caller: Caller, query: RememberQuery) -> RememberAnswer:
        """Store a memory and return when it is safe on disk.

        Raises:
            InvalidInputError: Or a leaf of it, if a field is wrong; nothing is stored then.
            MemoryNotFoundError: If a link's target does not exist; nothing is stored then.
            StorageError: Or a leaf of it, if the disk refuses.
        """
        if self._auto_link is not None:
            self._auto_link.check(query.auto_link)
        cleaned = await self._clean(query)
        new = self._new_memory(caller, query, cleaned)
        outcome = await self._completion.run(self._add(new, query.auto_link))
        if not query.is_waiting_for_index:
            return RememberAnswer(outcome, cleaned.findings, outcome.is_indexed)
        stored = await self._store.get(caller.owner, outcome.memory_id)
        is_indexed = await self._wait_for_index(stored.key)
        edges = await self._automatic_edges(caller, outcome.memory_id, query.links) if is_indexed else ()
        similar = await self._similar(caller, new.memory, outcome)
        return RememberAnswer(outcome, cleaned.findings, is_indexed, edges, similar)

    async def _add(self, new: NewMemory, wish: AutoLinkWish) -> AddOutcome:
        outcome = await self._store.add(new)
        self._catalog.apply(outcome.changed)
        if self._auto_link is not None and outcome.memory_id == new.memory.id:
            # The added one comes first.
            self._auto_link.expect(outcome.changed[0], wish)
        self._embedding.wake()
        return outcome

    async def _clean(self, query: RememberQuery) -> CleanText:
        """Return content and metadata, normalised and without secrets, and what was taken out of either."""
        # Before redaction, whose cost grows with the text.
        _require_size("content", query.content, MAX_CONTENT_BYTES)
        metadata = json.dumps(query.metadata, ensure_ascii=False) if query.metadata else ""
        _require_size("metadata", metadata, MAX_METADATA_BYTES)
        if len(query.content) + len(metadata) > LONG_TEXT_CHARACTERS:
            # A long text takes milliseconds, in which nobody else would be answered.
            cleaned = await asyncio.to_thread(clean, self._redactor, query.content, query.metadata)
        else:
            cleaned = clean(self._redactor, query.content, query.metadata)
        if not cleaned.content:
            raise InvalidInputError("content", query.content, "text of at least one visible character")
        _require_size("content", cleaned.content, MAX_CONTENT_BYTES)
        _require_size("metadata", json.dumps(cleaned.metadata, ensure_ascii=False), MAX_METADATA_BYTES)
        return cleaned

    def _new_memory(self, caller: Caller, query: RememberQuery, cleaned: CleanText) -> NewMemory:
        if len(query.links) > MAX_LINKS:
            raise InvalidInputError("links", len(query.links), f"at most {MAX_LINKS} links")
        check_request_key(query.request_key)
        namespace = parse_namespace(query.namespace) if query.namespace else project_namespace(caller.project)
        now = self._clock.now()
        memory = Memory(
            id=ids.memory_id(_unix_ms(now), self._clock.random_bytes(10)),
            owner=caller.owner,
            namespace=namespace,
            type=query.memory_type or self._defaults.memory_type,
            content=cleaned.content,
            content_hash=hashlib.sha256(cleaned.content.encode()).hexdigest(),
            created_at=now,
            accessed_at=now,
            importance=self._fraction(query.importance, self._defaults.importance, "importance"),
            confidence=self._fraction(query.confidence, self._defaults.confidence, "confidence"),
            provenance=query.provenance,
            client=caller.client,
            session=caller.session,
            metadata=cleaned.metadata,
        )
        return NewMemory(
            memory=memory,
            tokens=tokenise(cleaned.content),
            links=query.links,
            request_key=query.request_key,
            request_digest=_digest(memory, query.links) if query.request_key else "",
            project=caller.project,
        )

    @staticmethod
    def _fraction(given: float | None, default: float, field_name: str) -> float:
        return parse_fraction(default if given is None else given, field_name=field_name)

    async def _wait_for_index(self, key: int) -> bool:
        try:
            return await asyncio.wait_for(self._embedding.wait_for(key), LONGEST_INDEX_WAIT_S)
        except TimeoutError:
            return False

    async def _automatic_edges(self, caller: Caller, memory_id: str, declared: tuple[Link, ...]) -> tuple[Edge, ...]:
        named = {(link.relation, link.memory_id) for link in declared}
        edges = await self._store.edges(caller.owner, memory_id)
        return tuple(e for e in edges if e.source_id == memory_id and (e.relation, e.target_id) not in named)

    async def _similar(self, caller: Caller, memory: Memory, outcome: AddOutcome) -> tuple[tuple[str, float], ...]:
        scope = NamespaceScope(tuple(dict.fromkeys((memory.namespace, GLOBAL))))
        selection = MemoryFilter(owner=caller.owner, scope=scope)
        try:
            _, hits = await self._semantic.nearest(
                memory.content, limit=MAX_HINTS + 1, allowed=self._catalog.mask(selection)
            )
        except EmbedderUnavailableError:
            # Hints are a courtesy: the memory is stored, and `indexed` tells that it has no vector yet.
            return ()
        cosines = dict(hits)
        near = await self._store.fetch([key for key, _ in hits], selection)
        return tuple((m.id, cosines[m.key]) for m in near if m.id != outcome.memory_id)[:MAX_HINTS]


def _require_size(field_name: str, text: str, limit_bytes: int) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit_bytes:
        raise ContentTooLargeError(field_name, size, limit_bytes)


def _digest(memory: Memory, links: tuple[Link, ...]) -> str:
    parts = (
        memory.namespace,
        memory.type,
        memory.content_hash,
        repr(memory.importance),
        repr(memory.confidence),
        memory.provenance,
        json.dumps(memory.metadata, sort_keys=True, ensure_ascii=False),
        *(f"{link.relation}>{link.memory_id}" for link in links),
    )
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def _unix_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
