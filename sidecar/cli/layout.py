"""Where lines break and when columns fit on a terminal. Pure: gives text, prints nothing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from sidecar.domain.display import visible

GAP: Final = 2
# A text in fewer columns than this takes more lines than it is worth.
_LEAST_TEXT_COLUMNS: Final = 44
_LEAST_COLUMNS: Final = 20
_TEXT_INDENT: Final = 3
_QUOTED: Final = re.compile(r"`[^`]+`")
# Stands for a space that no line ends at; of the private area, so that no text means it.
_GLUE: Final = "\ue000"


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph to be shown."""

    text: str
    is_heading: bool = False
    indent: int = 0
    hang: int = 0


def fits_in_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> bool:
    """Tell whether rows can be read as a table: all but the last column whole, and room enough for the last."""
    widths = [max(cell_len(visible(row[place])) for row in (columns, *rows)) for place in range(len(columns) - 1)]
    room = width - sum(widths) - GAP * len(widths)
    needed = max((cell_len(visible(row[-1])) for row in rows), default=0)
    return room >= min(needed, _LEAST_TEXT_COLUMNS)


def below_each_other(columns: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> Iterator[Line]:
    """Yield each row as paragraphs: its first cell, then the others with the names of their columns."""
    for row in rows:
        if len(row) == 2:
            yield Line(f"{row[0]}: {row[1]}" if row[0] else row[1], hang=2)
            continue
        named = [f"{name}: {cell}" if name else cell for name, cell in zip(columns[1:], row[1:], strict=True)]
        yield Line(row[0], is_heading=True)
        yield from (Line(line, indent=2) for line in _packed(named, width - 2))


def as_entries(rows: Sequence[Sequence[str]], *, width: int) -> Iterator[Line]:
    """Yield each row as a heading of all but its last cell, and the text that is the last one below."""
    for row in rows:
        yield from (Line(line, is_heading=True) for line in _packed(row[:-1], width))
        yield Line(row[-1], indent=_TEXT_INDENT)


def wrapped(console: Console, text: str, *, width: int) -> list[str]:
    """Return the text in lines; neither a word nor what stands in backticks is broken, since it is to be copied.

    Text of wide characters, such as Chinese, knows no spaces and is broken between any two of them.
    """
    columns = max(width, _LEAST_COLUMNS)
    if _GLUE in text:
        return [text]
    glued = _QUOTED.sub(lambda found: found[0].replace(" ", _GLUE), text)
    lines = [line.plain.rstrip() for line in Text(glued, overflow="ignore").wrap(console, columns)]
    broken = [part for line in lines for part in (_chopped(line, columns) if _is_wide(line) else [line])]
    return [line.replace(_GLUE, " ") for line in broken] or [""]


def _is_wide(text: str) -> bool:
    return not text.isascii() and cell_len(text) > len(text)


def _chopped(line: str, columns: int) -> list[str]:
    return chop_cells(line, columns) if cell_len(line) > columns else [line]


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """Return the parts in lines, two spaces between them, none broken that has room in a line of its own."""
    lines: list[str] = []
    for part in filter(None, parts):
        longer = f"{lines[-1]}  {part}" if lines else part
        if lines and cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines
