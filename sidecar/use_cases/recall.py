"""Recalls the memories that bear on a query: the likely ones, ranked by relevance times bounded factors."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sidecar.domain import ids, ranking
from sidecar.domain.memory import Caller, MemoryState, MemoryType, parse_fraction
from sidecar.domain.namespace import read_scope
from sidecar.domain.recall import (
    DEFAULT_RESULTS,
    MAX_RESULTS,
    MemoryFilter,
    RecallAnswer,
    RecalledMemory,
    ScoreParts,
)
from sidecar.domain.reinforcement import NEUTRAL, applied, is_exact_match
from sidecar.domain.relevance import FLOOR
from sidecar.domain.replay import KEPT_CANDIDATES, is_in_holdout
from sidecar.domain.store_values import RankedCandidate, RankFields, RecallRecord, RequestKey
from sidecar.domain.text import normalise
from sidecar.errors import EmptyQueryError, InvalidInputError
from sidecar.ports import Clock, MemoryStore, ValidationStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.expand import Expand, ExpandQuery
from sidecar.use_cases.find_candidates import Candidate, FindCandidates
from sidecar.use_cases.request_keys import request_of
from sidecar.use_cases.semantic_index import SemanticIndex

MAX_QUERY_CHARACTERS: Final = 4096
_SPARE: Final = 5


@dataclass(frozen=True, slots=True)
class RecallPolicy:
    """Thresholds of recall.

    Attributes:
        floor: Lowest relevance that is returned, 0 to 1.
        candidates: How many memories each way of finding proposes.
        age_half_life_days: See `ranking.age_factor`.
        machine_weight: See `ranking.provenance_factor`.
        default_results: Memories returned when the caller names no number.
        standing_rule_weight: Factor for memories that are delivered elsewhere as standing rules.
        holdout_share: Share of the sessions whose recalls are left unreinforced, 0 to 1, to measure the difference.
        is_recording: Whether candidates are kept, so that other constants can be tried on them.
    """

    floor: float = FLOOR
    candidates: int = 100
    age_half_life_days: float = 180.0
    machine_weight: float = 0.9
    default_results: int = DEFAULT_RESULTS
    standing_rule_weight: float = 0.6
    holdout_share: float = 0.0
    is_recording: bool = True


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is wanted.

    Attributes:
        limit: Most memories; 0 for the default.
        namespace: See `read_scope`.
        is_internal: A look-up of ours: nothing counts as delivered.
        min_relevance: The floor of this query, 0 to 1; None for the usual one.
        request_key: A repeated key counts as the same recall.
        expand: How related memories are added; None for none of them.
        is_unreinforced: Evidence of use is left out of account, to show what it changes.
    """

    text: str
    limit: int = 0
    namespace: str = ""
    types: tuple[MemoryType, ...] = ()
    min_importance: float = 0.0
    is_including_superseded: bool = False
    is_internal: bool = False
    min_relevance: float | None = None
    request_key: str = ""
    created_after: datetime | None = None
    created_before: datetime | None = None
    expand: ExpandQuery | None = None
    is_unreinforced: bool = False


