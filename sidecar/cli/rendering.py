"""How memories and their figures look in a terminal. Pure: gives text, prints nothing."""

from datetime import UTC, datetime
from typing import Final

from sidecar.api.plain import short_name
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service

_AGES: Final = ((365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "min"))
_SIZES: Final = (("GiB", 30), ("MiB", 20), ("KiB", 10))

_TYPE: Final = pb.MemoryType.DESCRIPTOR
_STATE: Final = pb.MemoryState.DESCRIPTOR


def age(seconds: float) -> str:
    """Return `3d`, `2h`, `5min` or `now`."""
    return next((f"{int(seconds // unit)}{name}" for unit, name in _AGES if seconds >= unit), "now")


def size(count: int) -> str:
    """Return bytes as a person reads them."""
    return next((f"{count / (1 << shift):.1f} {name}" for name, shift in _SIZES if count >= 1 << shift), f"{count} B")


def memory_age(memory: pb.Memory, *, now: datetime) -> str:
    """Return how long ago the memory was stored."""
    return age((now - memory.create_time.ToDatetime(tzinfo=UTC)).total_seconds())


def type_name(memory: pb.Memory) -> str:
    """Return the type as it is typed."""
    return short_name(_TYPE, memory.type)


def state_name(memory: pb.Memory) -> str:
    """Return the state as it is typed."""
    return short_name(_STATE, memory.state)


def heading(found: service.RecalledMemory, *, now: datetime) -> str:
    """Return what stands above the text of a recalled memory."""
    memory = found.memory
    parts = [
        memory.id,
        type_name(memory),
        memory.namespace,
        f"{memory_age(memory, now=now)} old" if memory_age(memory, now=now) != "now" else "new",
        f"score {found.score:.2f}",
    ]
    if memory.superseded_by:
        parts.append(f"superseded by {memory.superseded_by}")
    if found.disputed:
        parts.append("disputed")
    return "  ".join(parts)


def related_heading(found: service.ExpandedMemory) -> str:
    """Return what stands above the text of a memory that was reached over relations."""
    memory = found.memory
    parts = (
        memory.id,
        type_name(memory),
        memory.namespace,
        f"relevance {found.relevance_score:.2f}",
        found.explanation,
    )
    return "  ".join(part for part in parts if part)


def score_parts(found: service.RecalledMemory) -> list[str]:
    """Return how the score came about: the factors, and what the relevance was made from."""
    parts = found.score_parts
    seen = [f"similarity {found.similarity:.2f}"] if found.HasField("similarity") else []
    seen += [f"words {parts.word_score:.2f}"] if parts.HasField("word_score") else []
    factors = (
        f"relevance {parts.relevance:.2f} × type {parts.type_weight:.2f} × age {parts.age_factor:.2f}"
        f" × source {parts.provenance_factor:.2f} × use {parts.reinforcement:.2f}"
    )
    return [factors, *([f"relevance from {', '.join(seen)}"] if seen else [])]


def redactions(found: "list[pb.Redaction]") -> str:
    """Return what was taken out of a text, such as `2 aws-access-token`."""
    return ", ".join(f"{one.count} {one.rule}" for one in found)
