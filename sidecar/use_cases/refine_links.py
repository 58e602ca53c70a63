"""Has the language model say more of relations that were made by themselves. In the background, after the fact.

What waits is kept in memory only: a relation that a restart overtakes stays `relates_to`, and so does one of which the
model says nothing that can be used. `supersedes` is never taken on its word: it takes a memory out of every answer,
which is for a caller to say, or for `CheckSupersedes` by track records.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.llm_relations import read_relations, relation_request
from sidecar.domain.memory import MemoryState, Relation
from sidecar.domain.store_values import Edge
from sidecar.errors import MemoryNotFoundError, StorageError
from sidecar.ports import GraphStore, MemoryStore
from sidecar.use_cases.ask_llm import AskLlm

MAX_WAITING: Final = 256
"""New memories whose relations may wait; a burst beyond it would cost more than it is worth."""

REFINED: Final = "llm_relations_refined"
HELD_BACK: Final = "llm_supersedes_held_back"
DROPPED: Final = "llm_relation_answers_dropped"
NOT_ASKED: Final = "llm_relations_not_asked"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    owner: str
    edges: tuple[Edge, ...]


class RefineLinks:
    """Works off what was linked by itself, one new memory at a time. Belongs to the event loop."""

    def __init__(self, *, store: MemoryStore, graph: GraphStore, llm: AskLlm) -> None:
        self._store = store
        self._graph = graph
        self._llm = llm
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._counters = Counter(dict.fromkeys((REFINED, HELD_BACK, DROPPED, NOT_ASKED), 0))

    @property
    def counters(self) -> dict[str, int]:
        """Since the start: edges refined, `supersedes` held back, answers of no use, edges nobody was asked about."""
        return dict(self._counters)

    def expect(self, owner: str, edges: Sequence[Edge]) -> None:
        """Note edges from one new memory that are to be refined; returns at once."""
        if len(self._waiting) >= MAX_WAITING:
            self._counters[NOT_ASKED] += len(edges)
            return
        self._waiting.append(_Waiting(owner, tuple(edges)))
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._refine(self._waiting.popleft())

    async def _refine(self, waiting: _Waiting) -> None:
        try:
            await self._ask_and_store(waiting)
        except StorageError as error:
            # Nothing is lost but a finer word: the memories and their relations are stored.
            self._counters[NOT_ASKED] += len(waiting.edges)
            log.warning("relations not refined", extra={"reason": error.reason})

    async def _ask_and_store(self, waiting: _Waiting) -> None:
        texts = await self._texts(waiting)
        edges = [edge for edge in waiting.edges if edge.source_id in texts and edge.target_id in texts]
        if not edges:
            return
        new, older = texts[edges[0].source_id], [texts[edge.target_id] for edge in edges]
        reply = await self._llm.ask(lambda fence: relation_request(fence, new, older))
        if reply.fields is None:
            self._counters[NOT_ASKED] += len(edges)
            return
        answers = read_relations(reply.fields, count=len(edges))
        self._counters[DROPPED] += answers.dropped
        for place, relation in sorted(answers.relations.items()):
            await self._store_relation(waiting.owner, edges[place], relation)

    async def _store_relation(self, owner: str, edge: Edge, relation: Relation) -> None:
        if relation is Relation.RELATES_TO:
            return
        if relation is Relation.SUPERSEDES:
            self._counters[HELD_BACK] += 1
            return
        if await self._graph.refine_edge(owner, edge.id, relation) is not None:
            self._counters[REFINED] += 1

    async def _texts(self, waiting: _Waiting) -> dict[str, str]:
        """Return the texts of those memories that are still active."""
        texts: dict[str, str] = {}
        for memory_id in dict.fromkeys(end for edge in waiting.edges for end in (edge.source_id, edge.target_id)):
            try:
                memory = await self._store.get(waiting.owner, memory_id)
            except MemoryNotFoundError:
                # Purged since.
                continue
            if memory.state is MemoryState.ACTIVE:
                texts[memory_id] = memory.content
        return texts
