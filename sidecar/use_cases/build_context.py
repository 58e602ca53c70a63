"""Puts together what an agent should know at the start of a session or task. Nothing here counts as a recall.

Golden rules are always among the candidates. The others are what a recall finds for the query, and for a session the
preferences too; without a query, the most important and the latest ones.
"""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.context import (
    DEFAULT_ENTRY_CHARACTERS,
    DEFAULT_MAX_GOLDEN_RULES,
    DEFAULT_TOKEN_BUDGET,
    HALF_LIFE_DAYS,
    OWN_PROJECT_FACTOR,
    BuiltContext,
    CharacterTokenCounter,
    ContextCandidate,
    ContextRequest,
    TokenCounter,
    build_context,
)
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Caller, Memory, MemoryType
from sidecar.domain.namespace import read_scope
from sidecar.domain.recall import MAX_RESULTS, MemoryFilter
from sidecar.domain.reinforcement import NEUTRAL
from sidecar.domain.store_values import OrderBy
from sidecar.domain.text import normalise
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, MemoryStore, ValidationStore
from sidecar.use_cases.recall import MAX_QUERY_CHARACTERS, Recall, RecallQuery

LEAST_TOKENS: Final = 100
MOST_TOKENS: Final = 100_000
MOST_GOLDEN_RULES: Final = 100
# More golden rules than a person could have written, and more memories than have room in any budget.
_GOLDEN_CANDIDATES: Final = 1_000
_CANDIDATES: Final = 300
_MARKER_BYTES: Final = 8


class ContextKind(StrEnum):
    """What a context is for."""

    SESSION = "session"
    TASK = "task"


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """What holds where the caller says nothing.

    Attributes:
        token_budget: Most tokens of everything but golden rules.
        max_golden_rules: Most golden rules.
        max_entry_characters: Most characters of one memory's text.
        machine_weight: Factor for what a program extracted.
        standing_rule_weight: Factor for what is delivered elsewhere as a standing rule.
        golden_confidence: See `ContextRequest`; so too `half_life_days` and `own_project_factor`.
    """

    token_budget: int = DEFAULT_TOKEN_BUDGET
    max_golden_rules: int = DEFAULT_MAX_GOLDEN_RULES
    max_entry_characters: int = DEFAULT_ENTRY_CHARACTERS
    machine_weight: float = 0.9
    standing_rule_weight: float = 0.6
    golden_confidence: float = GOLDEN_CONFIDENCE
    half_life_days: float = HALF_LIFE_DAYS
    own_project_factor: float = OWN_PROJECT_FACTOR


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """What is wanted.

    Attributes:
        text: What the work is about; empty for what matters most in the project.
        token_budget: 100 to 100,000; 0 for the default.
        max_golden_rules: 1 to 100; 0 for the default.
    """

    text: str = ""
    kind: ContextKind = ContextKind.SESSION
    token_budget: int = 0
    max_golden_rules: int = 0


