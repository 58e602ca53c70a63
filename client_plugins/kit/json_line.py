"""Takes the JSON objects out of one line of a transcript, whatever the line looks like. Knows no client."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import orjson

JsonObject = Mapping[str, object]
"""A record as it was written. Nothing in it is to be trusted: check the type of every value before use."""

NOT_JSON: Final = "not_json"
TOO_DEEP: Final = "too_deep"
TOO_COMPLEX: Final = "too_complex"
NOT_AN_OBJECT: Final = "not_an_object"
BLANK: Final = "blank"

# Short lines cannot hold enough values to matter, and counting them would cost more than parsing.
_COUNTED_FROM_BYTES: Final = 1 << 20
# About 100 bytes of memory each: what one line may cost besides its text.
_MAX_VALUES: Final = 1_000_000
_MAX_DIGITS: Final = 4_000
# The slow way holds a text several times over, of four bytes a letter.
_MAX_LENIENT_BYTES: Final = 16 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_NOTHING: Final = b" \t\r\n\0"


@dataclass(frozen=True, slots=True)
class DecodedLine:
    """What one line holds. `problem` says why part of it, or all, could not be read; empty if nothing is wrong."""

    records: tuple[JsonObject, ...]
    problem: str = ""


def decode_line(line: bytes) -> DecodedLine:
    """Return the objects on a line, usually one; several glued together are found too. Never fails.

    A byte order mark, CR, NUL, bytes that are no UTF-8, NaN, infinities and lone surrogates are tolerated.
    """
    content = _content_of(line)
    if not content:
        return DecodedLine((), BLANK)
    if len(content) > _COUNTED_FROM_BYTES and sum(map(line.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        return DecodedLine((), TOO_COMPLEX)
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        if len(content) > _MAX_LENIENT_BYTES:
            return DecodedLine((), NOT_JSON)
        # Strict and fast did not do; the slow way takes what JavaScript and accidents write.
        return _decode_leniently(str(content, "utf-8", "replace").replace("\0", " "))
    return DecodedLine((value,)) if isinstance(value, dict) else DecodedLine((), NOT_AN_OBJECT)


def _content_of(line: bytes) -> memoryview:
    """Return the line without what surrounds it; not as a copy that is held beside it, since lines may be long."""
    end = len(line.rstrip(_NOTHING))
    begin = len(line) - len(line.removeprefix(_BYTE_ORDER_MARK).lstrip(_NOTHING))
    return memoryview(line)[begin:end]


def _decode_leniently(text: str) -> DecodedLine:
    records: list[JsonObject] = []
    position = 0
    while position < len(text):
        try:
            value, position = _LENIENT.raw_decode(text, position)
        except RecursionError:
            return DecodedLine(tuple(records), TOO_DEEP)
        except json.JSONDecodeError:
            return DecodedLine(tuple(records), NOT_JSON)
        if not isinstance(value, dict):
            return DecodedLine(tuple(records), NOT_AN_OBJECT)
        records.append(value)
        position = _skip_space(text, position)
    return DecodedLine(tuple(records))


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _whole_number(digits: str) -> int | float:
    # Python refuses longer ones, since turning them into a number takes quadratic time.
    return int(digits) if len(digits) <= _MAX_DIGITS else float("inf")


_LENIENT: Final = json.JSONDecoder(strict=False, parse_int=_whole_number)
