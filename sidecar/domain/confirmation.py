"""Decides when a link confirms that a shown memory was used, and what the evidence is worth. Pure rules over rows.

The rows are reached through `ConfirmationRows`, which an adapter implements inside one write transaction for one owner.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from sidecar.domain.coverage import HOOK_SUFFIX
from sidecar.domain.evidence import CREDITING_RELATIONS, UsageEvent, UsageSource, Valence, session_occasion
from sidecar.domain.memory import Link, Memory, Relation
from sidecar.domain.reinforcement import WINDOW_DAYS, Evidence, multiplier
from sidecar.domain.weighing import evidence_of, weigh_events

FULL_WEIGHT: Final = 1.0
WEAK_WEIGHT: Final = 0.5
WEAK_WINDOW: Final = timedelta(hours=24)
"""Without a session, a memory that the same client and project was given this recently counts as shown."""

CLOCK_SKEW: Final = timedelta(seconds=5)
"""By so much a client's record of a moment may be later or earlier than ours of the same."""


class Standing(StrEnum):
    """How far a claim has come."""

    OPEN = "open"
    WEAK = "weak"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Claim:
    """That a new memory replaces or builds upon an older one. Proof of use if the older one was shown before.

    Attributes:
        remember_id: Of the call that made the claim: the id that its memory got, or would have got if it were new.
        source_id: The new memory; for a text that was there already, the memory that has it.
        target_id: The older one.
        client: Who made the call; `session` and `project` too, empty where not known.
        at: When the call was made.
    """

    remember_id: str
    source_id: str
    target_id: str
    relation: Relation
    client: str
    session: str
    project: str
    at: datetime
    standing: Standing = Standing.OPEN

    @property
    def credited_id(self) -> str:
        """Who earns the credit: the successor, where one took the older memory's place."""
        return self.source_id if self.relation is Relation.SUPERSEDES else self.target_id


@dataclass(frozen=True, slots=True)
class RememberCall:
    """A call of `remember` as a transcript tells it.

    Attributes:
        memory_id: What it answered: a new memory, or the one that says the same.
        called_at: When the client made the call, by its own record, and when it had the answer.
    """

    memory_id: str
    client: str
    session: str
    called_at: datetime
    answered_at: datetime

    def includes(self, moment: datetime) -> bool:
        """Tell whether the call was under way at that time of ours."""
        return self.called_at - CLOCK_SKEW <= moment <= self.answered_at + CLOCK_SKEW


@dataclass(frozen=True, slots=True)
class Citation:
    """That a session named a memory in its client's own citation block. Proof of use if it was shown before."""

    client: str
    session: str
    memory_id: str
    at: datetime


class ConfirmationRows(Protocol):
    """What the rules read and change, for one owner, within one transaction."""

    @property
    def owner(self) -> str:
        """Whose rows these are."""
        ...

    def was_shown(self, client: str, session: str, memory_id: str, *, until: datetime) -> bool:
        """Tell whether any agent of a session saw this memory by then, by its transcript or by our own recalls."""
        ...

    def was_delivered(self, client: str, project: str, memory_id: str, *, since: datetime, until: datetime) -> bool:
        """Tell whether a recall of this client and project delivered the memory in that time, ends included."""
        ...

    def save_claim(self, claim: Claim) -> None:
        """Store a claim, or replace the one of the same call, target and relation."""
        ...

    def claims_of(self, source_id: str) -> Sequence[Claim]:
        """Return the claims that were made for a memory, the oldest first."""
        ...

    def claims_on(self, client: str, session: str, target_id: str) -> Sequence[Claim]:
        """Return the claims that a session makes on an older memory, the oldest first."""
        ...

    def save_citation(self, citation: Citation) -> None:
        """Store that a session cited a memory, or that it did so again, at the later time of the two."""
        ...

    def citation(self, client: str, session: str, memory_id: str) -> Citation | None:
        """Return when a session cited a memory, the last time that is known of; None if it did not."""
        ...

    def add_use(self, event: UsageEvent, *, occasion: str) -> bool:
        """Store an event and tell whether it was new: one each for owner, occasion, memory, valence and source."""
        ...

    def withdraw_use(self, event: UsageEvent, *, occasion: str) -> str:
        """Delete the event with that occasion, memory, valence and source; return whom it credited, empty if none."""
        ...

    def pass_credit(self, event: UsageEvent, *, occasion: str) -> str:
        """Credit the stored event of that occasion, memory, valence and source to whom this one does, and since when.

        Returns:
            Whom it credited before; empty if there is none.
        """
        ...

    def passed_credits(self, memory_id: str) -> Sequence[tuple[UsageEvent, str]]:
        """Return events about other memories whose credit went to this one, each with its occasion."""
        ...

    def credits(self, memory_id: str, *, since: datetime) -> Sequence[UsageEvent]:
        """Return the events about a memory or credited to it from that time on, surfaced ones left out."""
        ...

    def cleared_at(self, memory_id: str) -> datetime | None:
        """Return when a dispute about a memory last ended in its favour; None if none did."""
        ...

    def withdraw_judged(self, memory_id: str, *, occasion: str) -> None:
        """Delete what a judge said of a memory on that occasion."""
        ...

    def multiplier_in_use(self, memory_id: str) -> tuple[float, Evidence]:
        """Return a memory's multiplier and what it rests on; (1, nothing) if none is stored."""
        ...

    def save_multiplier(self, memory_id: str, value: float, evidence: Evidence, *, at: datetime) -> None:
        """Store a memory's multiplier with what it rests on; nothing is kept without evidence."""
        ...


