"""What looking after evidence of use knows and finds, as values. Rules are in `weighing` and `reinforcement`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sidecar.domain.evidence import UsageEvent
from sidecar.domain.reinforcement import WINDOW_DAYS, Evidence
from sidecar.domain.weighing import REVIEW_SIGNALS, WeighedEvent, evidence_of, misled_signals, weigh_events

HYGIENE_LEASE: Final = "hygiene"
WINDOW: Final = timedelta(days=WINDOW_DAYS)


@dataclass(frozen=True, slots=True)
class EvidencePlace:
    """A memory with evidence. `key` is its own, for going on from there."""

    key: int
    owner: str
    memory_id: str


@dataclass(frozen=True, slots=True)
class MemoryEvidence:
    """All that bears on a memory's multiplier.

    Attributes:
        multiplier: The one in use; 1 without evidence.
        weighed: Statements of the window, newest first, without those of being shown.
        surfaced: How often it was delivered in the window.
        is_disputed: Whether a dispute about it is open.
        is_standing_rule: Whether it is promoted.
    """

    multiplier: float
    weighed: tuple[WeighedEvent, ...]
    surfaced: int
    is_disputed: bool
    is_standing_rule: bool

    @property
    def evidence(self) -> Evidence:
        """What counts of it, as of now."""
        return evidence_of(self.weighed)


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A memory that somebody should look at: it misled several sessions since that was last settled.

    Attributes:
        sources: Who says so, in order of name.
        dispute_ids: Open disputes about it.
    """

    memory_id: str
    signals: int
    latest_at: datetime
    sources: tuple[str, ...]
    dispute_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HygieneReport:
    """What one run did. `is_refused`: another one is under way, and nothing was done."""

    looked_at: int = 0
    changed: int = 0
    dropped_recalls: int = 0
    is_refused: bool = False


def review_item(
    events: Iterable[UsageEvent],
    memory_id: str,
    *,
    cleared_at: datetime | None,
    settled_at: datetime | None,
    dispute_ids: Sequence[int],
) -> ReviewItem | None:
    """Return the item of a memory if there are enough signals for one.

    Args:
        events: See `weigh_events`.
        settled_at: When a dispute about it last ended, however it did.
    """
    signals = misled_signals(weigh_events(events, memory_id, cleared_at=cleared_at), since=settled_at)
    if len(signals) < REVIEW_SIGNALS:
        return None
    return ReviewItem(
        memory_id=memory_id,
        signals=len(signals),
        latest_at=max(event.at for event in signals),
        sources=tuple(sorted({str(event.source) for event in signals})),
        dispute_ids=tuple(dispute_ids),
    )


def by_urgency(items: Iterable[ReviewItem]) -> list[ReviewItem]:
    """Return the items, the most signals first, then the latest, then by id."""
    return sorted(items, key=lambda item: (-item.signals, -item.latest_at.timestamp(), item.memory_id))
