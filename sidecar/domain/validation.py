"""What is reported about memories, as values: events and their counts. How confidence moves is in `confidence`."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidecar.domain.memory import Memory
from sidecar.domain.store_values import CatalogRow

MAX_REPORT_CHARACTERS: Final = 1_000
"""Longer contexts and errors are cut."""


class ValidationKind(StrEnum):
    """What a report says."""

    APPLIED = "applied"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Report:
    """A report about a memory, as it comes in. Texts are redacted and cut.

    Attributes:
        adjustment: How far a success moves the confidence, 0 to 1; a failure moves it by one and a half times as much.
        is_direct: Said outright rather than the outcome of acting upon it.
        client: Who says so; empty if not said. So too `session`.
        context: What was being done; `error`: what went wrong.
        at: UTC.
    """

    memory_id: str
    kind: ValidationKind
    adjustment: float
    at: datetime
    is_direct: bool = False
    client: str = ""
    session: str = ""
    context: str = ""
    error: str = ""


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
class ValidationSummary:
    """Counts over all reports about a memory."""

    applied: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.applied + self.succeeded + self.failed

    @property
    def success_rate(self) -> float | None:
        """Share of outcomes that went well; None without an outcome."""
        outcomes = self.succeeded + self.failed
        return self.succeeded / outcomes if outcomes else None


@dataclass(frozen=True, slots=True)
class ValidationOutcome:
    """A report as stored, and what it did.

    Attributes:
        before: The memory as it was, `after`: as it is now. Only confidence and type may differ.
        changed: Every memory whose catalog fields are new by it.
    """

    event: ValidationEvent
    before: Memory
    after: Memory
    changed: tuple[CatalogRow, ...] = ()
