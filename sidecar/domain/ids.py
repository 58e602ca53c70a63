"""Ids of memories and recalls: a prefix and a ULID. Making one takes the time and randomness from the caller."""

import re
from typing import Final

MEMORY_PREFIX: Final = "mem_"
RECALL_PREFIX: Final = "rec_"

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_LENGTH: Final = 26
_TIME_BITS: Final = 48
_RANDOM_BYTES: Final = 10

MEMORY_ID: Final = re.compile(rf"(?<![0-9A-Za-z_])mem_[{_ALPHABET}]{{{_ULID_LENGTH}}}(?![0-9A-Za-z_])")
"""A memory id in running text: exactly our shape, not part of a longer word."""


def ulid(unix_ms: int, randomness: bytes) -> str:
    """Return 26 Crockford characters that sort by time.

    Args:
        unix_ms: Milliseconds since 1970 UTC; values outside 48 bits are clamped.
        randomness: 10 bytes.
    Source:
        The ULID specification: 48 bits of time, 80 of randomness.
    """
    if len(randomness) != _RANDOM_BYTES:
        raise ValueError(f"randomness has {len(randomness)} bytes; expected {_RANDOM_BYTES}")
    time_part = min(max(unix_ms, 0), (1 << _TIME_BITS) - 1)
    value = (time_part << (8 * _RANDOM_BYTES)) | int.from_bytes(randomness, "big")
    return "".join(_ALPHABET[(value >> (5 * i)) & 31] for i in range(_ULID_LENGTH - 1, -1, -1))


def memory_id(unix_ms: int, randomness: bytes) -> str:
    """Return a new memory id; see `ulid`."""
    return MEMORY_PREFIX + ulid(unix_ms, randomness)


def recall_id(unix_ms: int, randomness: bytes) -> str:
    """Return a new recall id; see `ulid`."""
    return RECALL_PREFIX + ulid(unix_ms, randomness)


def is_memory_id(text: str) -> bool:
    """Tell whether the whole text is one memory id."""
    return MEMORY_ID.fullmatch(text) is not None


def find_memory_ids(text: str) -> tuple[str, ...]:
    """Return the memory ids in a text, in order of first occurrence, each once."""
    return tuple(dict.fromkeys(MEMORY_ID.findall(text)))
