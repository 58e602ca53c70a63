"""The evidence store in plain collections."""

from collections import Counter
from datetime import datetime

from sidecar.adapters.in_memory.ledger_rows import InMemoryLedgerRows
from sidecar.adapters.in_memory.tables import Tables, ThreadEntry
from sidecar.domain.coverage import HOOK_SUFFIX, CallTally, ClientCoverage, summarise_coverage
from sidecar.domain.evidence import (
    BatchOutcome,
    EvidenceBatch,
    SessionCoverage,
    SessionRecall,
    SessionThread,
    ShownState,
    SliceKind,
    TranscriptCursor,
    UsageEvent,
    Valence,
)
from sidecar.domain.judge_jobs import JobState
from sidecar.domain.ledger import IDLE_LIFE, CallKind, LedgerRows, is_older_cursor, take_events


class InMemoryEvidence:
    """Implements `EvidenceStore`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def apply_batch(self, owner: str, batch: EvidenceBatch, *, at: datetime) -> BatchOutcome:
        """See `EvidenceStore.apply_batch`."""
        self._forget_idle_slices(at)
        rows: LedgerRows = InMemoryLedgerRows(self._tables, owner, read_at=at)
        outcome = take_events(rows, batch.events, at=at)
        identity = (owner, batch.cursor.client, batch.cursor.path)
        stored = self._tables.cursors.get(identity)
        if stored is None or not is_older_cursor(batch.cursor, stored):
            self._tables.cursors[identity] = batch.cursor
        return outcome

    async def cursors(self, owner: str, client: str) -> list[TranscriptCursor]:
        """See `EvidenceStore.cursors`; ordered by client and path."""
        return [
            cursor
            for (cursor_owner, name, _), cursor in sorted(self._tables.cursors.items(), key=lambda item: item[0])
            if cursor_owner == owner and client in ("", name)
        ]

    async def sessions(self, owner: str, *, limit: int) -> list[SessionCoverage]:
        """See `EvidenceStore.sessions`; one for each thread, sub-agents' own included."""
        entries = [entry for entry in self._tables.threads.values() if entry.owner == owner]
        entries.sort(key=lambda entry: (entry.last_seen_at, entry.id), reverse=True)
        return [self._coverage(entry) for entry in entries[:limit]]

    async def session_recalls(self, owner: str, client: str, session: str) -> list[SessionRecall]:
        """See `EvidenceStore.session_recalls`."""
        agents = {
            entry.id: entry.thread.agent_id
            for entry in self._tables.threads.values()
            if (entry.owner, entry.thread.client, entry.thread.session) == (owner, client, session)
        }
        used = {
            usage.event.memory_id
            for usage in self._tables.usage
            if usage.event.valence is Valence.USEFUL
            and (usage.event.owner, usage.event.client, usage.event.session) == (owner, client, session)
        }
        return [
            SessionRecall(
                call_id=call.call_id,
                tool=call.tool,
                agent_id=agents[call.thread_id],
                at=call.at,
                shown=call.shown,
                used_memory_ids=tuple(memory_id for memory_id in call.shown.memory_ids if memory_id in used),
            )
            for call in self._tables.calls.values()
            if call.thread_id in agents and call.kind is CallKind.RECALL
        ]

    async def coverage(self, owner: str, client: str) -> list[ClientCoverage]:
        """See `EvidenceStore.coverage`."""
        names = (client, client + HOOK_SUFFIX) if client else ("",)
        calls = [
            CallTally(
                client=thread.client,
                client_version=thread.client_version,
                state=call.shown.state,
                reason=call.shown.reason,
                count=1,
                shown=len(call.shown.memory_ids),
            )
            for (call_owner, name, _), call in self._tables.calls.items()
            if call_owner == owner and (not client or name in names) and call.kind is CallKind.RECALL
            for thread in (self._tables.threads[call.thread_id].thread,)
        ]
        return summarise_coverage(calls, [one for name in names for one in await self.cursors(owner, name)])

    async def end_session(self, owner: str, client: str, session: str, *, at: datetime) -> bool:
        """See `EvidenceStore.end_session`."""
        return self._tables.end_session(owner, client, session, at=at)

    async def usage_events(self, owner: str, memory_id: str) -> list[UsageEvent]:
        """See `EvidenceStore.usage_events`."""
        found = [
            entry
            for entry in self._tables.usage
            if entry.event.owner == owner and memory_id in (entry.event.memory_id, entry.event.credited_id)
        ]
        found.sort(key=lambda entry: (entry.event.at, entry.number), reverse=True)
        return [entry.event for entry in found]

    async def slices(self, owner: str, thread: SessionThread, memory_id: str) -> list[tuple[SliceKind, str]]:
        """See `EvidenceStore.slices`; ordered by time, then as read."""
        asked = (owner, thread.client, thread.session, thread.agent_id)
        for entry in self._tables.threads.values():
            known = entry.thread
            if (entry.owner, known.client, known.session, known.agent_id) != asked:
                continue
            shown = [moment for (shown_id, _), moment in entry.shown.items() if shown_id == memory_id]
            if shown:
                after = {
                    (piece.at, seq): (piece.kind, piece.text)
                    for seq, piece in entry.slices
                    if (piece.at, seq) > min(shown) and not piece.awaited_call
                }
                return [text for _, text in sorted(after.items())]
        return []

    def _forget_idle_slices(self, now: datetime) -> None:
        waiting = {
            (key.owner, key.client, key.session)
            for key, job in self._tables.judge_jobs.items()
            if job.state is not JobState.DONE
        }
        for entry in self._tables.threads.values():
            session = (entry.owner, entry.thread.client, entry.thread.session)
            if entry.read_at < now - IDLE_LIFE and session not in waiting:
                entry.slices.clear()

    def _coverage(self, entry: ThreadEntry) -> SessionCoverage:
        calls = [
            call
            for (owner, _, _), call in self._tables.calls.items()
            if owner == entry.owner and call.thread_id == entry.id and call.kind is CallKind.RECALL
        ]
        states = Counter(call.shown.state for call in calls)
        unknown = Counter(str(call.shown.reason or "") for call in calls if call.shown.state is ShownState.UNKNOWN)
        return SessionCoverage(
            thread=entry.thread,
            first_seen_at=entry.first_seen_at,
            last_seen_at=entry.last_seen_at,
            recalls=len(calls),
            shown=len({memory_id for memory_id, _ in entry.shown}),
            nothing_shown=states[ShownState.NOTHING],
            cannot_record=states[ShownState.CANNOT_RECORD],
            unknown=tuple(sorted(unknown.items())),
            used=self._used(entry),
            waiting_jobs=sum(
                job.thread_id == entry.id and job.state is JobState.WAITING for job in self._tables.judge_jobs.values()
            ),
        )

    def _used(self, entry: ThreadEntry) -> int:
        shown = {memory_id for memory_id, _ in entry.shown}
        used = {
            usage.event.memory_id
            for usage in self._tables.usage
            if usage.event.valence is Valence.USEFUL
            and usage.event.owner == entry.owner
            and (usage.event.client, usage.event.session) == (entry.thread.client, entry.thread.session)
        }
        return len(shown & used)
