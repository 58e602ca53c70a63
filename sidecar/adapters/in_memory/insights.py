"""The insights store in plain collections."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime

from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.disputes import Resolution
from sidecar.domain.evidence import BRIEFING_TOOL, Channel, ShownState, UsageEvent, UsageSource, Valence
from sidecar.domain.judge_jobs import StoredVerdict
from sidecar.domain.ledger import CallKind
from sidecar.domain.metrics import ClientCounts, MetricCounts, SeriesName, Window
from sidecar.domain.replay import RecordedRecall, UseHistory
from sidecar.domain.store_values import RecallRecord
from sidecar.domain.weighing import OVERRULING

_Use = tuple[str, str, str]
"""Client, session, memory id."""


class InMemoryInsights:
    """Implements `InsightsStore`; a part of `InMemoryStore`."""

    _tables: Tables

    async def metric_counts(self, owner: str, window: Window) -> MetricCounts:
        """See `InsightsStore.metric_counts`."""
        deliveries = [e for e in self._events(owner, Valence.SURFACED) if _is_in(window, e.at)]
        uses = self._counted_uses(owner)
        uses_then = [event for event in uses if _is_in(window, event.at)]
        verdicts = [
            stored
            for key, stored in self._tables.verdicts.items()
            if key.owner == owner and _is_in(window, stored.shown_at)
        ]
        surfaced = {event.memory_id for event in deliveries}
        recalled = Counter(memory_id for memory_id, _ in {(e.memory_id, e.recall_id) for e in deliveries})
        by_call = self._session_recalls(owner, window)
        used = {_use(event) for event in uses}
        return MetricCounts(
            surfaced=len(surfaced),
            used=len(surfaced & {event.memory_id for event in uses_then}),
            recurring=sum(count >= 2 for count in recalled.values()),
            judged=len({stored.key.memory_id for stored in verdicts}),
            relevant=len({stored.key.memory_id for stored in verdicts if stored.verdict.is_relevant}),
            verdicts=len(verdicts),
            session_recalls=len(by_call),
            useful_recalls=sum(
                any((client, session, memory_id) in used for memory_id in memory_ids)
                for (client, session, _), memory_ids in by_call.items()
            ),
            series=self._series(owner, window, deliveries, uses_then, verdicts),
            clients=self._clients(owner, window, uses_then, verdicts),
        )

    async def recorded_recalls(
        self, owner: str, window: Window
    ) -> tuple[list[RecordedRecall], Mapping[str, UseHistory]]:
        """See `InsightsStore.recorded_recalls`."""
        used = self._counted_uses(owner)
        records = [r for r in self._tables.recalls.values() if r.owner == owner and _is_in(window, r.at)]
        records.sort(key=lambda record: (record.at, record.recall_id))
        recalls = [
            RecordedRecall(
                recall_id=record.recall_id,
                client=record.client,
                session=record.session,
                at=record.at,
                delivered=record.found_count,
                is_unreinforced=record.is_unreinforced,
                candidates=self._tables.recall_candidates[record.recall_id],
                used_ids=frozenset(
                    event.memory_id
                    for event in used
                    if record.session and (event.client, event.session) == (record.client, record.session)
                ),
            )
            for record in records
            if record.recall_id in self._tables.recall_candidates
        ]
        memory_ids = {candidate.memory_id for recall in recalls for candidate in recall.candidates}
        votes = [*self._events(owner, Valence.USEFUL), *self._events(owner, Valence.MISLED)]
        votes.sort(key=lambda event: event.at)
        found = {
            memory_id: tuple(event for event in votes if memory_id in (event.memory_id, event.credited_id))
            for memory_id in memory_ids
        }
        return recalls, {
            memory_id: UseHistory(events, self._clearings(owner, memory_id))
            for memory_id, events in found.items()
            if events
        }

    async def prune_recorded_recalls(self, *, before: datetime, most: int) -> int:
        """See `InsightsStore.prune_recorded_recalls`."""
        tables = self._tables
        by_owner: defaultdict[str, list[RecallRecord]] = defaultdict(list)
        for recall_id in tables.recall_candidates:
            by_owner[tables.recalls[recall_id].owner].append(tables.recalls[recall_id])
        doomed: set[str] = set()
        for records in by_owner.values():
            records.sort(key=lambda record: (record.at, record.recall_id), reverse=True)
            doomed |= {record.recall_id for record in records[most:]}
            doomed |= {record.recall_id for record in records if record.at < before}
        for recall_id in doomed:
            del tables.recall_candidates[recall_id]
        return len(doomed)

    def _events(self, owner: str, valence: Valence) -> list[UsageEvent]:
        return [
            entry.event for entry in self._tables.usage if entry.event.owner == owner and entry.event.valence is valence
        ]

    def _clearings(self, owner: str, memory_id: str) -> tuple[datetime, ...]:
        kept = [
            dispute.resolved_at
            for dispute_owner, dispute in self._tables.disputes.values()
            if (dispute_owner, dispute.memory_id, dispute.resolution) == (owner, memory_id, Resolution.KEEP)
        ]
        return tuple(sorted(moment for moment in kept if moment is not None))

    def _counted_uses(self, owner: str) -> list[UsageEvent]:
        """Return the uses that count: a judge's opinion does not where its session has proof."""
        proven = {
            _use(entry.event)
            for entry in self._tables.usage
            if entry.event.owner == owner and entry.event.session and entry.event.source in OVERRULING
        }
        return [
            event
            for event in self._events(owner, Valence.USEFUL)
            if event.source is not UsageSource.JUDGE or _use(event) not in proven
        ]

    def _asked_recalls(self, owner: str) -> list[RecallRecord]:
        """Return the recalls, briefings apart."""
        return [r for r in self._tables.recalls.values() if r.owner == owner and r.channel is Channel.RECALL]

    def _session_recalls(self, owner: str, window: Window) -> dict[tuple[str, str, str], set[str]]:
        """Return the memories of each recall whose session is known, by our records or else by its transcript."""
        calls: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
        recorded = {(r.client, r.session) for r in self._asked_recalls(owner)}
        for event in self._events(owner, Valence.SURFACED):
            if event.session and _is_in(window, event.at):
                calls[event.client, event.session, event.recall_id].add(event.memory_id)
        for entry in self._tables.threads.values():
            session = (entry.thread.client, entry.thread.session)
            if entry.owner != owner or session in recorded:
                continue
            for (memory_id, call_id), (at, _) in entry.shown.items():
                call = self._tables.calls[owner, session[0], call_id]
                if _is_in(window, at) and call.tool != BRIEFING_TOOL:
                    calls[*session, call_id].add(memory_id)
        return calls

    def _series(
        self,
        owner: str,
        window: Window,
        deliveries: list[UsageEvent],
        uses: list[UsageEvent],
        verdicts: list[StoredVerdict],
    ) -> dict[SeriesName, Counter[date]]:
        recalls = [r for r in self._asked_recalls(owner) if _is_in(window, r.at)]
        captured = [m.created_at for m in self._tables.memories.values() if m.owner == owner]
        return {
            SeriesName.RECALLS: _days(record.at for record in recalls),
            SeriesName.EMPTY_RECALLS: _days(record.at for record in recalls if not self._delivered_count(record)),
            SeriesName.SURFACED: _days(event.at for event in deliveries),
            SeriesName.JUDGED: _days(stored.shown_at for stored in verdicts),
            SeriesName.RELEVANT: _days(stored.shown_at for stored in verdicts if stored.verdict.is_relevant),
            SeriesName.USED: Counter(day for day, _ in {(event.at.date(), _use(event)) for event in uses}),
            SeriesName.CAPTURED: _days(at for at in captured if _is_in(window, at)),
        }

    def _delivered_count(self, record: RecallRecord) -> int:
        return self._tables.recall_sizes.get(record.recall_id, len(record.memory_ids))

    def _clients(
        self, owner: str, window: Window, uses: list[UsageEvent], verdicts: list[StoredVerdict]
    ) -> tuple[ClientCounts, ...]:
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for record in self._asked_recalls(owner):
            counts[record.client]["answered"] += _is_in(window, record.at)
        for (call_owner, client, _), call in self._tables.calls.items():
            if call_owner == owner and call.kind is CallKind.RECALL and _is_in(window, call.at):
                state = call.shown.state
                counts[client]["recalls"] += 1
                counts[client]["known" if state in (ShownState.IDS, ShownState.NOTHING) else str(state)] += 1
        for client, _, _ in {
            (entry.thread.client, entry.thread.session, memory_id)
            for entry in self._tables.threads.values()
            if entry.owner == owner
            for (memory_id, _), (at, _) in entry.shown.items()
            if _is_in(window, at)
        }:
            counts[client]["shown"] += 1
        for stored in verdicts:
            counts[stored.key.client]["judged"] += 1
        for client, _, _ in {_use(event) for event in uses}:
            counts[client]["used"] += 1
        return tuple(ClientCounts(client, **found) for client, found in counts.items() if found.total())


def _use(event: UsageEvent) -> _Use:
    return event.client, event.session, event.memory_id


def _is_in(window: Window, at: datetime) -> bool:
    return window.since <= at < window.until


def _days(moments: Iterable[datetime]) -> Counter[date]:
    return Counter(at.date() for at in moments)
