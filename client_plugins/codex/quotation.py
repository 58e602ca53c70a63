"""Tells whether a script printed texts of a result without their ids. Carries digests between lines, never words."""

import re
from collections.abc import Iterable
from typing import Final

from client_plugins.kit.fields import digest

_MARKED_CHARACTERS: Final = 24
_MARK_CHARACTERS: Final = 8
_MAX_MARKS: Final = 16
_MAX_SEARCHED_CHARACTERS: Final = 50_000
_WORD_BEGIN: Final = re.compile(r"\b\w")


def marks_of(texts: Iterable[str]) -> list[str]:
    """Return digests of how these texts begin, of the first few that have several words."""
    begins = (text[:_MARKED_CHARACTERS] for text in texts)
    # Ids, times and names have no spaces, and too short a text may stand anywhere.
    told = [begin for begin in begins if len(begin) == _MARKED_CHARACTERS and " " in begin]
    return [_mark(begin) for begin in dict.fromkeys(told[:_MAX_MARKS])]


def is_quoting(text: str, marks: Iterable[str]) -> bool:
    """Tell whether one of the marked texts begins somewhere in a text, at the beginning of a word."""
    wanted = frozenset(marks)
    if not wanted:
        return False
    begins = (match.start() for match in _WORD_BEGIN.finditer(text, 0, _MAX_SEARCHED_CHARACTERS))
    return any(_mark(text[begin : begin + _MARKED_CHARACTERS]) in wanted for begin in begins)


def _mark(begin: str) -> str:
    return digest(begin)[:_MARK_CHARACTERS]
