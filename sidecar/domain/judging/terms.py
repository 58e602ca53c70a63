"""What a memory can be recognised by: its words, names and figures, each with how much it tells. Pure.

A name is what is written like one (a path, a flag, a command in backticks), a figure a number with or without a unit;
`300 s` and `five minutes` are the same figure.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from sidecar.domain.judging.everyday_words import EVERYDAY
from sidecar.domain.quantity import PATTERN, Quantity, quantity_of
from sidecar.domain.words import tokenise

Rarity = Callable[[str], float]
"""How rare a lower-case word or stem is in general, 0 (everywhere) to 1 (hardly ever seen)."""

MAX_TERMS: Final = 200
MAX_CONTENT_CHARACTERS: Final = 8_000

_EVERYDAY_WEIGHT: Final = 0.35
_PART_SHARE: Final = 0.5
_COMMAND_BONUS: Final = 0.5

_NAME: Final = re.compile(
    r"`[^`\n]{2,80}`"
    r"|(?<![\w-])--?[A-Za-z][\w-]{0,60}(?:=[\w./:-]{1,80})?"
    r"|(?<!\w)[\w.~@$<>*%+{}-]{0,40}[/\\_.:@=<>+{}-][\w/\\.:@=<>*%+{}-]{0,100}[\w>}](?:\(\))?"
    r"|(?<!\w)\w{1,60}(?:\(\)|[!?](?=[\s,;]))"
    r"|\b[a-z]{1,40}[A-Z]\w{0,60}|\b[A-Z][a-z0-9]{1,40}[A-Z]\w{0,60}|\b[A-Z][A-Z0-9]{1,60}\b|\b[A-Za-z]{1,40}\d\w{0,60}"
)
_PLAIN: Final = re.compile(r"[A-Za-z]+(?:-[a-z]+)*$|[\d.,:]+$")
_SYMBOL: Final = re.compile(r"(?<=[\s`])[|&%$?!~^:]{1,2}[>|&:=]{1,3}(?=[\s`,.;])")
_ABBREVIATIONS: Final = frozenset({"e.g", "i.e", "etc"})
_PLACEHOLDER: Final = re.compile(r"<[\w -]{1,30}>|\{\w{1,30}\}|%0?\d{0,3}d|\*+")
_TICKET: Final = re.compile(r"^([a-z]{2,8}-)\d+$")
_STANDARDS: Final = ("sha-", "utf-", "iso-", "rfc-", "http-", "aes-", "md-", "cve-", "es-", "tls-")
_SPACED_GROUP: Final = re.compile(r"(?<=\d)[ \u00a0\u202f_'](?=\d{3}(?!\d))")
_DECIMAL_COMMA: Final = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
_DIGITS: Final = re.compile(r"\d{1,30}(?:\.\d{1,30}){0,4}")


class TermKind(StrEnum):
    """How a term is written."""

    WORD = "word"
    NAME = "name"
    FIGURE = "figure"


@dataclass(frozen=True, slots=True)
class Term:
    """Something that a memory can be recognised by.

    Attributes:
        key: A stem; a name in lower case, `*` for its placeholders; or a figure as `dimension:value`.
    """

    key: str
    kind: TermKind


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text, ready to be asked for terms.

    Attributes:
        text: In lower case, each white space one blank.
    """

    words: frozenset[str]
    figures: frozenset[str]
    text: str

    def says(self, term: Term) -> bool:
        """Tell whether a term occurs."""
        match term.kind:
            case TermKind.WORD:
                return term.key in self.words
            case TermKind.FIGURE:
                return term.key in self.figures
            case TermKind.NAME:
                return _occurs(term.key, self.text)


@lru_cache(maxsize=4096)
def spoken(text: str) -> Spoken:
    """Read a text, no more of it than `MAX_CONTENT_CHARACTERS`."""
    text = text[:MAX_CONTENT_CHARACTERS]
    return Spoken(frozenset(tokenise(text)), figures_of(text), " ".join(text.lower().split()))


@lru_cache(maxsize=1024)
def terms_of(content: str) -> tuple[Term, ...]:
    """Return what a memory can be recognised by, each once, at most `MAX_TERMS`: names, figures, then words."""
    content = content[:MAX_CONTENT_CHARACTERS]
    names = _names(content)
    found = [Term(name, TermKind.NAME) for name in names]
    found.extend(Term(key, TermKind.FIGURE) for key in sorted(figures_of(content)))
    words = dict.fromkeys(word for word in tokenise(content) if not word.isdigit())
    found.extend(Term(word, TermKind.WORD) for word in words if word not in names)
    return tuple(found[:MAX_TERMS])


