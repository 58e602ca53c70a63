"""Finds where the values of a JSON text begin and end. Reads only; `json_text` changes texts.

The standard library's decoder does the parsing. What only some dialects allow, comments and commas before a closing
bracket, is overwritten with spaces first, so that every position stays what it was.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from sidecar.api.plain import JsonValue

JsonPath: TypeAlias = Sequence[str | int]
"""Names of members and numbers of items, from the outermost value inwards."""

_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|,(?=\s*[}\]])', re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Entry:
    """A member of an object or an item of an array.

    Attributes:
        key: Its name or its number.
        start: Where the entry begins, for a member its name.
        value_start: Where its value begins.
        end: Behind its value.
    """

    key: str | int
    start: int
    value_start: int
    end: int


class JsonSyntaxError(Exception):
    """The text is not what its client reads.

    Attributes:
        problem: What is wrong.
        line: 1-based.
        column: 1-based, in characters.
    """

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)


class JsonLayout:
    """A JSON text and the places of its values. Create one for each text."""

    def __init__(self, text: str, *, allows_comments: bool) -> None:
        """Parse the text.

        Args:
            text: The whole document, without a byte order mark.
            allows_comments: Whether its client accepts comments and commas before a closing bracket.

        Raises:
            JsonSyntaxError: It is no valid document.
        """
        self.text = text
        self.plain = _without_extras(text) if allows_comments else text
        self._decoder = json.JSONDecoder(parse_constant=self._refuse_constant)
        try:
            self.value: JsonValue = self._decoder.decode(self.plain)
        except json.JSONDecodeError as error:
            raise JsonSyntaxError(error.msg, text, error.pos) from error
        except RecursionError as error:
            raise JsonSyntaxError("it is nested too deeply", text, 0) from error

    def find(self, path: JsonPath) -> Entry | None:
        """Return where the value at a path lies, of several members with one name the last, which is the one in force.

        The outermost value has the key 0.
        """
        start = self._skip(0)
        found: Entry | None = Entry(0, start, start, self._end_of(start))
        for key in path:
            if found is None:
                return None
            found = next((entry for entry in reversed(self.entries(found)) if entry.key == key), None)
        return found

    def entries(self, container: Entry) -> list[Entry]:
        """Return the entries of an object or array in the order of the text; nothing for any other value."""
        opener = self.plain[container.value_start]
        return list(self._walk(container.value_start, is_object=opener == "{")) if opener in "{[" else []

    def _walk(self, start: int, *, is_object: bool) -> Iterator[Entry]:
        position = self._skip(start + 1)
        number = 0
        while self.plain[position] not in "}]":
            key: str | int = number
            value_start = position
            if is_object:
                key, after_key = self._decoder.raw_decode(self.plain, position)
                value_start = self._skip(self._skip(after_key) + 1)
            end = self._end_of(value_start)
            yield Entry(key, position, value_start, end)
            number += 1
            position = self._skip(end)
            if self.plain[position] == ",":
                position = self._skip(position + 1)

    def _end_of(self, value_start: int) -> int:
        return self._decoder.raw_decode(self.plain, value_start)[1]

    def _skip(self, position: int) -> int:
        found = _SPACE.match(self.plain, position)
        assert found is not None
        return found.end()

    def _refuse_constant(self, name: str) -> NoReturn:
        raise JsonSyntaxError(f"{name} is no JSON", self.text, max(self.text.find(name), 0))


def comments_of(text: str) -> list[tuple[int, int]]:
    """Return where the comments of a text begin and end."""
    return [found.span() for found in _TOKEN.finditer(text) if found[0].startswith("/")]


def _without_extras(text: str) -> str:
    """Return the text with spaces in the place of comments and of commas before a closing bracket."""
    plain = _TOKEN.sub(lambda found: found[0] if found[0].startswith('"') else _blank(found[0]), text)
    return _STRING_OR_COMMA.sub(lambda found: " " if found[0] == "," else found[0], plain)


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)
