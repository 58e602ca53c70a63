"""The ledger's rows in plain collections. The rules are in sidecar.domain.ledger and confirmation."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter

from sidecar.adapters.in_memory.tables import JudgeEntry, Tables, ThreadEntry, UsageEntry
from sidecar.domain.confirmation import Citation, Claim
from sidecar.domain.disputes import Resolution
from sidecar.domain.evidence import DELIVERED, SessionThread, UsageEvent, UsageSource
from sidecar.domain.judge_jobs import JobKey, JobState
from sidecar.domain.ledger import Call, Slice, Thread
from sidecar.domain.reinforcement import NEUTRAL, Evidence


class InMemoryLedgerRows:
    """See `LedgerRows`."""

    def __init__(self, tables: Tables, owner: str, *, read_at: datetime | None = None) -> None:
        self._tables = tables
        self._owner = owner
        self._read_at = read_at

    @property
    def owner(self) -> str:
        """See `ConfirmationRows.owner`."""
        return self._owner

    # --- confirmation ---

    def was_shown(self, client: str, session: str, memory_id: str, *, until: datetime) -> bool:
        """See `ConfirmationRows.was_shown`."""
        by_transcript = any(
            (entry.thread.client, entry.thread.session) == (client, session)
            and any(shown_id == memory_id and at <= until for (shown_id, _), (at, _) in entry.shown.items())
            for entry in self._own_threads()
        )
        return by_transcript or any(
            (event.client, event.session) == (client, session) and event.at <= until
            for event in self._tables.delivered(self._owner, memory_id)
        )

    def was_delivered(self, client: str, project: str, memory_id: str, *, since: datetime, until: datetime) -> bool:
        """See `ConfirmationRows.was_delivered`."""
        recalls = [self._tables.recalls[event.recall_id] for event in self._tables.delivered(self._owner, memory_id)]
        return any(
            (record.client, record.project) == (client, project) and since <= record.at <= until for record in recalls
        )

    def save_claim(self, claim: Claim) -> None:
        """See `ConfirmationRows.save_claim`."""
        self._tables.claims[self._owner, claim.remember_id, claim.target_id, claim.relation] = claim

    def claims_of(self, source_id: str) -> Sequence[Claim]:
        """See `ConfirmationRows.claims_of`."""
        return [claim for claim in self._own_claims() if claim.source_id == source_id]

    def claims_on(self, client: str, session: str, target_id: str) -> Sequence[Claim]:
        """See `ConfirmationRows.claims_on`."""
        asked = (client, session, target_id)
        return [claim for claim in self._own_claims() if (claim.client, claim.session, claim.target_id) == asked]

    def save_citation(self, citation: Citation) -> None:
        """See `ConfirmationRows.save_citation`."""
        known = self.citation(citation.client, citation.session, citation.memory_id)
        place = (self._owner, citation.client, citation.session, citation.memory_id)
        self._tables.citations[place] = max(known or citation, citation, key=lambda one: one.at)

    def citation(self, client: str, session: str, memory_id: str) -> Citation | None:
        """See `ConfirmationRows.citation`."""
        return self._tables.citations.get((self._owner, client, session, memory_id))

    def add_use(self, event: UsageEvent, *, occasion: str) -> bool:
        """See `ConfirmationRows.add_use`."""
        return self._tables.add_usage(event, occasion=occasion)

    def withdraw_use(self, event: UsageEvent, *, occasion: str) -> str:
        """See `ConfirmationRows.withdraw_use`."""
        for entry in self._same_events(event, occasion):
            self._tables.usage.remove(entry)
            return entry.event.credited_id
        return ""

    def withdraw_judged(self, memory_id: str, *, occasion: str) -> None:
        """See `ConfirmationRows.withdraw_judged`."""
        named = (self._owner, memory_id, occasion, UsageSource.JUDGE)
        self._tables.usage = [
            entry
            for entry in self._tables.usage
            if (entry.event.owner, entry.event.memory_id, entry.occasion, entry.event.source) != named
        ]

    def pass_credit(self, event: UsageEvent, *, occasion: str) -> str:
        """See `ConfirmationRows.pass_credit`."""
        for entry in self._same_events(event, occasion):
            before = entry.event.credited_id
            entry.event = replace(entry.event, credited_id=event.credited_id, known_at=event.known_at)
            return before
        return ""

    def passed_credits(self, memory_id: str) -> Sequence[tuple[UsageEvent, str]]:
        """See `ConfirmationRows.passed_credits`."""
        return [
            (entry.event, entry.occasion)
            for entry in self._tables.usage
            if entry.event.owner == self._owner
            and entry.event.credited_id == memory_id
            and entry.event.memory_id != memory_id
        ]

    def credits(self, memory_id: str, *, since: datetime) -> Sequence[UsageEvent]:
        """See `ConfirmationRows.credits`."""
        return [
            entry.event
            for entry in self._tables.usage
            if entry.event.owner == self._owner
            and memory_id in (entry.event.memory_id, entry.event.credited_id)
            and entry.event.at >= since
            and entry.event.valence not in DELIVERED.values()
        ]

    def cleared_at(self, memory_id: str) -> datetime | None:
        """See `ConfirmationRows.cleared_at`."""
        moments = [
            dispute.resolved_at
            for owner, dispute in self._tables.disputes.values()
            if owner == self._owner and dispute.memory_id == memory_id and dispute.resolution is Resolution.KEEP
        ]
        return max((moment for moment in moments if moment is not None), default=None)

    def multiplier_in_use(self, memory_id: str) -> tuple[float, Evidence]:
        """See `ConfirmationRows.multiplier_in_use`."""
        place = (self._owner, memory_id)
        if place not in self._tables.multipliers:
            return NEUTRAL, Evidence()
        return self._tables.multipliers[place], self._tables.multiplier_bases[place][0]

    def save_multiplier(self, memory_id: str, value: float, evidence: Evidence, *, at: datetime) -> None:
        """See `ConfirmationRows.save_multiplier`; for a memory that is gone nothing is stored, nor without evidence."""
        if evidence == Evidence():
            self._tables.multipliers.pop((self._owner, memory_id), None)
            self._tables.multiplier_bases.pop((self._owner, memory_id), None)
        elif self._tables.find(self._owner, memory_id) is not None:
            self._tables.multipliers[self._owner, memory_id] = value
            self._tables.multiplier_bases[self._owner, memory_id] = (evidence, at)

    # --- ledger ---

    def mark_seen(self, digest: bytes) -> bool:
        """See `LedgerRows.mark_seen`."""
        is_new = digest not in self._tables.seen_events
        self._tables.seen_events.add(digest)
        return is_new

    def thread(self, thread: SessionThread, *, at: datetime) -> Thread:
        """See `LedgerRows.thread`; project and version are those it was last seen with."""
        identity = (thread.client, thread.session, thread.agent_id)
        for entry in self._own_threads():
            known = entry.thread
            if (known.client, known.session, known.agent_id) == identity:
                break
        else:
            entry = ThreadEntry(len(self._tables.threads) + 1, self._owner, thread, at, at)
            self._tables.threads[entry.id] = entry
        entry.first_seen_at = min(entry.first_seen_at, at)
        entry.last_seen_at = max(entry.last_seen_at, at)
        if self._read_at is not None:
            entry.read_at = max(entry.read_at, self._read_at)
        entry.thread = replace(
            entry.thread,
            project=thread.project or entry.thread.project,
            client_version=thread.client_version or entry.thread.client_version,
        )
        return self.thread_by_id(entry.id)

    def thread_by_id(self, thread_id: int) -> Thread:
        """See `LedgerRows.thread_by_id`."""
        entry = self._tables.threads[thread_id]
        return Thread(entry.id, entry.thread.client, entry.thread.session, bool(entry.shown), entry.gathered_bytes)

    def note_end(self, thread: Thread, *, at: datetime) -> None:
        """See `LedgerRows.note_end`."""
        self._tables.end_session(self._owner, thread.client, thread.session, at=at)

    def call(self, client: str, call_id: str) -> Call | None:
        """See `LedgerRows.call`."""
        return self._tables.calls.get((self._owner, client, call_id))

    def save_call(self, client: str, call: Call) -> None:
        """See `LedgerRows.save_call`."""
        self._tables.calls[self._owner, client, call.call_id] = call

    def existing(self, memory_ids: Sequence[str]) -> list[str]:
        """See `LedgerRows.existing`."""
        return [memory_id for memory_id in memory_ids if self._tables.find(self._owner, memory_id) is not None]

    def count_missing(self, thread_id: int, count: int) -> None:
        """See `LedgerRows.count_missing`."""
        self._tables.threads[thread_id].missing_ids += count

    def add_shown(self, thread: Thread, memory_id: str, call: Call, *, at: datetime) -> bool:
        """See `LedgerRows.add_shown`."""
        entry = self._tables.threads[thread.id]
        if (memory_id, call.call_id) in entry.shown:
            return False
        entry.gathered_bytes = 0
        entry.slices = [
            (seq, replace(piece, is_context=piece.is_context and piece.at < at)) for seq, piece in entry.slices
        ]
        entry.shown[memory_id, call.call_id] = (at, self._tables.last_slice)
        key = JobKey(self._owner, thread.client, thread.session, memory_id)
        self._tables.judge_jobs.setdefault(key, JudgeEntry(len(self._tables.judge_jobs), thread.id, at))
        self._reopen(entry)
        return True

    def add_slice(self, thread: Thread, piece: Slice) -> None:
        """See `LedgerRows.add_slice`."""
        self._tables.last_slice += 1
        entry = self._tables.threads[thread.id]
        entry.slices.append((self._tables.last_slice, piece))
        entry.gathered_bytes += 0 if piece.awaited_call else piece.size_bytes
        if not piece.is_context and not piece.awaited_call:
            self._reopen(entry)

    def take_awaiting(self, client: str, call_id: str) -> Slice | None:
        """See `LedgerRows.take_awaiting`."""
        for entry in self._own_threads():
            for place, (_, piece) in enumerate(entry.slices):
                if entry.thread.client == client and piece.awaited_call == call_id:
                    del entry.slices[place]
                    return piece
        return None

    def keep_last_context(self, thread_id: int, *, count: int, size_bytes: int) -> None:
        """See `LedgerRows.keep_last_context`."""
        slices = self._tables.threads[thread_id].slices
        context = [numbered for numbered in slices if numbered[1].is_context]
        while len(context) > 1 and (len(context) > count or sum(piece.size_bytes for _, piece in context) > size_bytes):
            slices.remove(context.pop(0))

    def keep_newest_slices(self, *, size_bytes: int) -> None:
        """See `LedgerRows.keep_newest_slices`; a sixteenth more goes, as with SQLite."""
        numbered = [(seq, piece, entry) for entry in self._own_threads() for seq, piece in entry.slices]
        numbered.sort(key=itemgetter(0))
        total = sum(piece.size_bytes for _, piece, _ in numbered)
        if total <= size_bytes:
            return
        for seq, piece, entry in numbered:
            if total <= size_bytes - size_bytes // 16:
                break
            entry.slices.remove((seq, piece))
            entry.dropped_slices += 1
            self._tables.note_lost_text(entry)
            total -= piece.size_bytes

    def _reopen(self, thread: ThreadEntry) -> None:
        """Have the memories that a thread was shown judged anew: something was said in it."""
        known = thread.thread
        for memory_id, _ in thread.shown:
            job = self._tables.judge_jobs.get(JobKey(self._owner, known.client, known.session, memory_id))
            if job is None or (job.state is not JobState.DONE and job.leased_until is None):
                continue
            job.revision += 1
            if job.state is JobState.DONE:
                job.state, job.next_try_at = JobState.WAITING, None

    def _own_threads(self) -> list[ThreadEntry]:
        return [entry for entry in self._tables.threads.values() if entry.owner == self._owner]

    def _own_claims(self) -> list[Claim]:
        own = [claim for (owner, *_), claim in self._tables.claims.items() if owner == self._owner]
        return sorted(own, key=lambda claim: claim.at)

    def _same_events(self, event: UsageEvent, occasion: str) -> list[UsageEntry]:
        identity = UsageEntry(0, event, occasion).identity
        return [entry for entry in self._tables.usage if entry.identity == identity]
