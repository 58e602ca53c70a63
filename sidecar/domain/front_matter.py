"""Reads the `key: value` lines between `---` at the top of a note. Not YAML: an unquoted `*.ts` is plain text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_MARK: Final = "---"
_MAX_LINES: Final = 200
_KEY: Final = re.compile(r"( *)([A-Za-z_][\w-]*):(?: +(.*))?")
_LIST_ITEM: Final = re.compile(r" *- +(.*)")
_QUOTES: Final = "\"'"


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands at the top of a note, and where the rest begins.

    Attributes:
        values: By key; a key below another is written `outer.inner`. A list, in either style, has several values.
        body_start: Index of the first line that does not belong to it.
    """

    values: Mapping[str, tuple[str, ...]]
    body_start: int

    def text(self, key: str) -> str:
        """Return a key's value in one line; empty if it is not there."""
        return " ".join(self.values.get(key, ()))


def split_front_matter(lines: Sequence[str]) -> FrontMatter | None:
    """Return the front matter; None if the text does not begin with one, or it has no end within 200 lines."""
    if not lines or lines[0].rstrip() != _MARK:
        return None
    end = next((number for number, line in enumerate(lines[1:_MAX_LINES], 1) if line.rstrip() == _MARK), 0)
    return FrontMatter(_read(lines[1:end]), end + 1) if end else None


def split_commas(text: str) -> tuple[str, ...]:
    """Return the parts between commas, without quotes; a comma within quotes or braces, as in `*.{a,b}`, is text."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character in "{}":
            depth = max(depth + (1 if character == "{" else -1), 0)
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(_unquoted(part) for part in parts if part.strip())


def _read(lines: Sequence[str]) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {}
    outer = key = ""
    for line in lines:
        found = _KEY.fullmatch(line.rstrip())
        item = _LIST_ITEM.fullmatch(line.rstrip())
        if found:
            is_inner = bool(found.group(1))
            key = f"{outer}.{found.group(2)}" if is_inner and outer else found.group(2)
            outer = outer if is_inner else found.group(2)
            # The first one counts, as the reader of the file saw it first.
            values.setdefault(key, _split(found.group(3) or ""))
        elif item and key:
            values[key] = (*values[key], _unquoted(item.group(1)))
        elif key and line.strip() and line.startswith(" "):
            # A folded text goes on in the next line.
            values[key] = (*values[key], line.strip())
    return values


def _split(value: str) -> tuple[str, ...]:
    text = value.strip()
    if text in {"", "|", ">", "|-", ">-", "[]"}:
        return ()
    if text.startswith("[") and text.endswith("]"):
        return split_commas(text[1:-1])
    return (_unquoted(text),)


def _unquoted(text: str) -> str:
    bare = text.strip()
    is_quoted = len(bare) >= 2 and bare[0] in _QUOTES and bare[-1] == bare[0]
    return bare[1:-1] if is_quoted else bare
