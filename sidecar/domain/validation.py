"""What is reported about memories, as values, and what it says of their use. How confidence moves: `confidence`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sidecar.domain.confidence import DEFAULT_ADJUSTMENT, RULES, ConfidenceChange, ConfidenceRules, ValidationKind
from sidecar.domain.evidence import UsageEvent, UsageSource, Valence, session_occasion
from sidecar.domain.store_values import CatalogRow

MAX_REPORT_CHARACTERS: Final = 1_000
"""Longer contexts and errors are cut."""

USEFUL_WEIGHT: Final = 1.0
"""An outcome is a fact, so it counts in full."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report about a memory, as it comes in. Texts are redacted and cut.

    Attributes:
        adjustment: How far a success moves the confidence, 0 to 1; a failure moves it further, by the rules.
        is_direct: Said outright rather than the outcome of acting upon it.
        client: Who says so; empty if not said. So too `session`.
        context: What was being done; `error`: what went wrong.
        at: UTC.
    """

    memory_id: str
    kind: ValidationKind
    at: datetime
    adjustment: float = DEFAULT_ADJUSTMENT
    is_direct: bool = False
    client: str = ""
    session: str = ""
    context: str = ""
    error: str = ""
    rules: ConfidenceRules = RULES


@dataclass(frozen=True, slots=True)
class ValidationEvent:
    """One report as stored. `id` is the database's own, `uid` the same in every copy of it."""

    id: int
    uid: str
    memory_id: str
    kind: ValidationKind
    is_direct: bool
    client: str
    session: str
    context: str
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ValidationOutcome:
    """A report as stored, and what it did.

    Attributes:
        change: What it did to the memory; None if it only says that it is being acted upon.
        changed: Every memory whose catalog fields are new by it.
    """

    event: ValidationEvent
    change: ConfidenceChange | None
    changed: tuple[CatalogRow, ...] = ()


def outcome_event(owner: str, event: ValidationEvent) -> tuple[UsageEvent, str] | None:
    """Return what a report says of its memory's use, and the occasion that it counts once for; None if nothing.

    Only an outcome that went well does: to say outright that a memory holds is not to have used it.
    """
    if event.kind is not ValidationKind.SUCCEEDED or event.is_direct:
        return None
    usage = UsageEvent(
        owner=owner,
        memory_id=event.memory_id,
        credited_id=event.memory_id,
        source=UsageSource.OUTCOME,
        valence=Valence.USEFUL,
        weight=USEFUL_WEIGHT,
        client=event.client,
        session=event.session,
        at=event.at,
    )
    return usage, session_occasion(event.client, event.session, otherwise=event.uid)