def make_claims(links: Iterable[Link], *, remembered: Memory, source_id: str, project: str) -> list[Claim]:
    """Return the claims of a call's links: one for each that can confirm use.

    Args:
        remembered: The memory as the call asked for it, before a duplicate took its place.
        source_id: The memory that the links start at now.
    """
    return [
        Claim(
            remember_id=remembered.id,
            source_id=source_id,
            target_id=link.memory_id,
            relation=link.relation,
            client=remembered.client,
            session=remembered.session,
            project=project,
            at=remembered.created_at,
        )
        for link in dict.fromkeys(links)
        if link.relation in CREDITING_RELATIONS
    ]


def settle(rows: ConfirmationRows, claim: Claim, *, at: datetime) -> bool:
    """Turn a claim into a usage event if what is known allows it, and tell whether a new event came of it.

    The claim is stored in any case, with the standing it has now.
    """
    if claim.standing is Standing.CONFIRMED:
        return False
    if claim.session:
        # The guess gives way to what is known of the session, be it for or against.
        if claim.standing is Standing.WEAK:
            _withdraw_weak(rows, claim, at=at)
            claim = replace(claim, standing=Standing.OPEN)
        if rows.was_shown(claim.client, claim.session, claim.target_id, until=claim.at + CLOCK_SKEW):
            rows.save_claim(replace(claim, standing=Standing.CONFIRMED))
            return _confirm(rows, claim, at=at, is_weak=False)
    elif claim.standing is Standing.OPEN and _was_likely_shown(rows, claim):
        rows.save_claim(replace(claim, standing=Standing.WEAK))
        return _confirm(rows, claim, at=at, is_weak=True)
    rows.save_claim(claim)
    return False


def name_session(rows: ConfirmationRows, call: RememberCall, *, at: datetime) -> list[str]:
    """Give the claims that a call made the session that its transcript names, and settle them.

    Claims that know their session keep it. A weak event gives way to the full one or, where the session is not known
    to have been shown the older memory, to none.

    Returns:
        Ids of the older memories that turned out to be used.
    """
    used = []
    client, session = call.client, call.session
    # Where a client's hooks tell of the call, the call itself came from the client.
    callers = ("", client, client.removesuffix(HOOK_SUFFIX))
    for claim in rows.claims_of(call.memory_id):
        # Others may have said the same, with links of their own, at other times.
        if claim.session or claim.client not in callers or not call.includes(claim.at):
            continue
        named = replace(claim, client=client, session=session)
        if settle(rows, named, at=at):
            used.append(claim.target_id)
    return used


def settle_shown(rows: ConfirmationRows, client: str, session: str, memory_id: str, *, at: datetime) -> bool:
    """Settle what a session claimed about a memory that it is now known to have seen; tell whether it was used."""
    settled = [settle(rows, claim, at=at) for claim in rows.claims_on(client, session, memory_id)]
    citation = rows.citation(client, session, memory_id)
    if citation is not None:
        settled.append(_settle_citation(rows, citation, at=at))
    return any(settled)


def cite(rows: ConfirmationRows, citation: Citation, *, at: datetime) -> bool:
    """Take a citation; tell whether it is evidence now that was none before. What was never shown is no evidence."""
    rows.save_citation(citation)
    return _settle_citation(rows, citation, at=at)


