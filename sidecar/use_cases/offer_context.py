"""Gives contexts of which the caller says afterwards whether an agent got them. What was never said counts for nothing.

A hook may be ended between asking and printing, and a session is told once: counted when it is built, its briefing
would be lost. What is offered is known to this process alone; after a restart it is offered anew.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sidecar.domain.context import NOTHING, BuiltContext, ContextKind
from sidecar.domain.memory import Caller
from sidecar.domain.store_values import RecallRecord
from sidecar.ports import Clock, MemoryStore
from sidecar.use_cases.build_context import Briefing, BuildContext, ContextQuery

HELD_FOR: Final = timedelta(seconds=2)
"""Nobody else of the session is offered the same meanwhile. Hooks are over long before."""

MOST_OFFERS: Final = 2
"""Of one kind to one session: a second one, should the first not have arrived."""

_MOST_HELD: Final = 1_000

_Place = tuple[str, str, str, ContextKind]


@dataclass(slots=True)
class _Offer:
    """One that was not acknowledged yet. `record`: None while it is being built."""

    held_until: datetime
    count: int
    record: RecallRecord | None = None


class OfferContext:
    """Builds contexts, and holds those that wait for an acknowledgement."""

    def __init__(self, *, store: MemoryStore, build_context: BuildContext, clock: Clock) -> None:
        self._store = store
        self._build_context = build_context
        self._clock = clock
        self._offers: OrderedDict[_Place, _Offer] = OrderedDict()

    async def run(self, caller: Caller, query: ContextQuery) -> Briefing:
        """Return a context; see `BuildContext.run`.

        With `awaits_acknowledgement` it is empty, too, while another one is held for the session, or if two came to
        nothing.
        """
        if not query.awaits_acknowledgement:
            return await self._build_context.run(caller, query)
        place = (caller.owner, caller.client, caller.session, query.kind)
        if query.is_only_repeated and place not in self._offers:
            return Briefing(NOTHING)
        if not self._hold(place):
            return Briefing(NOTHING)
        try:
            built = await self._built(caller, query)
        except BaseException:
            self._offers.pop(place, None)
            raise
        if built is None:
            self._offers.pop(place, None)
            return Briefing(NOTHING)
        record = self._build_context.record_of(caller, query, built)
        self._offers[place].record = record
        return Briefing(built, record.recall_id)

    async def acknowledge(self, owner: str, recall_id: str) -> bool:
        """Count an offered context as given; tell whether it was offered, and none of its kind was given before."""
        offers = [(place, offer.record) for place, offer in self._offers.items() if offer.record is not None]
        for place, record in offers:
            if (record.owner, record.recall_id) == (owner, recall_id):
                counted_id = await self._store.claim_briefing(record)
                # Held until it is known for good that the session had it.
                self._offers.pop(place, None)
                return bool(counted_id)
        return False

    def _hold(self, place: _Place) -> bool:
        now = self._clock.now()
        offer = self._offers.get(place)
        if offer is not None and (now < offer.held_until or offer.count >= MOST_OFFERS):
            return False
        self._offers[place] = _Offer(now + HELD_FOR, count=1 if offer is None else offer.count + 1)
        self._offers.move_to_end(place)
        while len(self._offers) > _MOST_HELD:
            self._offers.popitem(last=False)
        return True

    async def _built(self, caller: Caller, query: ContextQuery) -> BuiltContext | None:
        """Return the context; None if the session had one, or there is nothing to say."""
        if await self._store.was_briefed(caller.owner, caller.client, caller.session, query.kind):
            return None
        built = await self._build_context.build(caller, query)
        # Golden rules alone are no answer to a task, and were told at the start.
        has_content = built.tokens_used > 0 if query.kind is ContextKind.TASK else bool(built.memory_ids)
        return built if has_content else None
