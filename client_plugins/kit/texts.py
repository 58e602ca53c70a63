"""Cuts texts of a transcript to what a judge needs. Redacts nothing: the sidecar does, before it stores."""

from collections.abc import Mapping
from typing import Final

import orjson

from sidecar.domain.evidence import MAX_SLICE_CHARACTERS
from sidecar.domain.text import normalise

_CUT_MARK: Final = "…"
_MAX_VALUE_CHARACTERS: Final = 2_000
_MAX_VALUE_BYTES: Final = 4 * (_MAX_VALUE_CHARACTERS + 1)
_MAX_KEYS: Final = 40


def cut(text: str, limit: int = MAX_SLICE_CHARACTERS) -> str:
    """Return the text in its stored form, at most `limit` characters; a mark stands where it was cut."""
    # Cut before as well, so that a huge text is not normalised as a whole; normalising hardly ever lengthens.
    whole = normalise(text[: limit + 1])
    return whole if len(whole) <= limit else whole[: limit - 1] + _CUT_MARK


def render_input(arguments: object) -> str:
    """Return a tool's input as short readable text: a line for each argument, long ones cut.

    Args:
        arguments: What the model passed: usually an object, but nothing is taken for granted.
    """
    if not isinstance(arguments, Mapping):
        return cut(_render_value(arguments))
    shown = list(arguments.items())[:_MAX_KEYS]
    return cut("\n".join(f"{str(key)[:80]}: {_render_value(value)}" for key, value in shown))


def _render_value(value: object) -> str:
    if isinstance(value, str):
        return cut(value, _MAX_VALUE_CHARACTERS)
    try:
        # Cut before it is decoded: as text it would take up to four times as much.
        return cut(orjson.dumps(value)[:_MAX_VALUE_BYTES].decode("utf-8", "ignore"), _MAX_VALUE_CHARACTERS)
    except orjson.JSONEncodeError:
        # Deeper than any tool's input, lone surrogates inside, or a number beyond 64 bits.
        return f"({type(value).__name__})"
