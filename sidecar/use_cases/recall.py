"""Finds the memories that bear on a query: meaning and words together, on one calibrated scale.

Both ways of finding give candidates, each candidate is then scored by both, and filters apply before either cut. When
one way cannot answer, the other does, and the answer says so.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sidecar.domain import ids, ranking
from sidecar.domain.memory import Caller, Memory, MemoryState, MemoryType, parse_fraction
from sidecar.domain.namespace import read_scope
from sidecar.domain.recall import (
    DEFAULT_RESULTS,
    MAX_RESULTS,
    DegradedLeg,
    MemoryFilter,
    RecallAnswer,
    RecalledMemory,
    RecallLeg,
    ScoreParts,
)
from sidecar.domain.reinforcement import NEUTRAL
from sidecar.domain.relevance import FLOOR, relevance
from sidecar.domain.store_values import RecallRecord, WordHit, WordQuery
from sidecar.domain.text import normalise
from sidecar.domain.words import tokenise
from sidecar.errors import EmbedderUnavailableError, EmptyQueryError, InvalidInputError, StorageError
from sidecar.ports import Clock, Embedding, MemoryStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.semantic_index import SemanticIndex

MAX_QUERY_CHARACTERS: Final = 4096
_FETCHED_PER_RESULT: Final = 4
_FEWEST_FETCHED: Final = 40
"""Read this many of the best candidates: factors outside the catalog are bounded, so none from further down gets in."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecallPolicy:
    """Thresholds of recall.

    Attributes:
        floor: Lowest relevance that is returned, 0 to 1.
        candidates: How many memories each way of finding proposes.
        age_half_life_days: See `ranking.age_factor`.
        machine_weight: See `ranking.provenance_factor`.
        default_results: Memories returned when the caller names no number.
    """

    floor: float = FLOOR
    candidates: int = 100
    age_half_life_days: float = 180.0
    machine_weight: float = 0.9
    default_results: int = DEFAULT_RESULTS


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is wanted.

    Attributes:
        limit: Most memories; 0 for the default.
        namespace: See `read_scope`.
        is_internal: A look-up of ours: nothing counts as delivered.
    """

    text: str
    limit: int = 0
    namespace: str = ""
    types: tuple[MemoryType, ...] = ()
    min_importance: float = 0.0
    is_including_superseded: bool = False
    is_internal: bool = False
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    key: int
    similarity: float | None
    word_share: float | None
    relevance: float


class Recall:
    """Recalls memories."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        catalog: MemoryCatalog,
        semantic: SemanticIndex,
        clock: Clock,
        policy: RecallPolicy,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._semantic = semantic
        self._clock = clock
        self._policy = policy

    async def run(self, caller: Caller, query: RecallQuery) -> RecallAnswer:
        """Return the memories that bear on the query, best first; empty when none does.

        Raises:
            EmptyQueryError: If the query is blank.
            InvalidInputError: If a limit, namespace or fraction is wrong.
            StorageError: If neither way of finding could answer.
        """
        text = normalise(query.text)[:MAX_QUERY_CHARACTERS]
        if not text:
            raise EmptyQueryError
        limit = _checked_limit(query.limit or self._policy.default_results)
        selection = self.selection(caller, query)
        candidates, degraded = await self._candidates(text, selection)
        answer = await self._rank(candidates, selection, limit)
        answer = replace(answer, degraded=degraded)
        if query.is_internal:
            return answer
        now = self._clock.now()
        recall_id = ids.recall_id(int(now.timestamp() * 1000), self._clock.random_bytes(10))
        answer = replace(answer, recall_id=recall_id)
        await self._store.record_recall(
            RecallRecord(
                recall_id=recall_id,
                owner=caller.owner,
                client=caller.client,
                session=caller.session,
                project=caller.project,
                at=now,
                memory_ids=tuple(recalled.memory.id for recalled in answer.memories),
                is_degraded=bool(degraded),
            )
        )
        return answer

    @staticmethod
    def selection(caller: Caller, query: RecallQuery) -> MemoryFilter:
        """Return which memories the query may return."""
        states = (
            (MemoryState.ACTIVE, MemoryState.SUPERSEDED) if query.is_including_superseded else (MemoryState.ACTIVE,)
        )
        return MemoryFilter(
            owner=caller.owner,
            scope=read_scope(query.namespace, project=caller.project),
            types=query.types,
            min_importance=parse_fraction(query.min_importance, field_name="min_importance"),
            states=states,
            created_after=query.created_after,
            created_before=query.created_before,
        )

    async def _candidates(self, text: str, selection: MemoryFilter) -> tuple[list[_Candidate], tuple[DegradedLeg, ...]]:
        word_query, word_hits, words_failed = WordQuery((), 0.0), list[WordHit](), None

        async def find_words() -> None:
            nonlocal word_query, word_hits
            word_query = await self._store.word_query(tuple(dict.fromkeys(tokenise(text))))
            if word_query.terms:
                word_hits = await self._store.search_words(word_query, selection, limit=self._policy.candidates)

        meaning, words_failed = await asyncio.gather(self._nearest(text, selection), _tolerate_storage(find_words))
        degraded: list[DegradedLeg] = []
        if isinstance(meaning, EmbedderUnavailableError):
            if words_failed is not None:
                raise words_failed
            degraded.append(DegradedLeg(RecallLeg.MEANING, meaning.message))
            return self._scored({}, {h.key: h.score for h in word_hits}, word_query, has_meaning=False), tuple(degraded)
        embedding, nearest = meaning
        cosines = dict(nearest)
        scores = {hit.key: hit.score for hit in word_hits}
        if words_failed is not None:
            degraded.append(DegradedLeg(RecallLeg.WORDS, words_failed.message))
            return self._scored(cosines, None, word_query), tuple(degraded)
        await self._complete(embedding, cosines, scores, word_query)
        return self._scored(cosines, scores, word_query), tuple(degraded)

    async def _nearest(
        self, text: str, selection: MemoryFilter
    ) -> tuple[Embedding, list[tuple[int, float]]] | EmbedderUnavailableError:
        try:
            return await self._semantic.nearest(
                text, limit=self._policy.candidates, allowed=self._catalog.mask(selection)
            )
        except EmbedderUnavailableError as error:
            return error

    async def _complete(
        self, embedding: Embedding, cosines: dict[int, float], scores: dict[int, float], query: WordQuery
    ) -> None:
        """Give every candidate both figures, whichever way it was found."""
        only_words = [key for key in scores if key not in cosines]
        only_meaning = [key for key in cosines if key not in scores]
        if only_words:
            cosines.update(await self._semantic.similarities(embedding, only_words))
        if only_meaning and query.terms:
            scores.update(await self._store.word_scores(query, only_meaning))

    def _scored(
        self,
        cosines: dict[int, float],
        scores: dict[int, float] | None,
        query: WordQuery,
        *,
        has_meaning: bool = True,
    ) -> list[_Candidate]:
        keys = dict.fromkeys((*cosines, *(scores or ())))
        candidates: list[_Candidate] = []
        for key in keys:
            similarity = cosines.get(key) if has_meaning else None
            share: float | None = None
            if scores is not None:
                share = min(scores.get(key, 0.0) / query.best_score, 1.0) if query.best_score > 0 else 0.0
            candidates.append(_Candidate(key, similarity, share, relevance(similarity, share)))
        return [candidate for candidate in candidates if candidate.relevance >= self._policy.floor]

    async def _rank(self, candidates: Sequence[_Candidate], selection: MemoryFilter, limit: int) -> RecallAnswer:
        now = self._clock.now()
        likely = sorted(candidates, key=lambda c: (-c.relevance * self._known_factor(c.key), -c.key))
        likely = likely[: max(limit * _FETCHED_PER_RESULT, _FEWEST_FETCHED)]
        by_key = {candidate.key: candidate for candidate in likely}
        memories = await self._store.fetch([candidate.key for candidate in likely], selection)
        multipliers = await self._store.multipliers([memory.id for memory in memories])
        recalled = [
            RecalledMemory(memory, self._parts(memory, by_key[memory.key], multipliers.get(memory.id, NEUTRAL), now))
            for memory in memories
        ]
        return RecallAnswer("", tuple(ranking.order(recalled)[:limit]), total_matched=len(candidates))

    def _known_factor(self, key: int) -> float:
        return ranking.type_weight(self._catalog.type_of(key))

    def _parts(self, memory: Memory, candidate: _Candidate, multiplier: float, now: datetime) -> ScoreParts:
        return ScoreParts(
            similarity=candidate.similarity,
            word_score=candidate.word_share,
            relevance=candidate.relevance,
            type_weight=ranking.type_weight(memory.type),
            age_factor=ranking.age_factor(memory.created_at, now, half_life_days=self._policy.age_half_life_days),
            provenance_factor=ranking.provenance_factor(memory.provenance, machine_weight=self._policy.machine_weight),
            reinforcement=multiplier,
        )


async def _tolerate_storage(find: Callable[[], Awaitable[None]]) -> StorageError | None:
    """Return the error instead of raising it: the other leg may still answer."""
    try:
        await find()
    except StorageError as error:
        log.warning("words cannot be searched", extra={"reason": error.reason})
        return error
    return None


def _checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_RESULTS:
        raise InvalidInputError("n_results", limit, f"a whole number from 1 to {MAX_RESULTS}")
    return limit