class BuildContext:
    """Builds contexts."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        validation: ValidationStore,
        recall: Recall,
        clock: Clock,
        policy: ContextPolicy,
        counter: TokenCounter | None = None,
    ) -> None:
        """Take what is needed; without a `counter`, four characters count as a token."""
        self._store = store
        self._validation = validation
        self._recall = recall
        self._clock = clock
        self._policy = policy
        self._counter = counter or CharacterTokenCounter()

    async def run(self, caller: Caller, query: ContextQuery) -> BuiltContext:
        """Return the context; empty if there is nothing to say.

        Raises:
            InvalidInputError: If the query is too long, or a figure out of range.
            StorageError: If the memories cannot be read.
        """
        request = self._request(caller, query)
        text = normalise(query.text)
        if len(text) > MAX_QUERY_CHARACTERS:
            raise InvalidInputError("query", text, f"at most {MAX_QUERY_CHARACTERS} characters")
        selection = MemoryFilter(owner=caller.owner, scope=read_scope("", project=caller.project))
        golden = self._golden_rules(selection)
        others = self._found(caller, text, query.kind, selection) if text else self._most_important(selection)
        found = {memory.id: memory for memories in await asyncio.gather(golden, others) for memory in memories}
        candidates = await self._candidates(list(found.values()))
        return await asyncio.to_thread(build_context, candidates, request, counter=self._counter)

    def _request(self, caller: Caller, query: ContextQuery) -> ContextRequest:
        budget = query.token_budget or self._policy.token_budget
        if not LEAST_TOKENS <= budget <= MOST_TOKENS:
            raise InvalidInputError("token_budget", budget, f"a whole number from {LEAST_TOKENS} to {MOST_TOKENS}")
        most_rules = query.max_golden_rules or self._policy.max_golden_rules
        if not 1 <= most_rules <= MOST_GOLDEN_RULES:
            raise InvalidInputError("max_golden_rules", most_rules, f"a whole number from 1 to {MOST_GOLDEN_RULES}")
        return ContextRequest(
            now=self._clock.now(),
            marker=self._clock.random_bytes(_MARKER_BYTES).hex(),
            project=caller.project,
            token_budget=budget,
            max_golden_rules=most_rules,
            max_entry_characters=self._policy.max_entry_characters,
            machine_weight=self._policy.machine_weight,
            golden_confidence=self._policy.golden_confidence,
            half_life_days=self._policy.half_life_days,
            own_project_factor=self._policy.own_project_factor,
        )

    async def _golden_rules(self, selection: MemoryFilter) -> list[Memory]:
        by_type, sure = await asyncio.gather(
            self._first(selection, OrderBy.IMPORTANCE, (MemoryType.GOLDEN_RULE,), limit=_GOLDEN_CANDIDATES),
            self._first(selection, OrderBy.CONFIDENCE, limit=_GOLDEN_CANDIDATES),
        )
        golden_from = self._policy.golden_confidence
        return [memory for memory in (*by_type, *sure) if memory.is_golden_from(golden_from)]

    async def _most_important(self, selection: MemoryFilter) -> list[Memory]:
        orders = (OrderBy.IMPORTANCE, OrderBy.ACCESSED_AT, OrderBy.CREATED_AT)
        pages = await asyncio.gather(*(self._first(selection, order, limit=_CANDIDATES) for order in orders))
        return [memory for page in pages for memory in page]

    async def _found(self, caller: Caller, text: str, kind: ContextKind, selection: MemoryFilter) -> list[Memory]:
        answer = await self._recall.run(caller, RecallQuery(text, limit=MAX_RESULTS, is_internal=True))
        found = [recalled.memory for recalled in answer.memories]
        if kind is ContextKind.SESSION:
            found += await self._first(selection, OrderBy.IMPORTANCE, (MemoryType.PREFERENCE,), limit=_CANDIDATES)
        return found

    async def _first(
        self, selection: MemoryFilter, order_by: OrderBy, types: tuple[MemoryType, ...] = (), *, limit: int
    ) -> tuple[Memory, ...]:
        narrowed = MemoryFilter(owner=selection.owner, scope=selection.scope, types=types)
        page = await self._store.list_page(narrowed, limit=limit, cursor="", order_by=order_by, is_descending=True)
        return page.memories

    async def _candidates(self, memories: list[Memory]) -> list[ContextCandidate]:
        keys = [memory.key for memory in memories]
        multipliers, disputed, standing_rules = await asyncio.gather(
            self._store.multipliers([memory.id for memory in memories]),
            self._validation.disputed_keys(keys),
            self._validation.standing_rule_keys(keys),
        )
        weights = dict.fromkeys(standing_rules, self._policy.standing_rule_weight)
        return [
            ContextCandidate(
                memory,
                reinforcement=multipliers.get(memory.id, NEUTRAL) * weights.get(memory.key, 1.0),
                is_disputed=memory.key in disputed,
            )
            for memory in memories
        ]
