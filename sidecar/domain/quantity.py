"""Numbers, versions, dates and intervals in a statement, in units that can be compared. Pure; no rules on truth."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CLOSE_SHARE: Final = 0.25
"""Two figures of which one is said to be rough are the same when they differ by no more than this share."""

_SAME_SHARE: Final = 0.001
_HEX_PART: Final = 2**48
# A megabyte is 1000 or 1024 kilobytes, depending on who writes; either way the two statements agree.
_BYTE_FACTORS: Final = (1000.0, 1024.0)

_SECONDS: Final = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "hour": 3600.0,
    "day": 86400.0,
    "night": 86400.0,
    "week": 604800.0,
    "month": 2629800.0,
    "quarter": 7889400.0,
    "year": 31557600.0,
}
_BYTE_POWERS: Final = {"b": 0, "byte": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_ADVERBS: Final = {
    "hourly": "hour",
    "daily": "day",
    "nightly": "night",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annually": "year",
}
_WORDS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
NUMBER_WORDS: Final = {word: float(value) for value, word in enumerate(_WORDS.split())} | {
    "once": 1.0,
    "twice": 2.0,
    "twenty": 20.0,
    "thirty": 30.0,
    "forty": 40.0,
    "fifty": 50.0,
    "sixty": 60.0,
    "ninety": 90.0,
    "hundred": 100.0,
    "thousand": 1000.0,
}

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH: Final = "|".join(month.title() for month in MONTHS)
_NUMBER: Final = r"\d+(?:[,_]\d{3})*(?:\.\d+)?"
_COUNT: Final = rf"(?:{_NUMBER}|{'|'.join(NUMBER_WORDS)})"
_TIME_UNIT: Final = (
    r"(?:ms|milliseconds?|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|nights?|weeks?|months?|quarters?|years?)"
)
_BYTE_UNIT: Final = r"(?:bytes?|[KMGT]i?B)"
PATTERN: Final = re.compile(
    rf"""(?P<date>\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)?\ (?:{_MONTH})(?:\ \d{{4}})?|(?:{_MONTH})\ \d{{1,2}}\b)
    |(?P<clock>\b\d{{1,2}}:\d\d(?:\s?[ap]m)?|\b\d{{1,2}}\s?[ap]m)\b
    |(?P<hex>\b0x[0-9a-fA-F]+)\b
    |(?P<version>\bv\d+(?:\.\d+)*|\b\d+\.\d+\.\d+(?:\.\d+)*|\b\d{{4}}-\d\d)\b
    |(?P<adverb>\b(?:{"|".join(_ADVERBS)}))\b
    |(?P<every>\bevery\ (?:(?P<every_count>{_COUNT})\ ?)?(?P<every_unit>{_TIME_UNIT}))\b
    |(?P<rate>\b(?P<rate_count>once|twice|{_COUNT}\ times)\ (?:a|an|per)\ (?P<rate_unit>{_TIME_UNIT}))\b
    |(?P<times>\b(?:once|twice|{_COUNT}\ times))\b
    |(?P<percent>\b(?P<percent_count>{_NUMBER})\ ?(?:%|percent\b))
    |(?P<size>\b(?P<size_count>{_NUMBER})[ ]?(?P<size_unit>{_BYTE_UNIT}))\b
    |(?P<time>\b(?P<time_count>{_COUNT})[ -]?(?P<time_unit>{_TIME_UNIT}))\b
    |(?P<number>(?<![\w.-]){_NUMBER}(?![\w-]|\.\d))
    |(?P<word>\b(?:{"|".join(NUMBER_WORDS)}))\b""",
    re.VERBOSE,
)
"""Finds one quantity; the longer reading comes before the shorter."""


class Comparator(StrEnum):
    """How a figure bounds what it is about."""

    EXACT = "exact"
    ABOUT = "about"
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure.

    Attributes:
        dimension: `s`, `interval` (seconds between two times), `bytes`, `percent`, `times`, `version`, `date`, `clock`,
            `hex`; empty for a plain number.
        parts: One number, or the parts of a version, date or time of day, to be compared in order.
    """

    dimension: str
    parts: tuple[float, ...]
    comparator: Comparator = Comparator.EXACT


