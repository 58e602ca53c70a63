"""Finds the memories that may bear on a query, by meaning and by words, and gives each one relevance.

Both ways of finding propose candidates, each candidate is then scored by both, and filters apply before either cut.
When one way cannot answer, the other does, and the answer says so.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.domain.recall import DegradedLeg, MemoryFilter, RecallLeg
from sidecar.domain.relevance import FLOOR, Surroundings, relevance, word_commonness
from sidecar.domain.store_values import WordHit, WordQuery
from sidecar.domain.words import tokenise
from sidecar.errors import EmbedderUnavailableError, StorageError
from sidecar.ports import Embedding, MemoryStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.semantic_index import SemanticIndex

log = logging.getLogger(__name__)

_NO_WORDS = WordQuery((), 0.0)
_NONE_NEAR: Mapping[int, tuple[int | None, ...]] = {}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be recalled.

    Attributes:
        similarity: Raw cosine; None if its meaning or the query's is not known.
        word_share: BM25 over the query's best possible, 0 to 1; None if words say nothing of this query.
        relevance: From the two and from what was remembered next to it, 0 to 1.
    """

    key: int
    similarity: float | None
    word_share: float | None
    relevance: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """All candidates above the floor, in no order, and the ways of finding that took no part."""

    found: tuple[Candidate, ...]
    degraded: tuple[DegradedLeg, ...] = ()


@dataclass(frozen=True, slots=True)
class _ByMeaning:
    query: Embedding
    cosines: dict[int, float]


@dataclass(frozen=True, slots=True)
class _ByWords:
    query: WordQuery
    hits: list[WordHit]


class FindCandidates:
    """Finds candidates."""

    def __init__(
        self, *, store: MemoryStore, catalog: MemoryCatalog, semantic: SemanticIndex, limit: int, floor: float
    ) -> None:
        """Take what is needed.

        Args:
            limit: How many memories each way of finding proposes.
            floor: Lowest relevance of a candidate, 0 to 1.
        """
        self._store = store
        self._catalog = catalog
        self._semantic = semantic
        self._limit = limit
        self._floor = floor

    async def run(self, text: str, selection: MemoryFilter, *, floor: float | None = None) -> Candidates:
        """Return the candidates for a normalised query.

        Args:
            floor: Lowest relevance of a candidate, 0 to 1; None for the usual one.

        Raises:
            StorageError: If neither way of finding could answer.
        """
        floor = self._floor if floor is None else floor
        meaning, words = await asyncio.gather(self._by_meaning(text, selection), self._by_words(text, selection))
        if isinstance(meaning, EmbedderUnavailableError):
            if isinstance(words, StorageError):
                raise words
            scores = {hit.key: hit.score for hit in words.hits}
            leg = DegradedLeg(RecallLeg.MEANING, meaning.message)
            return Candidates(_scored({}, scores, words.query, floor=floor), (leg,))
        if isinstance(words, StorageError):
            leg = DegradedLeg(RecallLeg.WORDS, words.message)
            return Candidates(_scored(meaning.cosines, {}, _NO_WORDS, floor=floor), (leg,))
        cosines, scores = await self._completed(meaning, words)
        near = self._catalog.neighbours(scores.keys() | cosines.keys())
        return Candidates(_scored(cosines, scores, words.query, floor=floor, near=near))

    async def _by_meaning(self, text: str, selection: MemoryFilter) -> _ByMeaning | EmbedderUnavailableError:
        try:
            query, nearest = await self._semantic.nearest(
                text, limit=self._limit, allowed=self._catalog.mask(selection)
            )
        except EmbedderUnavailableError as error:
            return error
        return _ByMeaning(query, dict(nearest))

    async def _by_words(self, text: str, selection: MemoryFilter) -> _ByWords | StorageError:
        try:
            query = await self._store.word_query(tuple(dict.fromkeys(tokenise(text))))
            hits = await self._store.search_words(query, selection, limit=self._limit) if query.terms else []
        except StorageError as error:
            log.warning("words cannot be searched", extra={"reason": error.reason})
            return error
        return _ByWords(query, hits)

    async def _completed(self, meaning: _ByMeaning, words: _ByWords) -> tuple[dict[int, float], dict[int, float]]:
        """Return cosine and word score of every candidate, whichever way it was found."""
        scores = {hit.key: hit.score for hit in words.hits}
        only_words = [key for key in scores if key not in meaning.cosines]
        only_meaning = [key for key in meaning.cosines if key not in scores]
        more_cosines, more_scores = await asyncio.gather(
            self._semantic.similarities(meaning.query, only_words), self._word_scores(words.query, only_meaning)
        )
        return meaning.cosines | more_cosines, scores | more_scores

    async def _word_scores(self, query: WordQuery, keys: list[int]) -> dict[int, float]:
        return await self._store.word_scores(query, keys) if keys and query.terms else {}


def _scored(
    cosines: Mapping[int, float],
    scores: Mapping[int, float],
    query: WordQuery,
    *,
    floor: float,
    near: Mapping[int, tuple[int | None, ...]] = _NONE_NEAR,
) -> tuple[Candidate, ...]:
    found: list[Candidate] = []
    keys = cosines.keys() | scores.keys()
    best = query.best_score
    shares = {key: min(scores.get(key, 0.0) / best, 1.0) for key in keys} if best > 0 else {}
    commonness = word_commonness(shares.values())
    for key in keys:
        similarity, share = cosines.get(key), shares.get(key)
        likely = relevance(similarity, share, Surroundings(commonness))
        # Neighbours lift what is relevant by itself; what nobody would be shown is not carried along by them.
        if key in near and likely >= FLOOR:
            beside = tuple(0.0 if other is None else shares.get(other, 0.0) for other in near[key])
            likely = relevance(similarity, share, Surroundings(commonness, beside))
        if likely >= floor:
            found.append(Candidate(key, similarity, share, likely))
    return tuple(found)