def give_credit_back(rows: ConfirmationRows, memory_id: str, *, at: datetime) -> None:
    """Let go of the credit that a memory earned in place of others: it is purged, and its claims are deleted."""
    for event, occasion in rows.passed_credits(memory_id):
        heir = _newest_successor(rows, event) or event.memory_id
        rows.pass_credit(replace(event, credited_id=heir, known_at=at), occasion=occasion)
        recompute(rows, heir, at=at)


def recompute(rows: ConfirmationRows, memory_id: str, *, at: datetime) -> bool:
    """Compute a memory's multiplier anew from the evidence of the window that ends now; tell whether it changed."""
    events = rows.credits(memory_id, since=at - timedelta(days=WINDOW_DAYS))
    evidence = evidence_of(weigh_events(events, memory_id, cleared_at=rows.cleared_at(memory_id)))
    value = multiplier(evidence)
    if rows.multiplier_in_use(memory_id) == (value, evidence):
        return False
    rows.save_multiplier(memory_id, value, evidence, at=at)
    return True


def _settle_citation(rows: ConfirmationRows, citation: Citation, *, at: datetime) -> bool:
    client, session, memory_id = citation.client, citation.session, citation.memory_id
    if not rows.was_shown(client, session, memory_id, until=citation.at + CLOCK_SKEW):
        return False
    event = UsageEvent(
        owner=rows.owner,
        memory_id=memory_id,
        credited_id=memory_id,
        source=UsageSource.CITATION,
        valence=Valence.USEFUL,
        weight=FULL_WEIGHT,
        client=client,
        session=session,
        at=citation.at,
        known_at=at,
    )
    is_new = rows.add_use(event, occasion=session_occasion(client, session, otherwise=memory_id))
    if is_new:
        recompute(rows, memory_id, at=at)
    return is_new


def _was_likely_shown(rows: ConfirmationRows, claim: Claim) -> bool:
    # Unnamed clients are not one client: what one of them was shown says nothing about another.
    return bool(claim.client) and rows.was_delivered(
        claim.client, claim.project, claim.target_id, since=claim.at - WEAK_WINDOW, until=claim.at
    )


def _confirm(rows: ConfirmationRows, claim: Claim, *, at: datetime, is_weak: bool) -> bool:
    event = _event(rows.owner, claim, is_weak=is_weak, known_at=at)
    is_new = rows.add_use(event, occasion=_occasion(claim))
    if is_new:
        # Of the older memory too: proof overrules what a judge said of it.
        for memory_id in dict.fromkeys((claim.credited_id, claim.target_id)):
            recompute(rows, memory_id, at=at)
    elif claim.relation is Relation.SUPERSEDES:
        # Used before or besides, now replaced: the one use there is credits the successor.
        successor = _newest_successor(rows, event) or claim.source_id
        before = rows.pass_credit(replace(event, credited_id=successor), occasion=_occasion(claim))
        for memory_id in dict.fromkeys((before, successor)):
            recompute(rows, memory_id, at=at)
    return is_new


def _newest_successor(rows: ConfirmationRows, event: UsageEvent) -> str:
    """Return the memory that this session put in the place of the event's last; empty for none."""
    if not event.session:
        return ""
    replacing = [
        (claim.at, claim.source_id)
        for claim in rows.claims_on(event.client, event.session, event.memory_id)
        if claim.relation is Relation.SUPERSEDES and claim.standing is Standing.CONFIRMED
    ]
    return max(replacing)[1] if replacing else ""


def _withdraw_weak(rows: ConfirmationRows, claim: Claim, *, at: datetime) -> None:
    claim = replace(claim, session="")
    credited_id = rows.withdraw_use(_event(rows.owner, claim, is_weak=True, known_at=at), occasion=_occasion(claim))
    if credited_id:
        recompute(rows, credited_id, at=at)


def _event(owner: str, claim: Claim, *, is_weak: bool, known_at: datetime) -> UsageEvent:
    return UsageEvent(
        owner=owner,
        memory_id=claim.target_id,
        credited_id=claim.credited_id,
        source=UsageSource.IN_BAND,
        valence=Valence.USEFUL,
        weight=WEAK_WEIGHT if is_weak else FULL_WEIGHT,
        client=claim.client,
        session=claim.session,
        at=claim.at,
        is_weak=is_weak,
        known_at=known_at,
    )


def _occasion(claim: Claim) -> str:
    """Return what an event may count once for: the session or, where that is not known, the call itself."""
    if claim.session:
        return f"session\x1f{claim.client}\x1f{claim.session}"
    return f"memory\x1f{claim.remember_id}"
