"""The factors of a score beside relevance: bounded, so that none of them outvotes it."""

from datetime import datetime
from typing import Final

from sidecar.domain.memory import MemoryType, Provenance

TYPE_WEIGHTS: Final = {
    MemoryType.GOLDEN_RULE: 1.1,
    MemoryType.PREFERENCE: 1.05,
    MemoryType.DECISION: 1.05,
    MemoryType.GOTCHA: 1.05,
    MemoryType.CONVENTION: 1.05,
    MemoryType.SESSION: 0.95,
    MemoryType.EPISODE: 0.95,
    MemoryType.FILE_CONTEXT: 0.95,
    MemoryType.TASK: 0.95,
    MemoryType.OPEN_QUESTION: 0.95,
}
"""What rules counts a little more than what happened; types that are not named count 1."""

OLDEST_FACTOR: Final = 0.85
"""An old memory keeps this much: most facts about a project stay true, and what replaces one should say so."""

_SECONDS_PER_DAY: Final = 86_400.0


def type_weight(memory_type: MemoryType) -> float:
    """Return the factor of a memory's type."""
    return TYPE_WEIGHTS.get(memory_type, 1.0)


def age_factor(created_at: datetime, now: datetime, *, half_life_days: float) -> float:
    """Return the factor of a memory's age: 1 when new or dated in the future, never below `OLDEST_FACTOR`."""
    age_days = max((now - created_at).total_seconds(), 0.0) / _SECONDS_PER_DAY
    return float(OLDEST_FACTOR + (1.0 - OLDEST_FACTOR) * 0.5 ** (age_days / half_life_days))


def provenance_factor(provenance: Provenance, *, machine_weight: float) -> float:
    """Return the factor of who the words come from."""
    return machine_weight if provenance is Provenance.MACHINE else 1.0