def quantity_of(match: re.Match[str]) -> Quantity:
    """Return what a match of `PATTERN` says."""
    kind = str(match.lastgroup)
    text = match.group(kind)
    if kind in _PLAIN_KINDS:
        return Quantity(_PLAIN_KINDS[kind], _parts(kind, text))
    if kind == "adverb":
        return Quantity("interval", (_SECONDS[_ADVERBS[text.lower()]],))
    count = _count(match.group(f"{kind}_count") or "1")
    if kind == "percent":
        return Quantity("percent", (count,))
    unit = match.group(f"{kind}_unit")
    if kind == "size":
        return Quantity("bytes", (count, float(_BYTE_POWERS[_size_letter(unit)])))
    seconds = _unit_seconds(unit)
    if kind == "rate":
        return Quantity("interval", (seconds / max(count, 1.0),))
    return Quantity("interval" if kind == "every" else "s", (count * seconds,))


def same(older: Quantity, newer: Quantity) -> bool:
    """Tell whether two figures are one and the same in other units; comparators do not count."""
    if older.dimension != newer.dimension:
        return False
    if older.dimension == "bytes":
        return any(_close(_bytes(older, factor), _bytes(newer, factor), _SAME_SHARE) for factor in _BYTE_FACTORS)
    if older.dimension == "version":
        return _padded(older) == _padded(newer)
    return len(older.parts) == len(newer.parts) and all(
        _close(a, b, _SAME_SHARE) for a, b in zip(older.parts, newer.parts, strict=True)
    )


def can_both_hold(older: Quantity, newer: Quantity) -> bool:
    """Tell whether one thing can have both figures: the same, within a bound, or rough and near.

    Two bounds of one direction can always both hold as such; whether they are limits is for the caller to judge.
    """
    if same(older, newer):
        return True
    comparators = {older.comparator, newer.comparator}
    if Comparator.ABOUT in comparators:
        return _close(_size(older)[0], _size(newer)[0], CLOSE_SHARE)
    low, high = sorted((older, newer), key=_size)
    if comparators == {Comparator.AT_LEAST, Comparator.AT_MOST}:
        return low.comparator is Comparator.AT_LEAST
    return high.comparator is Comparator.AT_MOST or low.comparator is Comparator.AT_LEAST


_PLAIN_KINDS: Final = {
    "date": "date",
    "clock": "clock",
    "hex": "hex",
    "version": "version",
    "number": "",
    "word": "",
    "times": "times",
}


def _parts(kind: str, text: str) -> tuple[float, ...]:
    if kind == "hex":
        return _hex_parts(int(text, 16))
    if kind in {"number", "word", "times"}:
        return (_count(text),)
    numbers = tuple(float(digits) for digits in re.findall(r"\d+", text))
    if kind == "clock":
        hour, minute = (*numbers, 0.0)[:2]
        if text[-2:] in {"am", "pm"}:
            hour = hour % 12 + (12.0 if text.endswith("pm") else 0.0)
        return (hour, minute)
    month = next((float(n) for n, name in enumerate(MONTHS, 1) if name in text.lower()), None)
    return numbers if month is None else (*numbers, month)


def _hex_parts(value: int) -> tuple[float, ...]:
    """Return a whole number of any length in parts that floats hold exactly, the highest first."""
    parts = [float(value % _HEX_PART)]
    while value >= _HEX_PART:
        value //= _HEX_PART
        parts.append(float(value % _HEX_PART))
    return tuple(reversed(parts))


def _count(text: str) -> float:
    word = text.lower().removesuffix(" times")
    return NUMBER_WORDS[word] if word in NUMBER_WORDS else float(word.replace(",", "").replace("_", ""))


def _unit_seconds(unit: str) -> float:
    name = unit.lower()
    return _SECONDS[name] if name in _SECONDS else _SECONDS[name.removesuffix("s")]


def _size_letter(unit: str) -> str:
    return "byte" if unit.startswith("byte") else unit[0].lower()


def _bytes(quantity: Quantity, factor: float) -> float:
    return float(quantity.parts[0] * factor ** quantity.parts[1])


def _size(quantity: Quantity) -> tuple[float, ...]:
    return (_bytes(quantity, 1024.0),) if quantity.dimension == "bytes" else quantity.parts


def _padded(quantity: Quantity) -> tuple[float, ...]:
    return (*quantity.parts, 0.0, 0.0, 0.0, 0.0)[:4]


def _close(a: float, b: float, share: float) -> bool:
    return abs(a - b) <= share * max(abs(a), abs(b))
