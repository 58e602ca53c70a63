"""Finds the words by which a statement says that things have changed, and what kind of change they name. Pure."""

import re
from dataclasses import dataclass
from typing import Final

_MONTH: Final = r"(?:january|february|march|april|june|july|august|september|october|november|december)"
_MOVES: Final = (
    r"switched|moved|migrated|ported|renamed|rewritten|rewrote|replaced|upgraded|updated|downgraded|raised|lowered|"
    r"increased|reduced|changed|dropped|retired|deprecated|removed|stopped|left|bumped|extended|shortened|converted"
)
_CHANGE: Final = re.compile(
    rf"""\b(?:no\ longer|any\ ?more\b|any\ longer|now(?!\ playing)|nowadays|used\ to(?=\ \w+)|rather\ than|instead\ of
    |since\ (?:v?\d|version|release|last|the\ (?:first|second|third|last|upgrade|move|release)|{_MONTH})
    |as\ of\ (?:v?\d|version|release|last|now|today|this|the|{_MONTH}|\w+\ v?\d)
    |from\ (?:version|release|v?\d|now|today|{_MONTH})[\w\s.]{{0,20}}?\ on(?:wards?)?\b
    |starting\ (?:with|from)|after\ the\ (?:upgrade|migration|move|switch|rewrite)
    |(?:is|are)\ (?:retired|deprecated)
    |(?:was|were|has|have|had|been|we)\ (?:\w+\ )?(?:{_MOVES})|(?:{_MOVES})\ (?:from|to)
    |ha(?:s|ve)\ left)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# `what was moved`, `if it changed`: no news, but a case or a part of the subject.
_CLAUSE_OPENER: Final = re.compile(
    r"\b(?:that|which|who|whose|what|when|if|unless|while|until|once|before|after|because|where|as (?:it|they))\b",
    re.IGNORECASE,
)
_ENDS: Final = re.compile(
    r"\b(?:no longer|any ?more|any longer|stopped|dropped|removed|deprecated|retired|(?:have|has) left|used to)\b",
    re.IGNORECASE,
)
_ADDS: Final = re.compile(r"\b(?:also|too|as well|additionally|in addition)\b", re.IGNORECASE)
_MARKER_WORDS: Final = re.compile(r"\b(?:no longer|not (?=.*\bany ?more\b)|any ?more|any longer|now)\b", re.IGNORECASE)
_UNNAMED: Final = frozenset({"now", "nowadays"})
_CONTRASTS: Final = frozenset({"instead of", "rather than"})


@dataclass(frozen=True, slots=True)
class AnnouncedChange:
    """What a statement says of a change.

    Attributes:
        words: By which it says so.
        is_ending: Something ceased.
        is_named: The change or its time is named (`was moved`, `since v3`); `now` alone names nothing.
        is_contrast: It says what is not so (`instead of`) rather than when that changed.
        is_adding: Something came on top of what there was.
    """

    words: str
    is_ending: bool
    is_named: bool
    is_contrast: bool
    is_adding: bool


def announced_change(text: str) -> AnnouncedChange | None:
    """Return the change that a statement announces, None if it announces none."""
    found = _CHANGE.search(text)
    if found is None or _CLAUSE_OPENER.search(text[: found.start()]):
        return None
    words = found.group(0)
    return AnnouncedChange(
        words=words,
        is_ending=_ENDS.search(text) is not None,
        is_named=words.lower() not in _UNNAMED,
        is_contrast=words.lower() in _CONTRASTS,
        is_adding=_ADDS.search(text) is not None,
    )


def blank_change_words(text: str) -> str:
    """Return the text with spaces for `now`, `no longer` and the like: every character keeps its place."""
    return _MARKER_WORDS.sub(lambda match: " " * len(match.group(0)), text)
