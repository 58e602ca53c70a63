"""Reads the little of a document that a request is about, from the disk: what is typed is never sent to us.

Text that was not saved yet is therefore not seen; a selection's action shows what would be stored.
"""

import os
import re
import stat
from collections.abc import Sequence
from itertools import islice
from typing import Final

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
MAX_SELECTED_LINES: Final = 2_000

_IDENTIFIER: Final = re.compile(r"[^\W\d][\w$]*")
_MAX_LINE_CHARACTERS: Final = 10_000


def symbol_at(path: str, position: Position, codec: PositionCodec) -> str:
    """Return the identifier at a position; empty if there is none, or the file cannot be read. Blocks."""
    lines = read_lines(path, first=position.line, count=1)
    if not lines or len(lines[0]) > _MAX_LINE_CHARACTERS:
        return ""
    at = _column(lines[0], position.character, codec)
    return next((found[0] for found in _IDENTIFIER.finditer(lines[0]) if found.start() <= at <= found.end()), "")


def text_in(path: str, selected: Range, codec: PositionCodec) -> str:
    """Return the text of a range; empty if there is none, it is too long, or the file cannot be read. Blocks."""
    count = selected.end.line - selected.start.line + 1
    if not 1 <= count <= MAX_SELECTED_LINES:
        return ""
    lines = read_lines(path, first=selected.start.line, count=count)
    if not lines:
        return ""
    start = _column(lines[0], selected.start.character, codec)
    if len(lines) < count:
        # The end lies behind the last line.
        return "".join((lines[0][start:], *lines[1:]))
    end = _column(lines[-1], selected.end.character, codec)
    if count == 1:
        return lines[0][start:end]
    return "".join((lines[0][start:], *lines[1:-1], lines[-1][:end]))


def _column(line: str, character: int, codec: PositionCodec) -> int:
    """Return where a character in the editor's units is in a line; beyond its end, the end."""
    text = line.rstrip("\n")
    within = min(character, codec.client_num_units(text))
    return codec.position_from_client_units([text], Position(0, within)).character


def read_lines(path: str, *, first: int, count: int) -> Sequence[str]:
    """Return some lines of a text file with `\\n` at their ends; none if it is no text, too large or not there."""
    try:
        # A pipe that nobody writes to would hold us up for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError):
        return ()
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
        os.close(descriptor)
        return ()
    with os.fdopen(descriptor, encoding="utf-8-sig", errors="replace") as file:
        # As in LSP, a line ends with a line feed, a carriage return, or both.
        lines = tuple(islice(file, first, first + count))
    return () if any("\0" in line for line in lines) else lines
