"""Decides whether a memory has proved better than an older one. Compares records; reads no text and changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidecar.domain.confidence import ValidationSummary, settle_confidence
from sidecar.domain.memory import MemoryState

SAME_TOPIC_SIMILARITY: Final = 0.7
LEAST_SUCCESSES: Final = 2
LEAST_FAILURES: Final = 1


class KeptReason(StrEnum):
    """Why an older memory stays. In words for a person, in the order in which they are looked at."""

    TOO_FEW_SUCCESSES = "the newer memory has too few successes"
    SAME_MEMORY = "it is the same memory"
    NOT_ACTIVE = "one of the two is superseded or forgotten already"
    OTHER_TOPIC = "the two are not on the same topic"
    NOT_OLDER = "the other memory is not older"
    NOT_LESS_CONFIDENT = "the older memory is as confident or more"
    NO_FAILURE = "the older memory has too few failures"
    NOT_MORE_FAILURES = "the older memory has no more failures than the newer"
    GOLDEN_RULE = "the older memory is a golden rule, which only force replaces"


@dataclass(frozen=True, slots=True)
class SupersessionRules:
    """What makes a memory better than an older one.

    Attributes:
        similarity: From this raw cosine on two memories are on one topic.
        successes: So many the newer one needs at least.
        failures: So many the older one needs at least.
    """

    similarity: float = SAME_TOPIC_SIMILARITY
    successes: int = LEAST_SUCCESSES
    failures: int = LEAST_FAILURES


RULES: Final = SupersessionRules()


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """What is known of how a memory did. Times are UTC and aware."""

    memory_id: str
    created_at: datetime
    confidence: float
    is_golden_rule: bool
    summary: ValidationSummary
    state: MemoryState = MemoryState.ACTIVE


@dataclass(frozen=True, slots=True)
class OlderMemory:
    """A memory that may be replaced. `similarity` is the raw cosine of the two, -1 to 1."""

    record: TrackRecord
    similarity: float


@dataclass(frozen=True, slots=True)
class SupersessionCheck:
    """What came of it.

    Attributes:
        superseded: Those that the memory has proved better than, the most similar first, equal ones by id.
        kept: Ids of the others and why each of them stays, in the order given.
    """

    superseded: tuple[OlderMemory, ...]
    kept: tuple[tuple[str, KeptReason], ...]


def kept_reason(
    newer: TrackRecord,
    older: OlderMemory,
    *,
    is_forced: bool,
    rules: SupersessionRules = RULES,
) -> KeptReason | None:
    """Return why the older memory stays, None if the newer has proved better.

    Args:
        is_forced: Whether golden rules may be replaced too.
    """
    record = older.record
    is_active = newer.state is MemoryState.ACTIVE and record.state is MemoryState.ACTIVE
    obstacles = {
        KeptReason.TOO_FEW_SUCCESSES: newer.summary.succeeded < rules.successes,
        KeptReason.SAME_MEMORY: record.memory_id == newer.memory_id,
        KeptReason.NOT_ACTIVE: not is_active,
        # Not `<`, so that a similarity that is not a number is none.
        KeptReason.OTHER_TOPIC: not older.similarity >= rules.similarity,
        KeptReason.NOT_OLDER: record.created_at >= newer.created_at,
        KeptReason.NOT_LESS_CONFIDENT: settle_confidence(record.confidence) >= settle_confidence(newer.confidence),
        KeptReason.NO_FAILURE: record.summary.failed < rules.failures,
        KeptReason.NOT_MORE_FAILURES: record.summary.failed <= newer.summary.failed,
        KeptReason.GOLDEN_RULE: record.is_golden_rule and not is_forced,
    }
    return next((reason for reason, is_given in obstacles.items() if is_given), None)


def check_supersedes(
    newer: TrackRecord,
    candidates: Iterable[OlderMemory],
    *,
    is_forced: bool,
    rules: SupersessionRules = RULES,
) -> SupersessionCheck:
    """Return which of these memories the newer one has proved better than, and why the others stay."""
    superseded: list[OlderMemory] = []
    kept: list[tuple[str, KeptReason]] = []
    for older in candidates:
        reason = kept_reason(newer, older, is_forced=is_forced, rules=rules)
        if reason is None:
            superseded.append(older)
        else:
            kept.append((older.record.memory_id, reason))
    superseded.sort(key=lambda older: (-older.similarity, older.record.memory_id))
    return SupersessionCheck(tuple(superseded), tuple(kept))
