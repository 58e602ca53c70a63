"""Decides when a link confirms that a shown memory was used, and what the evidence is worth. Pure rules over rows.

The rows are reached through `ConfirmationRows`, which an adapter implements inside one write transaction for one owner.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from sidecar.domain.evidence import CREDITING_RELATIONS, UsageEvent, UsageSource, Valence
from sidecar.domain.memory import Link, Relation
from sidecar.domain.reinforcement import WINDOW_DAYS, Evidence, multiplier

FULL_WEIGHT: Final = 1.0
WEAK_WEIGHT: Final = 0.5
WEAK_WINDOW: Final = timedelta(hours=24)
"""Without a session, a memory that the same client and project was given this recently counts as shown."""

_DETERMINISTIC: Final = frozenset({UsageSource.IN_BAND, UsageSource.CHALLENGE, UsageSource.OUTCOME})


class Standing(StrEnum):
    """How far a claim has come."""

    OPEN = "open"
    WEAK = "weak"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Claim:
    """That a new memory replaces or builds upon an older one. Proof of use once the older one was shown.

    Attributes:
        source_id: The new memory.
        target_id: The older one.
        client: Who stored the new one; `session` and `project` too, empty where not known.
    """

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


class ConfirmationRows(Protocol):
    """What the rules read and change, for one owner, within one transaction."""

    @property
    def owner(self) -> str:
        """Whose rows these are."""
        ...

    def was_shown(self, client: str, session: str, memory_id: str) -> bool:
        """Tell whether any agent of a session saw this memory, by its transcript or by our own recalls."""
        ...

    def was_delivered(self, client: str, project: str, memory_id: str, *, since: datetime, until: datetime) -> bool:
        """Tell whether a recall of this client and project delivered the memory in that time, ends included."""
        ...

    def save_claim(self, claim: Claim) -> None:
        """Store a claim, or replace the one of the same source, target and relation."""
        ...

    def claims_of(self, source_id: str) -> Sequence[Claim]:
        """Return the claims that a new memory makes, the oldest first."""
        ...

    def claims_on(self, client: str, session: str, target_id: str) -> Sequence[Claim]:
        """Return the claims that a session makes on an older memory, the oldest first."""
        ...

    def add_use(self, event: UsageEvent, *, occasion: str) -> bool:
        """Store an event and tell whether it was new: one each for owner, occasion, memory, valence and source."""
        ...

    def withdraw_use(self, event: UsageEvent, *, occasion: str) -> None:
        """Delete the event with that occasion, memory, valence and source."""
        ...

    def credits(self, memory_id: str, *, since: datetime) -> Sequence[UsageEvent]:
        """Return the events that credit or blame a memory from that time on, surfaced ones left out."""
        ...

    def save_multiplier(self, memory_id: str, value: float, evidence: Evidence, *, at: datetime) -> None:
        """Store a memory's multiplier with what it rests on."""
        ...


def make_claims(
    links: Iterable[Link], *, source_id: str, client: str, session: str, project: str, at: datetime
) -> list[Claim]:
    """Return the claims of a new memory's links: one for each that can confirm use."""
    return [
        Claim(source_id, link.memory_id, link.relation, client, session, project, at)
        for link in dict.fromkeys(links)
        if link.relation in CREDITING_RELATIONS
    ]


def settle(rows: ConfirmationRows, claim: Claim, *, at: datetime) -> bool:
    """Turn a claim into a usage event if what is known allows it, and tell whether a new event came of it.

    The claim is stored in any case, with the standing it has now.
    """
    if claim.standing is Standing.CONFIRMED:
        return False
    if claim.session and rows.was_shown(claim.client, claim.session, claim.target_id):
        rows.save_claim(replace(claim, standing=Standing.CONFIRMED))
        if claim.standing is Standing.WEAK:
            _withdraw_weak(rows, claim, at=at)
        return _confirm(rows, claim, at=at, is_weak=False)
    if claim.standing is Standing.OPEN and not claim.session and _was_likely_shown(rows, claim):
        rows.save_claim(replace(claim, standing=Standing.WEAK))
        return _confirm(rows, claim, at=at, is_weak=True)
    rows.save_claim(claim)
    return False


def name_session(rows: ConfirmationRows, source_id: str, *, client: str, session: str, at: datetime) -> list[str]:
    """Give a new memory's claims the session that its transcript names, and settle them.

    Claims that know their session keep it. A weak event gives way to the full one.

    Returns:
        Ids of the older memories that turned out to be used.
    """
    used = []
    for claim in rows.claims_of(source_id):
        if claim.session:
            continue
        named = replace(claim, client=client, session=session)
        if settle(rows, named, at=at):
            used.append(claim.target_id)
    return used


def settle_shown(rows: ConfirmationRows, client: str, session: str, memory_id: str, *, at: datetime) -> bool:
    """Settle what a session claimed about a memory that it is now known to have seen; tell whether it was used."""
    settled = [settle(rows, claim, at=at) for claim in rows.claims_on(client, session, memory_id)]
    return any(settled)


def weigh(events: Iterable[UsageEvent]) -> Evidence:
    """Return what a memory's events are worth: each session counts once for and once against.

    Within a session, sources that state a fact go before the judge's opinion, then the heavier event counts.
    """
    best: dict[tuple[str, str, Valence], tuple[bool, float]] = {}
    for event in events:
        if event.valence not in (Valence.USEFUL, Valence.MISLED):
            continue
        session = event.session or event.at.date().isoformat()
        key = (event.client, session, event.valence)
        best[key] = max(best.get(key, (False, 0.0)), (event.source in _DETERMINISTIC, event.weight))
    useful = sum(weight for (_, _, valence), (_, weight) in best.items() if valence is Valence.USEFUL)
    misled = sum(weight for (_, _, valence), (_, weight) in best.items() if valence is Valence.MISLED)
    return Evidence(useful=useful, misled=misled)


def recompute(rows: ConfirmationRows, memory_id: str, *, at: datetime) -> None:
    """Compute a memory's multiplier anew from the evidence of the window that ends now."""
    evidence = weigh(rows.credits(memory_id, since=at - timedelta(days=WINDOW_DAYS)))
    rows.save_multiplier(memory_id, multiplier(evidence), evidence, at=at)


def _was_likely_shown(rows: ConfirmationRows, claim: Claim) -> bool:
    # Unnamed clients are not one client: what one of them was shown says nothing about another.
    return bool(claim.client) and rows.was_delivered(
        claim.client, claim.project, claim.target_id, since=claim.at - WEAK_WINDOW, until=claim.at
    )


def _confirm(rows: ConfirmationRows, claim: Claim, *, at: datetime, is_weak: bool) -> bool:
    is_new = rows.add_use(_event(rows.owner, claim, is_weak=is_weak), occasion=_occasion(claim))
    if is_new:
        recompute(rows, claim.credited_id, at=at)
    return is_new


def _withdraw_weak(rows: ConfirmationRows, claim: Claim, *, at: datetime) -> None:
    claim = replace(claim, session="")
    rows.withdraw_use(_event(rows.owner, claim, is_weak=True), occasion=_occasion(claim))
    recompute(rows, claim.credited_id, at=at)


def _event(owner: str, claim: Claim, *, is_weak: bool) -> UsageEvent:
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
    )


def _occasion(claim: Claim) -> str:
    """Return what an event may count once for: the session or, where that is not known, the new memory itself."""
    if claim.session:
        return f"session\x1f{claim.client}\x1f{claim.session}"
    return f"memory\x1f{claim.source_id}"
