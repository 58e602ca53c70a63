"""A JSON text that can be changed with its comments, order and layout kept. Pure: text in, text out.

Every change is the insertion or removal of a few characters, and is parsed again and compared with what it should
have become, so that a text that is laid out in an unforeseen way is refused rather than spoiled.
"""

import copy
import json
import re
from dataclasses import dataclass
from typing import Final, Self

from client_plugins.kit.config_edit.json_spans import Entry, JsonLayout, JsonPath, comments_of
from sidecar.api.plain import JsonValue

_DEFAULT_INDENT: Final = "  "
_INDENT: Final = re.compile(r"^[ \t]+(?=[\"{\[])", re.MULTILINE)
_BLANKS: Final = " \t"


class UneditableError(Exception):
    """The text is valid, but a change of it did not come out as it should; it must be made by hand."""


@dataclass(frozen=True)
class JsonText:
    """One JSON document. Create it with `parse`.

    Attributes:
        text: The whole document.
        allows_comments: Whether its client accepts comments and commas before a closing bracket.
    """

    text: str
    allows_comments: bool
    _layout: JsonLayout

    @classmethod
    def parse(cls, text: str, *, allows_comments: bool) -> Self:
        """Return the document; a blank text is an empty object.

        Raises:
            JsonSyntaxError: It is no valid document.
        """
        text = text if text.strip() else "{}\n"
        return cls(text, allows_comments, JsonLayout(text, allows_comments=allows_comments))

    def get(self, path: JsonPath) -> JsonValue:
        """Return the value at a path, None if there is none; a container must not be changed."""
        value = self._layout.value
        for key in path:
            if isinstance(value, dict) and isinstance(key, str):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
                value = value[key]
            else:
                return None
        return value

    def has(self, path: JsonPath) -> bool:
        """Return whether there is a value at a path, null included."""
        return self._layout.find(path) is not None

    def with_value(self, path: JsonPath, value: JsonValue) -> Self:
        """Return the document with a value at a path, replaced or added last; the container must be there.

        Raises:
            UneditableError: The layout defeats a safe change.
        """
        expected = _changed(self._layout.value, path, value)
        container = self._layout.find(path[:-1])
        if container is None or not expected:
            raise UneditableError
        entry = self._layout.find(path)
        if entry is None:
            return self._checked(self._inserted(container, path[-1], value, depth=len(path)), expected[0])
        rendered = self._rendered(value, depth=len(path), is_flat=self._is_flat(entry))
        return self._checked(self.text[: entry.value_start] + rendered + self.text[entry.end :], expected[0])

    def without(self, path: JsonPath) -> Self:
        """Return the document without the entry at a path; unchanged if there is none.

        Raises:
            UneditableError: The layout defeats a safe change.
        """
        entry = self._layout.find(path)
        container = self._layout.find(path[:-1])
        if entry is None or container is None:
            return self
        value = copy.deepcopy(self._layout.value)
        holder, key = _at(value, path[:-1]), path[-1]
        assert isinstance(holder, dict | list)
        del holder[key]  # type: ignore[arg-type]
        return self._checked(self._removed(container, entry), value)

    def _inserted(self, container: Entry, key: str | int, value: JsonValue, *, depth: int) -> str:
        entries = self._layout.entries(container)
        closer = self._closer(container)
        is_flat = self._is_flat(container) and (bool(entries) or self._is_flat_document())
        rendered = self._rendered(value, depth=depth, is_flat=is_flat)
        added = f"{json.dumps(key, ensure_ascii=False)}: {rendered}" if isinstance(key, str) else rendered
        if not entries:
            return self._first(container, closer, added, depth=depth, is_flat=is_flat)
        last = entries[-1]
        own_comma = self._comma_behind(last.end, closer)
        separator = "" if own_comma is not None else ","
        ending = "," if own_comma is not None else ""
        if is_flat:
            place = last.end if own_comma is None else own_comma + 1
            return f"{self.text[:place]}{separator} {added}{ending}{self.text[place:]}"
        place = self._end_of_line_of((last.end if own_comma is None else own_comma + 1), closer)
        indent = self._indent_at(last.start) or self._indent() * depth
        line = f"{self._newline()}{indent}{added}{ending}"
        return self.text[: last.end] + separator + self.text[last.end : place] + line + self.text[place:]

    def _first(self, container: Entry, closer: int, added: str, *, depth: int, is_flat: bool) -> str:
        before, inside, after = (
            self.text[: container.value_start + 1],
            self.text[container.value_start + 1 : closer],
            self.text[closer:],
        )
        if is_flat and not inside.strip():
            return before + added + after
        outer = self._indent() * (depth - 1)
        kept = inside.rstrip() if inside.strip() else ""
        return f"{before}{kept}{self._newline()}{outer}{self._indent()}{added}{self._newline()}{outer}{after}"

    def _removed(self, container: Entry, entry: Entry) -> str:
        closer = self._closer(container)
        entries = self._layout.entries(container)
        position = next(number for number, each in enumerate(entries) if each.start == entry.start)
        comma = self._comma_behind(entry.end, closer)
        start, end = entry.start, entry.end if comma is None else comma + 1
        text = self.text
        blank = start
        while text[blank - 1] in _BLANKS:
            blank -= 1
        if text[blank - 1] == "\n":
            # Its line goes with it, unless something else stands on it.
            blank -= 2 if text[blank - 2 : blank] == "\r\n" else 1
        head, tail = text[:blank], text[end:]
        if comma is None and position:
            # The last one goes, so that the comma ahead of it has nothing to part any more.
            before = self._comma_behind(entries[position - 1].end, start)
            if before is not None:
                head = head[:before] + head[before + 1 :]
        if len(entries) == 1 and not (head[container.value_start + 1 :] + tail[: closer - end]).strip():
            return head[: container.value_start + 1] + text[closer:]
        return head + tail

    def _comma_behind(self, position: int, limit: int) -> int | None:
        """Return where the comma behind a value stands, a superfluous one included."""
        skipped = dict(comments_of(self.text)) if self.allows_comments else {}
        while position < limit:
            if position in skipped:
                position = skipped[position]
                continue
            if self.text[position] == ",":
                return position
            if not self.text[position].isspace():
                return None
            position += 1
        return None

    def _end_of_line_of(self, position: int, limit: int) -> int:
        """Return the end of what belongs to a line: comments that begin on it are its own."""
        skipped = dict(comments_of(self.text)) if self.allows_comments else {}
        end = position
        while position < limit and self.text[position] not in "\r\n":
            if position in skipped:
                position = end = skipped[position]
            elif self.text[position] in _BLANKS:
                position += 1
            else:
                break
        return end

    def _closer(self, container: Entry) -> int:
        return container.end - 1

    def _is_flat(self, entry: Entry) -> bool:
        return "\n" not in self.text[entry.value_start : entry.end]

    def _is_flat_document(self) -> bool:
        return "\n" not in self.text.strip() and len(self.text.strip()) > len("{}")

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _indent(self) -> str:
        found = _INDENT.search(self.text)
        return found[0] if found is not None else _DEFAULT_INDENT

    def _indent_at(self, position: int) -> str:
        """Return the white space ahead of what begins a line; empty if something else stands there."""
        line_start = self.text.rfind("\n", 0, position) + 1
        ahead = self.text[line_start:position]
        return ahead if ahead and not ahead.strip(_BLANKS) else ""

    def _rendered(self, value: JsonValue, *, depth: int, is_flat: bool) -> str:
        if is_flat:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._indent()).split("\n")
        return (self._newline() + self._indent() * depth).join(lines)

    def _checked(self, text: str, expected: JsonValue) -> Self:
        changed = self.parse(text, allows_comments=self.allows_comments)
        if changed._layout.value != expected:
            raise UneditableError
        return changed


def _changed(value: JsonValue, path: JsonPath, new: JsonValue) -> list[JsonValue]:
    """Return what the whole value becomes, in a list; an empty list if the path leads nowhere."""
    changed = copy.deepcopy(value)
    holder = _at(changed, path[:-1])
    key = path[-1]
    if isinstance(holder, dict) and isinstance(key, str):
        holder[key] = new
    elif isinstance(holder, list) and isinstance(key, int) and key <= len(holder):
        holder[key : key + 1] = [new]
    else:
        return []
    return [changed]


def _at(value: JsonValue, path: JsonPath) -> JsonValue:
    for key in path:
        value = value[key]  # type: ignore[index]
    return value