def weights_of(terms: Sequence[Term], others: Sequence[Spoken], rarity: Rarity) -> list[float]:
    """Return how much finding each term tells, 0 to 1.5.

    Args:
        others: The other memories that were shown: what several say tells little about one.
    """
    parts = frozenset(part for term in terms if term.kind is TermKind.NAME for part in tokenise(term.key))
    return [_weight(term, parts, rarity) / (1 + sum(other.says(term) for other in others)) for term in terms]


def _weight(term: Term, parts: frozenset[str], rarity: Rarity) -> float:
    match term.kind:
        case TermKind.WORD:
            return _word_weight(term.key, rarity) * (_PART_SHARE if term.key in parts else 1.0)
        case TermKind.FIGURE:
            return _figure_weight(term.key)
        case TermKind.NAME:
            if term.key.isalpha():
                return _word_weight(term.key, rarity)
            return 1.0 + _COMMAND_BONUS * (" " in term.key)


def _word_weight(word: str, rarity: Rarity) -> float:
    return min(rarity(word), _EVERYDAY_WEIGHT) if word in EVERYDAY else rarity(word)


def _figure_weight(key: str) -> float:
    """Small numbers are everywhere; one with a unit, or of three digits, hardly comes by chance."""
    dimension, _, value = key.partition(":")
    digits = sum(character.isdigit() for character in value.removesuffix(".0"))
    if dimension == "n":
        return {0: 0.2, 1: 0.3, 2: 0.7}.get(digits, 1.0)
    return 0.7 if digits < 2 else 1.0


@lru_cache(maxsize=4096)
def figures_of(text: str) -> frozenset[str]:
    """Return the figures of a text as `dimension:value`; a plain number's dimension is `n`, a time's `s`."""
    joined = _DECIMAL_COMMA.sub(".", _SPACED_GROUP.sub("", text))
    found: set[str] = set()
    for match in PATTERN.finditer(joined):
        key = _figure_key(quantity_of(match))
        if key and match.group(0).lower() not in {"one", "once"}:
            found.add(key)
    for match in _DIGITS.finditer(joined):
        found.add(f"n:{match.group(0)}" if "." in match.group(0) else f"n:{float(match.group(0)):g}")
    return frozenset(found)


def _figure_key(quantity: Quantity) -> str:
    if quantity.dimension in {"s", "interval"}:
        return f"s:{quantity.parts[0]:g}"
    if quantity.dimension in {"", "percent", "times"}:
        return f"n:{quantity.parts[0]:g}"
    if quantity.dimension in {"bytes", "version", "date", "clock"}:
        return f"{quantity.dimension}:" + ",".join(f"{part:g}" for part in quantity.parts)
    return ""


def _names(content: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*map(_template, _raw_names(content)), *_symbols(content)]))


def _raw_names(content: str) -> list[str]:
    names: list[str] = []
    for match in _NAME.finditer(content):
        raw = match.group(0)
        if raw.startswith("`"):
            inner = raw.strip("`").strip()
            names.append(" ".join(inner.lower().split()))
            names.extend(_raw_names(inner.replace("`", " ")))
            continue
        name = raw.strip(",:;").rstrip(".").lower()
        if name in _ABBREVIATIONS:
            continue
        is_abbreviation = raw.isupper() and len(raw) > 1
        if is_abbreviation or (len(name) >= 2 and not _PLAIN.match(raw.strip(".,:;"))):
            names.append(name)
    return [name for name in names if name]


def _symbols(content: str) -> list[str]:
    return _SYMBOL.findall(content)


def _template(name: str) -> str:
    """Return a name with its placeholders as `*`, a ticket without its number, a call without its end."""
    filled = _PLACEHOLDER.sub("*", name)
    if name.endswith("()"):
        return filled.removesuffix(")")
    return filled if name.startswith(_STANDARDS) else _TICKET.sub(r"\1*", filled)


def _occurs(name: str, text: str) -> bool:
    if "*" in name:
        pattern = _template_pattern(name)
        return pattern is not None and pattern.search(text) is not None
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        runs_on_left = start > 0 and text[start - 1].isalnum() and name[0].isalnum()
        runs_on_right = end < len(text) and text[end].isalnum() and name[-1].isalnum()
        if not runs_on_left and not runs_on_right:
            return True
        start = text.find(name, start + 1)
    return False


@lru_cache(maxsize=1024)
def _template_pattern(name: str) -> re.Pattern[str] | None:
    """Return what a name with placeholders looks like when filled in; None if hardly anything of it is fixed."""
    parts = [part for part in name.split("*") if part]
    if sum(len(part.strip("/_-.")) for part in parts) < 2 or " " in name:
        return None
    filling = r"[\w.-]{1,60}"
    pattern = filling.join(re.escape(part) for part in parts)
    opening = filling if name.startswith("*") else ""
    closing = filling if name.endswith("*") else ""
    return re.compile(rf"(?<!\w){opening}{pattern}{closing}(?!\w)")
