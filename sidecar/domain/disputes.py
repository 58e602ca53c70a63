"""Disputes: that a memory misleads, and how that was settled. What it does to ranking is in `confirmation`."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidecar.domain.evidence import UsageEvent, UsageSource, Valence, session_occasion
from sidecar.domain.store_values import CatalogRow
from sidecar.errors import InvalidInputError

MISLED_WEIGHT: Final = 1.0
"""A person's or an agent's word that a memory misleads counts in full."""


class Resolution(StrEnum):
    """How a dispute ended."""

    KEEP = "keep"
    RETIRE = "retire"
    SUPERSEDE = "supersede"


@dataclass(frozen=True, slots=True)
class Challenge:
    """What is said against a memory, as it comes in. Texts are redacted and cut; `at` is UTC."""

    memory_id: str
    reason: str
    evidence: str
    at: datetime
    client: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Dispute:
    """A challenge as stored.

    Attributes:
        id: The database's own; `uid` is the same in every copy of it.
        resolution: None while it is open; so too `resolved_at`.
        successor_id: Of the memory that took its place; empty unless it was resolved so.
    """

    id: int
    uid: str
    memory_id: str
    reason: str
    evidence: str
    client: str
    session: str
    at: datetime
    resolution: Resolution | None = None
    successor_id: str = ""
    resolved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How to end a dispute. `successor_id` with SUPERSEDE, and only there.

    Raises:
        InvalidInputError: If it is there without need, or missing.
    """

    resolution: Resolution
    successor_id: str = ""

    def __post_init__(self) -> None:
        if (self.resolution is Resolution.SUPERSEDE) != bool(self.successor_id):
            raise InvalidInputError("successor_id", self.successor_id, "an id with `supersede`, and none otherwise")


@dataclass(frozen=True, slots=True)
class ResolvedDispute:
    """A dispute as it ended. `changed` lists every memory whose catalog fields are new by it."""

    dispute: Dispute
    changed: tuple[CatalogRow, ...] = ()


def misled_event(owner: str, dispute: Dispute) -> tuple[UsageEvent, str]:
    """Return what a dispute says of its memory's use, and the occasion that it counts once for."""
    event = UsageEvent(
        owner=owner,
        memory_id=dispute.memory_id,
        credited_id=dispute.memory_id,
        source=UsageSource.CHALLENGE,
        valence=Valence.MISLED,
        weight=MISLED_WEIGHT,
        client=dispute.client,
        session=dispute.session,
        at=dispute.at,
    )
    return event, session_occasion(dispute.client, dispute.session, otherwise=dispute.uid)
