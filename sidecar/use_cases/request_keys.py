"""What a caller's request key may look like."""

from typing import Final

from sidecar.errors import InvalidInputError

MAX_REQUEST_KEY_CHARACTERS: Final = 64


def check_request_key(key: str) -> None:
    """Let a key of acceptable length pass.

    Raises:
        InvalidInputError: If it is too long.
    """
    if len(key) > MAX_REQUEST_KEY_CHARACTERS:
        raise InvalidInputError("request_key", key, f"at most {MAX_REQUEST_KEY_CHARACTERS} characters")
