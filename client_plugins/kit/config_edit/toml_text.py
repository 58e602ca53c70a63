"""A TOML text that can be changed with its comments, order and layout kept. Pure: text in, text out.

A table is added as a block at the end, which leaves what is there untouched by construction; tomlkit changes what is
there already. Either way the outcome is parsed again, by the standard library, and compared with what it should be.
"""

import copy
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError

from client_plugins.kit.config_edit.json_text import UneditableError
from sidecar.api.plain import JsonValue

TomlPath: TypeAlias = Sequence[str]
_LONE_LINE_FEED: Final = re.compile(r"(?<!\r)\n")
_POSITION: Final = re.compile(r"\(at line (\d+), column (\d+)\)")


class TomlSyntaxError(Exception):
    """The text is no TOML.

    Attributes:
        problem: What is wrong.
        line: 1-based, 0 if not known.
        column: 1-based, 0 if not known.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        found = _POSITION.search(problem)
        self.problem = problem if found is None else problem.replace(found[0], "").strip()
        self.line, self.column = (int(found[1]), int(found[2])) if found else (0, 0)


def toml_value(text: str, path: TomlPath = ()) -> JsonValue:
    """Return the value at a path, None if there is none.

    Raises:
        TomlSyntaxError: The text is no TOML.
    """
    value: JsonValue = _parsed(text)
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def with_table(
    text: str, path: TomlPath, table: Mapping[str, JsonValue], *, owned: Collection[str], comment: str = ""
) -> str:
    """Return the text with a table at a path, added at the end, or its values put into the one that is there.

    Args:
        text: The whole document.
        path: Names of the tables, outermost first.
        table: Its values; tables in it become inline tables.
        owned: Names of values that are ours in a table that is there: they are replaced, or taken out if they are not
            among these. All others in it stay as they are.
        comment: Lines to stand above it when it is added.

    Raises:
        TomlSyntaxError: The text is no TOML.
        UneditableError: The layout defeats a safe change.
    """
    expected = copy.deepcopy(_parsed(text))
    holder = expected
    for key in path[:-1]:
        below = holder.setdefault(key, {})
        if not isinstance(below, dict):
            raise UneditableError
        holder = below
    found = holder.get(path[-1])
    kept = {name: value for name, value in found.items() if name not in owned} if isinstance(found, dict) else {}
    holder[path[-1]] = dict(table) | kept
    if found is None:
        added = _newlines_as_in(text, _appended(text, path, table, comment))
        if _is(added, expected):
            return added
    return _checked(_newlines_as_in(text, _edited(text, path, table, owned)), expected)


def without_table(text: str, path: TomlPath, *, comment: str = "") -> str:
    """Return the text without what is at a path, and without the comment that `with_table` put above it.

    Raises:
        TomlSyntaxError: The text is no TOML.
        UneditableError: The layout defeats a safe change.
    """
    if toml_value(text, path) is None:
        return text
    expected = copy.deepcopy(_parsed(text))
    _delete(expected, path)
    cut = _without_blocks(text, path, comment)
    if _is(cut, expected):
        return cut
    document = tomlkit.parse(text)
    try:
        _delete(document, path)
    except (TOMLKitError, TypeError, KeyError) as error:
        raise UneditableError from error
    left = tomlkit.dumps(document).splitlines(keepends=True)
    # tomlkit takes the comment for the end of the table above it.
    ends = [at for at in range(1, len(left) + 1) if _ends_with_comment(left[:at], comment)]
    if ends:
        head = left[: ends[-1]]
        _drop_comment(head, comment)
        left = head + left[ends[-1] :]
    return _checked("".join(left), expected)


def _without_blocks(text: str, path: TomlPath, comment: str) -> str:
    """Return the text without the blocks of a table and the tables below it; what stands between blocks is kept.

    Comments and empty lines at the end of a block belong to what follows: tomlkit would take them along.
    """
    lines = text.splitlines(keepends=True)
    ours = tuple(f"[{_dotted(path)}{end}" for end in ("]", "."))
    kept: list[str] = []
    position = 0
    while position < len(lines):
        if not lines[position].lstrip().startswith(ours):
            kept.append(lines[position])
            position += 1
            continue
        end = next((at for at in range(position + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
        while end > position + 1 and _is_between_blocks(lines[end - 1]):
            end -= 1
        position = end
        _drop_comment(kept, comment)
    return "".join(kept)


def _drop_comment(lines: list[str], comment: str) -> None:
    """Take the lines of our comment, and the empty one above it, off the end."""
    if _ends_with_comment(lines, comment):
        del lines[-len(comment.splitlines()) :]
        if lines and not lines[-1].strip():
            del lines[-1]


def _ends_with_comment(lines: list[str], comment: str) -> bool:
    ours = _comment_lines(comment).splitlines()
    return bool(ours) and [line.rstrip("\r\n") for line in lines[-len(ours) :]] == ours


def _is_between_blocks(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _appended(text: str, path: TomlPath, table: Mapping[str, JsonValue], comment: str) -> str:
    values = "".join(f"{tomlkit.key(name).as_string()} = {_item(value).as_string()}\n" for name, value in table.items())
    block = f"{_comment_lines(comment)}[{_dotted(path)}]\n{values}"
    if not text.strip():
        return text + block
    return text + ("" if text.endswith("\n") else "\n") + "\n" + block


def _edited(text: str, path: TomlPath, table: Mapping[str, JsonValue], owned: Collection[str]) -> str:
    document = tomlkit.parse(text)
    try:
        holder: Any = document
        for key in path[:-1]:
            holder = holder[key]
        found = holder.get(path[-1])
        if found is None:
            holder[path[-1]] = _item(dict(table))
            return tomlkit.dumps(document)
        for name in [name for name in found if name in owned and name not in table]:
            del found[name]
        for name, value in table.items():
            if name not in found or (name in owned and found[name] != value):
                found[name] = _item(value)
    except (TOMLKitError, TypeError, AttributeError, KeyError) as error:
        raise UneditableError from error
    return tomlkit.dumps(document)


def _item(value: JsonValue) -> tomlkit.items.Item:
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for name, each in value.items():
            table.append(name, _item(each))
        return table
    return tomlkit.item(value)


def _delete(holder: object, path: TomlPath) -> None:
    for key in path[:-1]:
        holder = holder[key]  # type: ignore[index]
    del holder[path[-1]]  # type: ignore[attr-defined]


def _dotted(path: TomlPath) -> str:
    return ".".join(tomlkit.key(name).as_string() for name in path)


def _comment_lines(comment: str) -> str:
    return "".join(f"# {line}\n" for line in comment.splitlines())


def _newlines_as_in(original: str, text: str) -> str:
    """Return the text with the line ends of one that has CR LF throughout, else as it is."""
    has_crlf_only = "\r\n" in original and not _LONE_LINE_FEED.search(original)
    return _LONE_LINE_FEED.sub("\r\n", text) if has_crlf_only else text


def _parsed(text: str) -> dict[str, JsonValue]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlSyntaxError(str(error)) from error


def _is(text: str, expected: Mapping[str, JsonValue]) -> bool:
    try:
        return _without_empty(_parsed(text)) == _without_empty(dict(expected))
    except TomlSyntaxError:
        return False


def _checked(text: str, expected: Mapping[str, JsonValue]) -> str:
    if not _is(text, expected):
        raise UneditableError
    return text


def _without_empty(tables: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the tables without the empty ones on the outermost level, which come and go with what is in them."""
    return {name: value for name, value in tables.items() if value != {}}
