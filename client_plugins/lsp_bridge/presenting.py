"""Makes what the sidecar answers into the contract's values, and figures into words for people. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from client_plugins.lsp_bridge.contract import Figure, Memory, Usefulness
from client_plugins.lsp_bridge.file_mentions import mentions_of
from sidecar.api.plain import JsonValue, plain, short_name
from sidecar.domain.memory import GOLDEN_CONFIDENCE, MemoryType, is_golden_rule

if TYPE_CHECKING:
    from sidecar.api.v1 import memory_pb2 as pb
    from sidecar.api.v1.insights_service_pb2 import ExplainMemoryResponse, Metric

_AGES: Final = ((365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "min"))
_SHOWN_FILES: Final = 10


def present(
    memory: "pb.Memory", why: "ExplainMemoryResponse", *, now: datetime, relevance: float | None = None
) -> Memory:
    """Return a memory as editors get it.

    Args:
        why: What its rank owes to use.
        relevance: To what was asked.
    """
    from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415 - protobuf is there once something was answered

    created = memory.create_time.ToDatetime(tzinfo=UTC)
    kind = short_name(pb.MemoryType.DESCRIPTOR, memory.type)
    return Memory(
        id=memory.id,
        content=memory.content,
        type=kind,
        namespace=memory.namespace,
        importance=round(memory.importance, 4),
        created_at=created.isoformat(timespec="seconds").replace("+00:00", "Z"),
        age=age((now - created).total_seconds()),
        golden=is_golden(memory),
        disputed=why.disputed,
        superseded=memory.state == pb.MEMORY_STATE_SUPERSEDED,
        usefulness=usefulness(why),
        relevance=None if relevance is None else round(relevance, 4),
        files=list(mentions_of(memory.content, attached(memory)))[:_SHOWN_FILES] or None,
    )


def usefulness(why: "ExplainMemoryResponse") -> Usefulness:
    """Return how often a memory helped and misled, by what counts, and how often it was shown."""
    from sidecar.api.v1.insights_service_pb2 import EVIDENCE_STANDING_COUNTED  # noqa: PLC0415 - as above

    counted = [event.valence for event in why.events if event.standing == EVIDENCE_STANDING_COUNTED]
    return Usefulness(
        used=counted.count("useful"),
        misled=counted.count("misled"),
        shown=why.surfaced,
        multiplier=round(why.multiplier, 4),
    )


def is_golden(memory: "pb.Memory") -> bool:
    """Tell whether a memory is a golden rule."""
    from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415 - as above

    kind = short_name(pb.MemoryType.DESCRIPTOR, memory.type)
    known = MemoryType(kind) if kind in set(MemoryType) else MemoryType.FACT
    return is_golden_rule(known, memory.confidence, golden_from=GOLDEN_CONFIDENCE)


def figure(metric: "Metric") -> Figure:
    """Return a figure of the insights."""
    says, _, proxy = metric.label.partition("; ")
    told = [part for part in (proxy.removeprefix("proxy for "), metric.reason) if part]
    return Figure(
        name=metric.name,
        label=says,
        value=metric.value if metric.HasField("value") else None,
        numerator=metric.numerator,
        denominator=metric.denominator,
        proxy="; ".join(told) or None,
    )


def attached(memory: "pb.Memory") -> dict[str, JsonValue]:
    """Return what was attached to a memory as plain values."""
    metadata = plain(memory)["metadata"] if memory.HasField("metadata") else {}
    return metadata if isinstance(metadata, dict) else {}


def age(seconds: float) -> str:
    """Return `3 d`, `2 h`, `5 min` or `now`."""
    return next((f"{int(seconds // unit)} {name}" for unit, name in _AGES if seconds >= unit), "now")


def use_in_words(use: Usefulness) -> str:
    """Return what is known of a memory's use, for people: what is not known is not told as nothing."""
    if not use.shown and not use.used and not use.misled:
        return "not shown to an agent yet"
    parts = [f"helped {use.used}×"] if use.used else []
    parts += [f"misled {use.misled}×"] if use.misled else []
    parts += [f"shown {use.shown}×"] if use.shown else []
    return ", ".join(parts)


def counted(count: int, one: str, several: str = "") -> str:
    """Return `1 memory`, `2 memories`."""
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def joined(parts: Iterable[str]) -> str:
    """Return facts about one thing in one line."""
    return " · ".join(part for part in parts if part)
