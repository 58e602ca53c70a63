"""What a caller's request key may look like, and what a repeat of it must say."""

import hashlib
from typing import Final

from sidecar.domain.store_values import RequestKey
from sidecar.errors import InvalidInputError

MAX_REQUEST_KEY_CHARACTERS: Final = 64


def check_request_key(key: str) -> None:
    """Let a key of acceptable length pass.

    Raises:
        InvalidInputError: If it is too long.
    """
    if len(key) > MAX_REQUEST_KEY_CHARACTERS:
        raise InvalidInputError("request_key", key, f"at most {MAX_REQUEST_KEY_CHARACTERS} characters")


def request_of(key: str, *parts: object) -> RequestKey:
    """Return a key with the digest of what a repeat of it must say again.

    Args:
        parts: Each as its text tells it apart, the same in every process: no sets.

    Raises:
        InvalidInputError: If the key is too long.
    """
    check_request_key(key)
    text = "\x1f".join(map(str, parts))
    return RequestKey(key, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
