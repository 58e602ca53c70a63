"""Deliveries in plain collections: what recalls and briefings handed out."""

from dataclasses import replace
from datetime import datetime

from sidecar.adapters.in_memory.forgetting import REQUEST_KEY_LIFE
from sidecar.adapters.in_memory.tables import KeptRecall, Tables
from sidecar.domain.context import ContextKind
from sidecar.domain.evidence import Channel
from sidecar.domain.replay import RecordedCandidate
from sidecar.domain.store_values import RecallRecord, RequestKey
from sidecar.errors import RequestKeyReusedError
from sidecar.ports import Clock


class InMemoryDeliveries:
    """Implements what `MemoryStore` says of deliveries; a part of `InMemoryStore`."""

    _tables: Tables
    _clock: Clock

    async def record_recall(self, record: RecallRecord) -> None:
        """See `MemoryStore.record_recall`."""
        _record(self._tables, record)

    async def was_briefed(self, owner: str, client: str, session: str, kind: ContextKind) -> bool:
        """See `MemoryStore.was_briefed`."""
        return _was_briefed(self._tables, (owner, client, session, kind))

    async def claim_briefing(self, record: RecallRecord) -> str:
        """See `MemoryStore.claim_briefing`."""
        is_repeated = record.request and _kept_id(self._tables, record.owner, record.request, now=record.at)
        asked = (record.owner, record.client, record.session, record.context_kind)
        if not is_repeated and _was_briefed(self._tables, asked):
            return ""
        return _record(self._tables, record)

    async def kept_recall(self, owner: str, request: RequestKey) -> str:
        """See `MemoryStore.kept_recall`."""
        return _kept_id(self._tables, owner, request, now=self._clock.now())


def _kept_id(tables: Tables, owner: str, request: RequestKey, *, now: datetime) -> str:
    kept = tables.kept_recalls.get((owner, request.key))
    if kept is None or kept.at < now - REQUEST_KEY_LIFE:
        return ""
    if kept.digest != request.digest:
        raise RequestKeyReusedError(request.key)
    return kept.recall_id


def _record(tables: Tables, record: RecallRecord) -> str:
    """Note a delivery and return the id that it counts as."""
    if record.request is not None:
        kept_id = _kept_id(tables, record.owner, record.request, now=record.at)
        if not kept_id:
            kept = KeptRecall(record.request.digest, record.recall_id, record.at)
            tables.kept_recalls[record.owner, record.request.key] = kept
        record = replace(record, recall_id=kept_id or record.recall_id)
    is_repeated = record.recall_id in tables.recalls
    if not is_repeated:
        tables.recalls[record.recall_id] = record
        tables.recall_sizes[record.recall_id] = len(dict.fromkeys(record.memory_ids))
        _keep_candidates(tables, record)
    added = sum(_deliver(tables, record, memory_id) for memory_id in dict.fromkeys(record.memory_ids))
    if is_repeated:
        tables.recall_sizes[record.recall_id] += added
    return record.recall_id


def _keep_candidates(tables: Tables, record: RecallRecord) -> None:
    if record.candidates:
        tables.recall_candidates[record.recall_id] = tuple(
            RecordedCandidate(tables.memories[each.key].id, each.relevance, each.factors, each.is_exact)
            for each in record.candidates
            if each.key in tables.memories
        )


def _deliver(tables: Tables, record: RecallRecord, memory_id: str) -> bool:
    """Note one delivered memory unless it is noted already, and tell whether it was new."""
    memory = tables.find(record.owner, memory_id)
    if memory is None or not tables.add_usage(record.event_of(memory_id), occasion=record.occasion):
        return False
    if record.moves_access:
        accessed_at = max(memory.accessed_at, record.at)
        tables.memories[memory.key] = replace(memory, access_count=memory.access_count + 1, accessed_at=accessed_at)
    return True


def _was_briefed(tables: Tables, asked: tuple[str, str, str, ContextKind | None]) -> bool:
    return any(
        known.channel is Channel.BRIEFING
        and (known.owner, known.client, known.session, known.context_kind) == asked
        and tables.recall_sizes[recall_id] > 0
        for recall_id, known in tables.recalls.items()
    )
