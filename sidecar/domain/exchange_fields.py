"""Fields of export records: each as plain JSON and back, checked. Knows no record."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from sidecar.domain.ids import is_memory_id
from sidecar.domain.memory import MAX_CONTENT_BYTES, MAX_METADATA_BYTES
from sidecar.domain.namespace import parse_namespace
from sidecar.domain.text import normalise
from sidecar.errors import InvalidInputError, InvalidNamespaceError

MAX_TEXT_CHARACTERS: Final = 64 * 1024
MAX_METADATA_DEPTH: Final = 64
"""Deeper ones could not be sent over the wire, nor be written from deep within a call."""
_MAX_COUNT: Final = (1 << 63) - 1
_YEAR_OF_ROWS: Final = 1970


@dataclass(frozen=True, slots=True)
class Field:
    """One kind of field.

    Attributes:
        plain: Returns a value as JSON has it.
        parse: Returns the value of what JSON has; ValueError or TypeError if it is none.
        expected: What would be right, for a person.
    """

    plain: Callable[[object], object]
    parse: Callable[[object], object]
    expected: str

    def value(self, name: str, plain: object) -> object:
        """Return the value that JSON stands for.

        Raises:
            InvalidInputError: If it stands for none.
        """
        try:
            return self.parse(plain)
        except (ValueError, TypeError, OverflowError, InvalidNamespaceError):
            raise InvalidInputError(name, plain, self.expected) from None


def choice(names: type[StrEnum], *, missing: StrEnum | None = None) -> Field:
    """Return the field of one of these names.

    Args:
        missing: What a file without the field means, since it is older than the field; None refuses it.
    """
    return Field(
        str,
        lambda plain: missing if plain is None and missing is not None else names(_text(plain)),
        f"one of {', '.join(names)}",
    )


def optional_choice(names: type[StrEnum]) -> Field:
    """Return the field of one of these names or null."""
    return Field(
        lambda value: None if value is None else str(value),
        lambda plain: None if plain is None else names(_text(plain)),
        f"null or one of {', '.join(names)}",
    )


def _same(value: object) -> object:
    return value


def _text(plain: object) -> str:
    if not isinstance(plain, str) or len(plain) > MAX_TEXT_CHARACTERS or "\0" in plain:
        raise ValueError
    # UTF-8 cannot hold half of a surrogate pair; UnicodeEncodeError is a ValueError.
    plain.encode()
    return plain


def _memory_id(plain: object) -> str:
    text = _text(plain)
    if not is_memory_id(text):
        raise ValueError
    return text


def _content(plain: object) -> str:
    if not isinstance(plain, str):
        raise TypeError
    content = normalise(plain)
    if not 1 <= len(content.encode()) <= MAX_CONTENT_BYTES:
        raise ValueError
    return content


def _number(plain: object) -> float:
    # A flag is a number to Python, and 1.0 is written as 1 by others.
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TypeError
    number = float(plain)
    if not math.isfinite(number):
        raise ValueError
    return number


def _fraction(plain: object) -> float:
    number = _number(plain)
    if not 0.0 <= number <= 1.0:
        raise ValueError
    return number


def _count(plain: object) -> int:
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise TypeError
    if not 0 <= plain <= _MAX_COUNT:
        raise ValueError
    return plain


def _flag(plain: object) -> bool:
    if not isinstance(plain, bool):
        raise TypeError
    return plain


def _time(plain: object) -> datetime:
    if not isinstance(plain, str):
        raise TypeError
    moment = datetime.fromisoformat(plain)
    if moment.tzinfo is None or moment.year < _YEAR_OF_ROWS:
        raise ValueError
    return moment.astimezone(UTC)


def _metadata(plain: object) -> dict[str, object]:
    if not isinstance(plain, dict):
        raise TypeError
    if _is_deep(plain) or len(json.dumps(plain, ensure_ascii=False).encode()) > MAX_METADATA_BYTES:
        raise ValueError
    return plain


def _is_deep(plain: object) -> bool:
    level = [plain]
    for _ in range(MAX_METADATA_DEPTH):
        level = [child for value in level for child in _children(value)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _written_time(value: object) -> str:
    assert isinstance(value, datetime), "the record's type says so"
    return value.isoformat()


def _as_number(value: object) -> float:
    assert isinstance(value, float | int), "the record's type says so"
    return float(value)


def _as_object(value: object) -> dict[str, object]:
    assert isinstance(value, Mapping), "the record's type says so"
    return dict(value)


TEXT: Final = Field(_same, _text, f"text of at most {MAX_TEXT_CHARACTERS} characters, without NUL")
MEMORY_ID: Final = Field(_same, _memory_id, "`mem_` and 26 characters")
NAMESPACE: Final = Field(_same, lambda plain: parse_namespace(_text(plain)), "`global` or `project:<name>`")
CONTENT: Final = Field(_same, _content, f"text of 1 to {MAX_CONTENT_BYTES} bytes of UTF-8")
NUMBER: Final = Field(_as_number, _number, "a number")
FRACTION: Final = Field(_as_number, _fraction, "a number from 0 to 1")
COUNT: Final = Field(_same, _count, "a whole number, 0 or above")
FLAG: Final = Field(_same, _flag, "true or false")
TIME: Final = Field(_written_time, _time, "a time with its offset, such as 2026-01-31T12:00:00+00:00")
OPTIONAL_TIME: Final = Field(
    lambda value: None if value is None else _written_time(value),
    lambda plain: None if plain is None else _time(plain),
    "null or a time with its offset",
)
METADATA: Final = Field(
    _as_object, _metadata, f"a JSON object of at most {MAX_METADATA_BYTES} bytes and {MAX_METADATA_DEPTH} levels"
)
