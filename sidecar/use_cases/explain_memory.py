"""Tells why a memory ranks as it does, and which memories somebody should look at."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.hygiene import MemoryEvidence, ReviewItem
from sidecar.domain.judge_jobs import StoredVerdict
from sidecar.domain.memory import Caller
from sidecar.domain.recall import MAX_RESULTS, RecalledMemory
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, JudgeStore, ReinforcementStore
from sidecar.use_cases.memory_ids import require_id
from sidecar.use_cases.recall import Recall, RecallQuery

DEFAULT_REVIEW_ITEMS: Final = 100
MAX_REVIEW_ITEMS: Final = 1000


@dataclass(frozen=True, slots=True)
class RankChange:
    """What reinforcement changed for a query.

    Attributes:
        rank: From 1; 0 if the memory is not among the first 100. `rank_without`: as it would be without.
        relevance: 0 to 1; so far as it was found, as the other figures.
        reinforcement: The factor that was applied.
    """

    rank: int
    rank_without: int
    score: float
    score_without: float
    relevance: float
    reinforcement: float


@dataclass(frozen=True, slots=True)
class MemoryExplanation:
    """Why a memory ranks as it does. `rank_change`: None without a query."""

    evidence: MemoryEvidence
    verdicts: tuple[StoredVerdict, ...]
    rank_change: RankChange | None


class ExplainMemory:
    """Explains memories."""

    def __init__(self, *, store: ReinforcementStore, judging: JudgeStore, recall: Recall, clock: Clock) -> None:
        self._store = store
        self._judging = judging
        self._recall = recall
        self._clock = clock

    async def run(self, caller: Caller, memory_id: str, *, query: str = "", namespace: str = "") -> MemoryExplanation:
        """Return what bears on a memory's rank, and with a query what reinforcement changed for that.

        Raises:
            MemoryNotFoundError: If it is not there.
            InvalidInputError: If the id is none, or the namespace is wrong.
        """
        require_id(memory_id)
        evidence = await self._store.memory_evidence(caller.owner, memory_id, at=self._clock.now())
        verdicts = await self._judging.verdicts(caller.owner, memory_id)
        change = await self._rank_change(caller, memory_id, query, namespace) if query.strip() else None
        return MemoryExplanation(evidence, tuple(verdicts), change)

    async def review_items(self, caller: Caller, *, limit: int) -> list[ReviewItem]:
        """Return the memories that misled several sessions since that was last settled.

        Raises:
            InvalidInputError: If the limit is out of range.
        """
        limit = limit or DEFAULT_REVIEW_ITEMS
        if not 1 <= limit <= MAX_REVIEW_ITEMS:
            raise InvalidInputError("limit", limit, f"a whole number from 1 to {MAX_REVIEW_ITEMS}")
        return await self._store.review_items(caller.owner, at=self._clock.now(), limit=limit)

    async def _rank_change(self, caller: Caller, memory_id: str, query: str, namespace: str) -> RankChange:
        with_it, without = await asyncio.gather(
            *(
                self._recall.run(
                    caller,
                    RecallQuery(
                        query, limit=MAX_RESULTS, namespace=namespace, is_internal=True, is_unreinforced=is_unreinforced
                    ),
                )
                for is_unreinforced in (False, True)
            )
        )
        rank, found = _place(with_it.memories, memory_id)
        rank_without, found_without = _place(without.memories, memory_id)
        parts = found.parts if found is not None else None
        return RankChange(
            rank=rank,
            rank_without=rank_without,
            score=parts.score if parts is not None else 0.0,
            score_without=found_without.parts.score if found_without is not None else 0.0,
            relevance=parts.relevance if parts is not None else 0.0,
            reinforcement=parts.reinforcement if parts is not None else 0.0,
        )


def _place(memories: Sequence[RecalledMemory], memory_id: str) -> tuple[int, RecalledMemory | None]:
    for rank, recalled in enumerate(memories, start=1):
        if recalled.memory.id == memory_id:
            return rank, recalled
    return 0, None
