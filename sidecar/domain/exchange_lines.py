"""Each record of an export as a line of JSON, and back. Reads and writes no file."""

import json
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from sidecar.domain.confidence import ValidationKind
from sidecar.domain.confirmation import Standing
from sidecar.domain.context import ContextKind
from sidecar.domain.disputes import Resolution
from sidecar.domain.edges import EdgeOrigin
from sidecar.domain.evidence import Channel, UsageSource, Valence
from sidecar.domain.exchange import (
    ClaimRecord,
    DeliveryRecord,
    DisputeRecord,
    EdgeRecord,
    ExportRecord,
    FileRecord,
    MemoryRecord,
    MultiplierRecord,
    ReportRecord,
    UseRecord,
    VerdictRecord,
)
from sidecar.domain.exchange_fields import (
    CONTENT,
    COUNT,
    FLAG,
    FRACTION,
    MEMORY_ID,
    METADATA,
    NAMESPACE,
    NUMBER,
    OPTIONAL_TIME,
    TEXT,
    TIME,
    Field,
    choice,
    optional_choice,
)
from sidecar.domain.file_activity import FileAction
from sidecar.domain.memory import MemoryState, MemoryType, Provenance, Relation
from sidecar.errors import InvalidInputError

FORMAT: Final = 1
HEADER: Final = '{"record":"export","format":1}'
"""First line of an export; import takes files without it, too."""

_KIND: Final = "record"
_HEADER_KIND: Final = "export"

_FIELDS: Final[Mapping[str, tuple[Callable[..., ExportRecord], Mapping[str, Field]]]] = {
    "memory": (
        MemoryRecord,
        {
            "id": MEMORY_ID,
            "namespace": NAMESPACE,
            "type": choice(MemoryType),
            "state": choice(MemoryState),
            "previous_state": choice(MemoryState),
            "importance": FRACTION,
            "confidence": FRACTION,
            "created_at": TIME,
            "accessed_at": TIME,
            "first_accessed_at": TIME,
            "access_count": COUNT,
            "provenance": choice(Provenance),
            "client": TEXT,
            "session": TEXT,
            "successor_id": TEXT,
            "type_before": optional_choice(MemoryType),
            "promoted_at": OPTIONAL_TIME,
            "metadata": METADATA,
            "content": CONTENT,
        },
    ),
    "edge": (
        EdgeRecord,
        {
            "source_id": MEMORY_ID,
            "target_id": MEMORY_ID,
            "relation": choice(Relation),
            "weight": FRACTION,
            "origin": choice(EdgeOrigin),
            "created_at": TIME,
        },
    ),
    "report": (
        ReportRecord,
        {
            "uid": TEXT,
            "memory_id": MEMORY_ID,
            "kind": choice(ValidationKind),
            "is_direct": FLAG,
            "client": TEXT,
            "session": TEXT,
            "context": TEXT,
            "error": TEXT,
            "at": TIME,
        },
    ),
    "dispute": (
        DisputeRecord,
        {
            "uid": TEXT,
            "memory_id": MEMORY_ID,
            "reason": TEXT,
            "evidence": TEXT,
            "client": TEXT,
            "session": TEXT,
            "at": TIME,
            "resolution": optional_choice(Resolution),
            "successor_id": TEXT,
            "resolved_at": OPTIONAL_TIME,
        },
    ),
    "delivery": (
        DeliveryRecord,
        {
            "recall_id": TEXT,
            "client": TEXT,
            "session": TEXT,
            "project": TEXT,
            "at": TIME,
            "memory_count": COUNT,
            "is_degraded": FLAG,
            "channel": choice(Channel, missing=Channel.RECALL),
            "context_kind": optional_choice(ContextKind),
        },
    ),
    "use": (
        UseRecord,
        {
            "memory_id": MEMORY_ID,
            "credited_id": MEMORY_ID,
            "source": optional_choice(UsageSource),
            "valence": choice(Valence),
            "weight": FRACTION,
            "client": TEXT,
            "session": TEXT,
            "at": TIME,
            "recall_id": TEXT,
            "is_weak": FLAG,
            "occasion": TEXT,
            "known_at": OPTIONAL_TIME,
        },
    ),
    "verdict": (
        VerdictRecord,
        {
            "memory_id": MEMORY_ID,
            "client": TEXT,
            "session": TEXT,
            "judge": TEXT,
            "used": FRACTION,
            "relevant": FRACTION,
            "misled": FRACTION,
            "shown_at": TIME,
            "judged_at": TIME,
        },
    ),
    "claim": (
        ClaimRecord,
        {
            "remember_id": MEMORY_ID,
            "source_id": MEMORY_ID,
            "target_id": MEMORY_ID,
            "relation": choice(Relation),
            "client": TEXT,
            "session": TEXT,
            "project": TEXT,
            "at": TIME,
            "standing": choice(Standing),
        },
    ),
    "multiplier": (
        MultiplierRecord,
        {"memory_id": MEMORY_ID, "value": NUMBER, "useful": NUMBER, "misled": NUMBER, "computed_at": TIME},
    ),
    "file": (
        FileRecord,
        {
            "uid": TEXT,
            "project": TEXT,
            "path": TEXT,
            "action": choice(FileAction),
            "client": TEXT,
            "session": TEXT,
            "metadata": METADATA,
            "at": TIME,
        },
    ),
}
_KIND_OF: Final[Mapping[object, tuple[str, tuple[tuple[str, Field], ...]]]] = {
    cls: (kind, tuple(fields.items())) for kind, (cls, fields) in _FIELDS.items()
}


def encode_record(record: ExportRecord) -> str:
    """Return a record as one line of JSON, without its end."""
    kind, fields = _KIND_OF[type(record)]
    plain: dict[str, object] = {_KIND: kind}
    for name, field in fields:
        plain[name] = field.plain(getattr(record, name))
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def decode_record(line: str | bytes) -> ExportRecord | None:
    """Return the record that a line holds, None for the header. Fields it does not know are left out.

    Raises:
        InvalidInputError: If it is no record, or one of a format that is not known.
    """
    try:
        plain = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidInputError("line", line, "one JSON object, as an export writes it") from None
    if not isinstance(plain, dict):
        raise InvalidInputError("line", line, "one JSON object, as an export writes it")
    kind = plain.get(_KIND)
    if kind == _HEADER_KIND:
        if plain.get("format") != FORMAT:
            raise InvalidInputError("format", plain.get("format"), f"{FORMAT}; update memory-sidecar to read others")
        return None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise InvalidInputError(_KIND, kind, f"one of {', '.join(_FIELDS)}")
    cls, fields = _FIELDS[kind]
    return cls(**{name: field.value(name, plain.get(name)) for name, field in fields.items()})


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
