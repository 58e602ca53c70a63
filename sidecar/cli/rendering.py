"""How memories and their figures look in a terminal. Pure: gives text, prints nothing."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from sidecar.api.plain import short_name
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service

_AGES: Final = ((365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "min"))
_SIZES: Final = (("GiB", 30), ("MiB", 20), ("KiB", 10))

_SESSION_CHARACTERS: Final = 8
_SURFACED: Final = service.USAGE_VALENCE_SURFACED

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


def counted(count: int, what: str, plural: str = "") -> str:
    """Return `1 memory`, `2 memories`.

    Args:
        plural: Of `what`; without one an `s` is added.
    """
    return f"{count} {what if count == 1 else plural or f'{what}s'}"


def use(answer: service.GetMemoryResponse) -> str:
    """Return what is known of a memory's use; that it was shown says nothing of it and does not count."""
    counting = sum(1 for event in answer.usage_events if event.weight > 0 and event.valence != _SURFACED)
    return f"factor {answer.reinforcement:.2f} from {counted(counting, 'event')}"


def usage_row(event: service.UsageEvent) -> tuple[str, ...]:
    """Return when, client, session, valence and weight of an event."""
    return (
        event.create_time.ToDatetime().strftime("%Y-%m-%d %H:%M"),
        event.client or "-",
        event.session[:_SESSION_CHARACTERS] or "-",
        short_name(service.UsageValence.DESCRIPTOR, event.valence),
        f"{event.weight:.2f}",
    )


def unknown_variables(names: Iterable[str]) -> str:
    """Return what to say of variables that look like settings; empty if there are none."""
    listed = ", ".join(names)
    return (
        f"{listed}: no setting has this name, so it has no effect; docs/configuration.md lists them" if listed else ""
    )


def redactions(found: "list[pb.Redaction]") -> str:
    """Return what was taken out of a text, such as `2 aws-access-token`."""
    return ", ".join(f"{one.count} {one.rule}" for one in found)


def place(*, is_local: bool) -> str:
    """Return where texts go that a language model is sent."""
    return "on this machine" if is_local else "REMOTE: texts leave this machine"


def language_model(status: admin.LanguageModelStatus) -> str:
    """Return which language model is asked, where, and what that costs."""
    if not status.host:
        return "off, nothing is sent anywhere"
    parts = [
        short_name(admin.PartState.DESCRIPTOR, status.state),
        f"{status.model} by {status.provider} at {status.host} ({place(is_local=status.local)})",
        f"today {status.calls_today} of {status.calls_a_day} questions",
        f"{status.tokens_today} of {status.tokens_a_day} tokens",
    ]
    if status.counters["malformed"]:
        parts.append(f"{counted(status.counters['malformed'], 'answer')} dropped")
    if status.problem:
        parts.append(status.problem)
    return ", ".join(parts)
