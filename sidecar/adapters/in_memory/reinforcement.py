"""The reinforcement store in plain collections."""

from collections.abc import Sequence
from datetime import datetime

from sidecar.adapters.in_memory.ledger_rows import InMemoryLedgerRows
from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.confirmation import recompute
from sidecar.domain.disputes import Dispute
from sidecar.domain.evidence import Valence
from sidecar.domain.hygiene import WINDOW, EvidencePlace, MemoryEvidence, ReviewItem, by_urgency, review_item
from sidecar.domain.memory import MemoryState
from sidecar.domain.weighing import weigh_events
from sidecar.errors import MemoryNotFoundError


class InMemoryReinforcement:
    """Implements `ReinforcementStore`; a part of `InMemoryStore`."""

    _tables: Tables

    async def take_lease(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """See `ReinforcementStore.take_lease`."""
        held_by, held_until = self._tables.leases.get(name, (holder, now))
        if held_by != holder and held_until > now:
            return False
        self._tables.leases[name] = (holder, until)
        return True

    async def release_lease(self, name: str, holder: str) -> None:
        """See `ReinforcementStore.release_lease`."""
        if self._tables.leases.get(name, ("", None))[0] == holder:
            del self._tables.leases[name]

    async def evidence_places(self, *, after_key: int, limit: int) -> list[EvidencePlace]:
        """See `ReinforcementStore.evidence_places`."""
        credited = {
            (entry.event.owner, entry.event.credited_id)
            for entry in self._tables.usage
            if entry.event.valence in (Valence.USEFUL, Valence.MISLED)
        }
        found = [
            EvidencePlace(memory.key, memory.owner, memory.id)
            for memory in self._tables.memories.values()
            if memory.key > after_key
            and ((memory.owner, memory.id) in credited or (memory.owner, memory.id) in self._tables.multipliers)
        ]
        return sorted(found, key=lambda place: place.key)[:limit]

    async def recompute_multipliers(self, places: Sequence[EvidencePlace], *, at: datetime) -> int:
        """See `ReinforcementStore.recompute_multipliers`."""
        return sum(recompute(InMemoryLedgerRows(self._tables, place.owner), place.memory_id, at=at) for place in places)

    async def memory_evidence(self, owner: str, memory_id: str, *, at: datetime) -> MemoryEvidence:
        """See `ReinforcementStore.memory_evidence`."""
        memory = self._tables.find(owner, memory_id)
        if memory is None:
            raise MemoryNotFoundError(memory_id)
        rows = InMemoryLedgerRows(self._tables, owner)
        events = sorted(rows.credits(memory_id, since=at - WINDOW), key=lambda event: event.at, reverse=True)
        return MemoryEvidence(
            multiplier=rows.multiplier_in_use(memory_id)[0],
            weighed=tuple(weigh_events(events, memory_id, cleared_at=rows.cleared_at(memory_id))),
            surfaced=sum(
                event.at >= at - WINDOW and event.valence is Valence.SURFACED
                for event in self._tables.delivered(owner, memory_id)
            ),
            is_disputed=any(dispute.resolution is None for dispute in self._disputes_about(owner, memory_id)),
            is_standing_rule=memory.key in self._tables.standing_rules,
        )

    async def review_items(self, owner: str, *, at: datetime, limit: int) -> list[ReviewItem]:
        """See `ReinforcementStore.review_items`."""
        rows = InMemoryLedgerRows(self._tables, owner)
        items = []
        for memory in self._tables.memories.values():
            if memory.owner != owner or memory.state is not MemoryState.ACTIVE:
                continue
            disputes = self._disputes_about(owner, memory.id)
            settled = [dispute.resolved_at for dispute in disputes if dispute.resolved_at is not None]
            item = review_item(
                rows.credits(memory.id, since=at - WINDOW),
                memory.id,
                cleared_at=rows.cleared_at(memory.id),
                settled_at=max(settled, default=None),
                dispute_ids=[dispute.id for dispute in disputes if dispute.resolution is None],
            )
            items += [item] if item is not None else []
        return by_urgency(items)[:limit]

    def _disputes_about(self, owner: str, memory_id: str) -> list[Dispute]:
        return [
            dispute
            for dispute_owner, dispute in self._tables.disputes.values()
            if dispute_owner == owner and dispute.memory_id == memory_id
        ]
