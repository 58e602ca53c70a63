"""Cuts Markdown into the blocks that notes are made of, with their lines. Renders nothing and follows no link.

Enough of the syntax for notes: headings with `#`, list items with all that is indented below them, fences, comments.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_ITEM: Final = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])([ \t]+)(?=\S)")
_RULE: Final = re.compile(r" {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})")
_FENCE: Final = re.compile(r" *(`{3,}|~{3,})")
_LINE_END: Final = re.compile("\r\n?|\n")
_COMMENT_START: Final = "<!--"
_COMMENT_END: Final = "-->"
_TAB_WIDTH: Final = 4
# Titles that say only which file it is.
_EMPTY_TITLES: Final = frozenset(
    {"claude", "claude.md", "memory", "memory.md", "memory index", "agents", "agents.md", "project memory", "notes"}
)


class BlockKind(Enum):
    """What a block is."""

    HEADING = auto()
    ITEM = auto()
    PROSE = auto()
    CODE = auto()
    COMMENT = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lines that belong together.

    Attributes:
        line: Of its first line, 1-based.
        lines: An item's are without its marker and indentation, a heading's is its text; none at the end is blank.
        level: Of a heading, 1 to 6; else 0.
        headings: Texts of the headings above it, outermost first, without those that only name the file.
    """

    kind: BlockKind
    line: int
    lines: tuple[str, ...]
    level: int = 0
    headings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Its lines in one."""
        return "\n".join(self.lines)

    @property
    def end_line(self) -> int:
        """Line after its last one."""
        return self.line + len(self.lines)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as editors count them; a form feed, say, ends none."""
    return _LINE_END.split(text)


def parse_blocks(lines: Sequence[str], *, first_line: int = 1) -> list[Block]:
    """Return the blocks of a Markdown text in order. Never fails; takes time in proportion to the text.

    Args:
        lines: Without line ends.
        first_line: Number of the first of them.
    """
    reader = _BlockReader()
    for number, line in enumerate(lines, first_line):
        reader.take(number, line.expandtabs(_TAB_WIDTH).rstrip())
    return list(_below_headings(reader.finish()))


def _below_headings(blocks: Sequence[Block]) -> Iterator[Block]:
    """Give each block its headings."""
    levels = [block.level for block in blocks if block.kind is BlockKind.HEADING]
    # One heading above all others is the document's title: it says nothing of any single note.
    has_title = len(levels) > 1 and levels[0] == 1 and levels.count(1) == 1
    path: list[tuple[int, str]] = []
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            path = [part for part in path if part[0] < block.level]
            path.append((block.level, block.text))
        below_title = has_title and len(path) > 1 and path[0][0] == 1
        texts = [text for _, text in (path[1:] if below_title else path)]
        headings = tuple(text for text in texts if text and text.lower() not in _EMPTY_TITLES)
        yield Block(block.kind, block.line, block.lines, block.level, headings)


class _BlockReader:
    """Takes one line after the other; a block ends where the next one starts."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._kind: BlockKind | None = None
        self._line = 0
        self._lines: list[str] = []
        self._indent = 0
        self._fence = ""

    def finish(self) -> list[Block]:
        """Return all blocks."""
        self._end()
        return self._blocks

    def take(self, number: int, line: str) -> None:
        """Add a line to the open block, or open another."""
        if self._fence:
            self._append(line)
            self._close_fence(line)
        elif self._kind is BlockKind.COMMENT:
            self._append(line)
            self._close_comment(line)
        elif not line:
            self._blank()
        elif self._kind is BlockKind.ITEM and _indent_of(line) >= self._indent:
            self._append(line)
            self._open_fence(line)
        elif not self._starts_block(number, line):
            self._continue(number, line)

    def _starts_block(self, number: int, line: str) -> bool:
        heading = _HEADING.fullmatch(line)
        item = _ITEM.match(line)
        if heading:
            self._begin(BlockKind.HEADING, number, (heading.group(2) or "").strip().rstrip("#").rstrip())
            self._blocks.append(Block(BlockKind.HEADING, number, tuple(self._lines), len(heading.group(1))))
            self._kind = None
        elif _RULE.fullmatch(line):
            self._end()
        elif line.lstrip().startswith(_COMMENT_START):
            self._begin(BlockKind.COMMENT, number, line)
            self._close_comment(line)
        elif _FENCE.match(line):
            self._begin(BlockKind.CODE, number, line)
            self._open_fence(line)
        elif item:
            self._begin(BlockKind.ITEM, number, line[item.end() :])
            self._indent = item.end()
            self._open_fence(line[item.end() :])
        else:
            return False
        return True

    def _continue(self, number: int, line: str) -> None:
        is_after_blank = bool(self._lines) and not self._lines[-1]
        if self._kind in {BlockKind.ITEM, BlockKind.PROSE} and not is_after_blank:
            self._lines.append(line.strip() if self._kind is BlockKind.ITEM else line)
        else:
            self._begin(BlockKind.PROSE, number, line)

    def _blank(self) -> None:
        # What is indented after a blank line still belongs to the item.
        if self._kind is BlockKind.ITEM:
            self._lines.append("")
        else:
            self._end()

    def _begin(self, kind: BlockKind, number: int, line: str) -> None:
        self._end()
        self._kind, self._line, self._lines = kind, number, [line]

    def _append(self, line: str) -> None:
        margin = min(self._indent, _indent_of(line)) if self._kind is BlockKind.ITEM else 0
        self._lines.append(line[margin:])

    def _end(self) -> None:
        while self._lines and not self._lines[-1]:
            self._lines.pop()
        if self._kind is not None and self._lines:
            self._blocks.append(Block(self._kind, self._line, tuple(self._lines)))
        self._kind, self._lines, self._fence = None, [], ""

    def _open_fence(self, line: str) -> None:
        opened = _FENCE.match(line)
        self._fence = opened.group(1) if opened else ""

    def _close_fence(self, line: str) -> None:
        mark = line.strip()
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            self._fence = ""
            if self._kind is BlockKind.CODE:
                self._end()

    def _close_comment(self, line: str) -> None:
        if _COMMENT_END in line:
            self._end()


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