@dataclass(frozen=True, slots=True)
class _Ranked:
    """What a recall came to. `candidates`: the best ones, also those beyond what was asked for."""

    memories: tuple[RecalledMemory, ...]
    candidates: tuple[RankedCandidate, ...]
    is_reinforced: bool


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
        expand: Expand | None = None,
        validation: ValidationStore | None = None,
    ) -> None:
        """Take what is needed.

        Args:
            expand: Adds related memories; without it there are none.
            validation: Knows which memories are disputed; without it none is.
        """
        self._expand = expand
        self._validation = validation
        self._find = FindCandidates(
            store=store, catalog=catalog, semantic=semantic, limit=policy.candidates, floor=policy.floor
        )
        self._store = store
        self._clock = clock
        self._policy = policy

    async def run(self, caller: Caller, query: RecallQuery) -> RecallAnswer:
        """Return the memories that bear on the query, best first; empty when none does.

        Raises:
            EmptyQueryError: If the query is blank.
            InvalidInputError: If a limit, depth, namespace or fraction is wrong.
            RequestKeyReusedError: If the request key came before with another request.
            StorageError: If neither way of finding could answer.
        """
        text = normalise(query.text)[:MAX_QUERY_CHARACTERS]
        if not text:
            raise EmptyQueryError
        limit = _checked_limit(query.limit or self._policy.default_results)
        if self._expand is not None and query.expand is not None:
            self._expand.check(query.expand)
        selection = self.selection(caller, query)
        request = _request(caller, query)
        # Beside the search, which takes longer, so that it costs nothing.
        candidates, kept_id = await asyncio.gather(
            self._find.run(text, selection, floor=_checked_floor(query)), self._kept_id(caller, request)
        )
        ranked = await self._rank(
            candidates.found, selection, limit, is_reinforced=not self._is_unreinforced(caller, query)
        )
        recalled = ranked.memories
        answer = RecallAnswer("", recalled, total_matched=len(candidates.found), degraded=candidates.degraded)
        if self._expand is not None and query.expand is not None and recalled:
            answer = replace(answer, expanded=await self._expand.run(caller.owner, recalled, query.expand, selection))
        return answer if query.is_internal else await self._delivered(caller, answer, ranked, request, kept_id)

    async def _kept_id(self, caller: Caller, request: RequestKey | None) -> str:
        return await self._store.kept_recall(caller.owner, request) if request is not None else ""

    def _is_unreinforced(self, caller: Caller, query: RecallQuery) -> bool:
        """Tell whether evidence of use is left out of account: asked for, or to measure what it does."""
        if query.is_unreinforced or query.is_internal or not caller.session:
            return query.is_unreinforced
        return is_in_holdout(caller.client, caller.session, share=self._policy.holdout_share)

    async def _delivered(
        self, caller: Caller, answer: RecallAnswer, ranked: _Ranked, request: RequestKey | None, kept_id: str
    ) -> RecallAnswer:
        """Note that an agent gets this answer, and give it an id: of a repeated request, the first one's."""
        memories = [found.memory for found in answer.memories] + [found.memory for found in answer.expanded]
        now = self._clock.now()
        recall_id = kept_id or ids.recall_id(int(now.timestamp() * 1000), self._clock.random_bytes(10))
        await self._store.record_recall(
            RecallRecord(
                recall_id=recall_id,
                owner=caller.owner,
                client=caller.client,
                session=caller.session,
                project=caller.project,
                at=now,
                memory_ids=tuple(memory.id for memory in memories),
                is_degraded=bool(answer.degraded),
                request=request,
                candidates=ranked.candidates if self._policy.is_recording else (),
                found_count=len(ranked.memories),
                is_unreinforced=not ranked.is_reinforced,
            )
        )
        return replace(answer, recall_id=recall_id)

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

    async def _rank(
        self, candidates: Sequence[Candidate], selection: MemoryFilter, limit: int, *, is_reinforced: bool
    ) -> _Ranked:
        """Return the best by score. Every candidate is ranked: evidence of use may lift one from far down."""
        if not candidates:
            return _Ranked(memories=(), candidates=(), is_reinforced=is_reinforced)
        now = self._clock.now()
        fields = await self._store.rank_fields([candidate.key for candidate in candidates])
        parts = {
            c.key: self._parts(c, fields[c.key], now, is_reinforced=is_reinforced)
            for c in candidates
            if c.key in fields
        }
        # Equal scores newest first: keys are given out in order.
        best = sorted(parts, key=lambda key: (-parts[key].score, -key))
        # A few more than asked, in case one changed since the catalog's mask was made.
        likely = best[: limit + _SPARE]
        memories, disputed = await asyncio.gather(self._store.fetch(likely, selection), self._disputed(likely))
        return _Ranked(
            memories=tuple(
                RecalledMemory(memory, parts[memory.key], memory.key in disputed) for memory in memories[:limit]
            ),
            candidates=tuple(_ranked_candidate(key, parts[key]) for key in best[:KEPT_CANDIDATES]),
            is_reinforced=is_reinforced,
        )

    async def _disputed(self, keys: Sequence[int]) -> frozenset[int]:
        return await self._validation.disputed_keys(keys) if self._validation is not None and keys else frozenset()

    def _parts(self, candidate: Candidate, fields: RankFields, now: datetime, *, is_reinforced: bool) -> ScoreParts:
        policy = self._policy
        reinforcement = (
            applied(fields.reinforcement, similarity=candidate.similarity, word_share=candidate.word_share)
            if is_reinforced
            else NEUTRAL
        )
        standing_weight = policy.standing_rule_weight if fields.is_standing_rule else 1.0
        return ScoreParts(
            similarity=candidate.similarity,
            word_score=candidate.word_share,
            relevance=candidate.relevance,
            type_weight=ranking.type_weight(fields.memory_type) * standing_weight,
            age_factor=ranking.age_factor(fields.created_at, now, half_life_days=policy.age_half_life_days),
            provenance_factor=ranking.provenance_factor(fields.provenance, machine_weight=policy.machine_weight),
            reinforcement=reinforcement,
        )


def _request(caller: Caller, query: RecallQuery) -> RequestKey | None:
    if not query.request_key or query.is_internal:
        return None
    return request_of(
        query.request_key,
        caller.project,
        query.text,
        query.limit,
        query.namespace,
        *sorted(query.types),
        query.min_importance,
        query.is_including_superseded,
        query.created_after,
        query.created_before,
    )


def _checked_floor(query: RecallQuery) -> float | None:
    if query.min_relevance is None:
        return None
    return parse_fraction(query.min_relevance, field_name="min_relevance")


def _ranked_candidate(key: int, parts: ScoreParts) -> RankedCandidate:
    return RankedCandidate(
        key, parts.relevance, parts.factors, is_exact=is_exact_match(parts.similarity, parts.word_score)
    )


def _checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_RESULTS:
        raise InvalidInputError("n_results", limit, f"a whole number from 1 to {MAX_RESULTS}")
    return limit
