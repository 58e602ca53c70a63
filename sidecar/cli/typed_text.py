"""What a command was given as text: its words, or stdin for `-`; and JSON in an option."""

import json
import sys
from collections.abc import Sequence
from typing import Final

from sidecar.api.plain import JsonValue
from sidecar.domain.memory import MAX_CONTENT_BYTES
from sidecar.errors import ContentTooLargeError, InvalidInputError

STDIN: Final = "-"
# A text of this many bytes is refused anyway, so no more is read of an endless one.
_MAX_STDIN_BYTES: Final = 4 * MAX_CONTENT_BYTES


def text_of(words: Sequence[str], *, what: str) -> str:
    """Return the words as one text; what stdin holds if the only word is `-`.

    Args:
        words: As typed.
        what: Name of the text in messages.

    Raises:
        ContentTooLargeError: Stdin holds more than can be stored.
        InvalidInputError: Stdin is not UTF-8: what is not text would be stored as something else.
    """
    if list(words) != [STDIN]:
        return " ".join(words)
    read = sys.stdin.buffer.read(_MAX_STDIN_BYTES + 1)
    if len(read) > _MAX_STDIN_BYTES:
        raise ContentTooLargeError(what, len(read), MAX_CONTENT_BYTES)
    try:
        return read.decode("utf-8")
    except UnicodeDecodeError as error:
        at = f"byte 0x{read[error.start]:02x} at position {error.start}"
        raise InvalidInputError("stdin", at, "UTF-8; convert it first, such as with iconv") from error


def json_object(text: str, *, what: str) -> dict[str, JsonValue]:
    """Return the JSON object that was typed.

    Args:
        what: Name of the option in messages.

    Raises:
        InvalidInputError: It is something else.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInputError(what, text, "a JSON object, such as '{\"lines\": 3}'")
    return found
