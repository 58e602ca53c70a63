"""Damages lines of transcripts, reproducibly: torn and foreign bytes, and records with other values in them."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Final

_ODD_VALUES: Final[tuple[object, ...]] = (
    *(None, True, False, 0, -1, 10**30, 1.5, "", " ", "\ud800", "x" * 300, [], {}, [[]], [None]),
    *([{}], [{"type": "text"}], [{"type": "tool_use"}], {"type": "tool_result"}, {"text": 7}, "../../etc/passwd"),
)
_ODD_BYTES: Final = (
    b"\0",
    b"\xff",
    b"\xf0\x9f",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\\ud83d",
    b"\r",
    b"1e999",
)


def broken(line: bytes, choose: random.Random) -> bytes:
    """Return the line so torn that it holds no whole record any more, with its newline."""
    body = line.rstrip(b"\r\n")
    kind = choose.randrange(4)
    if kind == 0:
        return body[: choose.randrange(len(body) // 2 + 1)] + b"\n"
    if kind == 1:
        return body[choose.randrange(1, len(body) // 2 + 2) :] + b"\n"
    if kind == 2:
        return choose.randbytes(choose.randrange(1, 60)).replace(b"\n", b"") + b"\n"
    return b'{"' + body[: len(body) // 2].replace(b'"', b"") + b"\n"


def altered(line: bytes, choose: random.Random) -> bytes:
    """Return the line with something in it changed, still one line; whether it can be read does not matter."""
    if choose.random() < 0.5:
        return _other_bytes(line.rstrip(b"\r\n"), choose) + b"\n"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return _other_bytes(line.rstrip(b"\r\n"), choose) + b"\n"
    for _ in range(choose.randint(1, 3)):
        record = _other_value(record, choose)
    return json.dumps(record).encode() + b"\n"


def _other_bytes(body: bytes, choose: random.Random) -> bytes:
    for _ in range(choose.randint(1, 4)):
        place = choose.randrange(len(body) + 1)
        kind = choose.randrange(4)
        if kind == 0:
            body = body[:place] + choose.choice(_ODD_BYTES) + body[place:]
        elif kind == 1:
            body = body[:place] + body[place + choose.randint(1, 8) :]
        elif kind == 2:
            body = body[:place] + body[max(0, place - choose.randint(1, 40)) :]
        else:
            body = body[:place] + bytes([choose.randrange(256)]) + body[place + 1 :]
    return body.replace(b"\n", b" ")


def _other_value(record: object, choose: random.Random) -> object:
    """Return the record with one value in it replaced, removed or repeated."""
    places = list(_places(record))
    if not places:
        return _odd_value(choose)
    holder, key = choose.choice(places)
    kind = choose.randrange(3)
    if kind == 0:
        holder[key] = _odd_value(choose)  # type: ignore[index]
    elif kind == 1:
        del holder[key]  # type: ignore[arg-type]
    elif isinstance(holder, list):
        holder.append(holder[key])  # type: ignore[index]
    else:
        holder[f"{key}_"] = holder[key]  # type: ignore[index]
    return record


def _odd_value(choose: random.Random) -> object:
    # A copy, since it may be changed in its turn.
    return copy.deepcopy(choose.choice(_ODD_VALUES))


def _places(value: object) -> Iterator[tuple[dict[str, object] | list[object], str | int]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _places(inner)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield value, position
            yield from _places(inner)
