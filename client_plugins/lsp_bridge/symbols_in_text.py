"""Tells whether a memory is about an identifier of the code, and what words an identifier is made of. Pure."""

import re
from typing import Final

SHORTEST: Final = 3
LONGEST: Final = 120

_PARTS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\dA-Za-z_]+")
_CODE: Final = re.compile(r"`([^`\n]{1,200})`")
_WORD: Final = re.compile(r"[^\W\d][\w$]*")


def words_of(identifier: str) -> tuple[str, ...]:
    """Return `("connect", "timeout")` for `connect_timeout` and `connectTimeout`."""
    return tuple(part.lower() for part in _PARTS.findall(identifier))


def is_telling(identifier: str) -> bool:
    """Tell whether an identifier is more than a word of everyday language: only then is its bare mention about it."""
    return SHORTEST <= len(identifier) <= LONGEST and len(words_of(identifier)) > 1


def is_about(content: str, identifier: str) -> bool:
    """Tell whether a text names the identifier: anywhere if it is a telling one, else as code between backticks."""
    if identifier not in content or not SHORTEST <= len(identifier) <= LONGEST:
        return False
    if is_telling(identifier):
        return identifier in _WORD.findall(content)
    return any(identifier in _WORD.findall(code) for code in _CODE.findall(content))
