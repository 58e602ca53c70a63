"""Reads JSON Lines, one memory a line: `{"content", "type"?, "namespace"?, "importance"?, "metadata"?}`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sidecar.domain.importing import (
    ImportedMemory,
    ImportedPart,
    SkippedPart,
    SkipReason,
    SourceFormat,
    SourcePlace,
    checked,
)
from sidecar.domain.memory import DEFAULT_IMPORTANCE, parse_fraction, parse_memory_type
from sidecar.domain.namespace import parse_namespace
from sidecar.errors import InvalidInputError

MAX_LINE_BYTES: Final = 1024 * 1024
_FIELDS: Final = frozenset({"content", "type", "namespace", "importance", "metadata"})
_NAMES_SHOWN: Final = 10


def read_json_lines(lines: Iterable[bytes], path: str) -> Iterator[ImportedPart]:
    """Yield what each line holds; blank ones hold nothing. A bad line never spoils the others.

    A name that is not known is told and otherwise ignored.

    Args:
        lines: Of the file, in order, with or without their ends.
        path: As it is to be named.
    """
    for number, raw in enumerate(lines, 1):
        place = SourcePlace(path, number)
        line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if len(line) > MAX_LINE_BYTES:
            yield SkippedPart(place, SkipReason.TOO_LARGE, f"a line has at most {MAX_LINE_BYTES} bytes")
        elif line.strip():
            yield from _read_line(line, place)


def _read_line(line: bytes, place: SourcePlace) -> Iterator[ImportedPart]:
    try:
        record = json.loads(line.decode("utf-8", "replace"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        yield SkippedPart(place, SkipReason.NOT_JSON, str(error))
        return
    if not isinstance(record, dict):
        yield SkippedPart(place, SkipReason.NOT_AN_OBJECT)
        return
    unknown = sorted(set(record) - _FIELDS)
    if unknown:
        yield SkippedPart(place, SkipReason.UNKNOWN_FIELD, ", ".join(unknown[:_NAMES_SHOWN]))
    try:
        yield checked(_memory(record, place))
    except InvalidInputError as error:
        yield SkippedPart(place, SkipReason.BAD_FIELD, error.message)


def _memory(record: Mapping[str, object], place: SourcePlace) -> ImportedMemory:
    importance = record.get("importance")
    if importance is None:
        importance = DEFAULT_IMPORTANCE
    if isinstance(importance, bool) or not isinstance(importance, int | float):
        raise InvalidInputError("importance", importance, "a number from 0 to 1")
    metadata = record.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise InvalidInputError("metadata", metadata, "an object")
    namespace = _text(record, "namespace")
    return ImportedMemory(
        content=_text(record, "content"),
        memory_type=parse_memory_type(_text(record, "type")),
        format=SourceFormat.JSON_LINES,
        place=place,
        importance=parse_fraction(importance, field_name="importance"),
        namespace=parse_namespace(namespace) if namespace else "",
        extra=metadata or {},
    )


def _text(record: Mapping[str, object], name: str) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInputError(name, value, "a text")
    return value


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
