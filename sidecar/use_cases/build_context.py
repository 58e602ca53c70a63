"""Puts together what an agent should know at the start of a session or task, and notes it as a briefing, not a recall.

Golden rules are always among the candidates. The others are what a recall finds for the query, and for a session the
preferences too; without a query, the most important and the latest ones.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from sidecar.domain import ids
from sidecar.domain.context import (
    DEFAULT_ENTRY_CHARACTERS,
    DEFAULT_MAX_GOLDEN_RULES,
    DEFAULT_TOKEN_BUDGET,
    HALF_LIFE_DAYS,
    NOTHING,
    OWN_PROJECT_FACTOR,
    BuiltContext,
    CharacterTokenCounter,
    ContextCandidate,
    ContextKind,
    ContextRequest,
    TokenCounter,
    build_context,
)
from sidecar.domain.evidence import Channel
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Caller, Memory, MemoryType, parse_fraction
from sidecar.domain.namespace import read_scope
from sidecar.domain.recall import MAX_RESULTS, MemoryFilter
from sidecar.domain.reinforcement import NEUTRAL
from sidecar.domain.store_values import OrderBy, RecallRecord, RequestKey
from sidecar.domain.text import normalise
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, MemoryStore, ValidationStore
from sidecar.use_cases.recall import MAX_QUERY_CHARACTERS, Recall, RecallQuery
from sidecar.use_cases.request_keys import request_of

LEAST_TOKENS: Final = 100
MOST_TOKENS: Final = 100_000
MOST_GOLDEN_RULES: Final = 100
# More golden rules than a person could have written, and more memories than have room in any budget.
_GOLDEN_CANDIDATES: Final = 1_000
_CANDIDATES: Final = 300
_MARKER_BYTES: Final = 8


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
        min_relevance: What is found for the text is at least so relevant, 0 to 1; None for the floor of recall.
        is_internal: A look of ours: nothing counts as delivered.
        is_once_per_session: Empty where the caller's session was given one of this kind before.
        request_key: A repeated key counts as the same briefing.
        awaits_acknowledgement: It counts only once its caller says that it was given; see `OfferContext`.
        is_only_repeated: Empty unless one was offered to the session before and not acknowledged.
    """

    text: str = ""
    kind: ContextKind = ContextKind.SESSION
    token_budget: int = 0
    max_golden_rules: int = 0
    min_relevance: float | None = None
    is_internal: bool = False
    is_once_per_session: bool = False
    request_key: str = ""
    awaits_acknowledgement: bool = False
    is_only_repeated: bool = False


@dataclass(frozen=True, slots=True)
class Briefing:
    """A context as it was delivered. `recall_id` is empty where nothing was noted."""

    context: BuiltContext
    recall_id: str = ""


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

    async def run(self, caller: Caller, query: ContextQuery) -> Briefing:
        """Return the context; empty if there is nothing to say, or the session was told.

        Raises:
            InvalidInputError: If the query is too long, a figure out of range, or a session is needed and not named.
            RequestKeyReusedError: If the request key came before with another request.
            StorageError: If the memories cannot be read.
        """
        _check(caller, query)
        key = _request_key(caller, query)
        kept_id = await self._store.kept_recall(caller.owner, key) if key is not None else ""
        built = await self.build(caller, query)
        if query.is_internal:
            return Briefing(built)
        record = self.record_of(caller, query, built, request=key, kept_id=kept_id)
        if query.is_once_per_session:
            # Waited for: after a restart, or in a call at the same time, it must be known.
            recall_id = await self._store.claim_briefing(record)
            return Briefing(built, recall_id) if recall_id else Briefing(NOTHING)
        await self._store.record_recall(record)
        return Briefing(built, record.recall_id)

    async def build(self, caller: Caller, query: ContextQuery) -> BuiltContext:
        """Return the context, of which nothing is noted; see `run`."""
        _check(caller, query)
        request = self._request(caller, query)
        text = normalise(query.text)
        if len(text) > MAX_QUERY_CHARACTERS:
            raise InvalidInputError("query", text, f"at most {MAX_QUERY_CHARACTERS} characters")
        return await self._build(caller, query, text, request)

    async def _build(self, caller: Caller, query: ContextQuery, text: str, request: ContextRequest) -> BuiltContext:
        selection = MemoryFilter(owner=caller.owner, scope=read_scope("", project=caller.project))
        golden = self._golden_rules(selection)
        others = self._found(caller, text, query, selection) if text else self._most_important(selection)
        found = {memory.id: memory for memories in await asyncio.gather(golden, others) for memory in memories}
        candidates = await self._candidates(list(found.values()))
        return await asyncio.to_thread(build_context, candidates, request, counter=self._counter)

    def record_of(
        self,
        caller: Caller,
        query: ContextQuery,
        built: BuiltContext,
        *,
        request: RequestKey | None = None,
        kept_id: str = "",
    ) -> RecallRecord:
        """Return the record that an agent gets this context now.

        Args:
            kept_id: Of the first request with the key of `request`; empty for none.
        """
        now = self._clock.now()
        return RecallRecord(
            recall_id=kept_id or ids.recall_id(int(now.timestamp() * 1000), self._clock.random_bytes(10)),
            owner=caller.owner,
            client=caller.client,
            session=caller.session,
            project=caller.project,
            at=now,
            memory_ids=built.memory_ids,
            is_degraded=False,
            channel=Channel.BRIEFING,
            context_kind=query.kind,
            request=request,
        )

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

    async def _found(self, caller: Caller, text: str, query: ContextQuery, selection: MemoryFilter) -> list[Memory]:
        wanted = RecallQuery(text, limit=MAX_RESULTS, is_internal=True, min_relevance=query.min_relevance)
        answer = await self._recall.run(caller, wanted)
        found = [recalled.memory for recalled in answer.memories]
        if query.kind is ContextKind.SESSION:
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


def _check(caller: Caller, query: ContextQuery) -> None:
    """Let a query pass that says nothing impossible.

    Raises:
        InvalidInputError: If it does.
    """
    if query.min_relevance is not None:
        parse_fraction(query.min_relevance, field_name="min_relevance")
    if query.is_once_per_session and not caller.session:
        raise InvalidInputError("context.session", "", "the session's id, since `once_per_session` is set")
    if query.is_only_repeated and not query.awaits_acknowledgement:
        raise InvalidInputError("only_unacknowledged", "true", "false without `await_acknowledgement`")
    if query.awaits_acknowledgement and not query.is_once_per_session:
        raise InvalidInputError("await_acknowledgement", "true", "false without `once_per_session`")
    if query.is_once_per_session and query.is_internal:
        raise InvalidInputError("once_per_session", "true", "false with `internal`, of which nothing is noted")


def _request_key(caller: Caller, query: ContextQuery) -> RequestKey | None:
    if not query.request_key or query.is_internal:
        return None
    return request_of(
        query.request_key,
        caller.project,
        caller.session,
        query.text,
        query.kind,
        query.token_budget,
        query.max_golden_rules,
        query.min_relevance,
        query.is_once_per_session,
    )
