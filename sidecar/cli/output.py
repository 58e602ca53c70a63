"""What commands say and where: results on stdout, notes and errors on stderr; as text or as one JSON document.

Stored text may hold anything, so all of it passes through `visible`; colours and markup in it are never acted on.
Only a terminal gets lines broken and columns aligned: what is piped has a row on each line, its fields parted by tabs.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sidecar.api.plain import JsonValue
from sidecar.cli import layout
from sidecar.cli.exit_codes import exit_code_of
from sidecar.domain.display import one_line, visible
from sidecar.errors import SidecarError

_FLAGS: Final = {"page_token": "--page", "n_results": "--limit", "page_size": "--limit", "memory_type": "--type"}


class Output:
    """Speaks to a person or to a script. Create one for each command."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json
        self._results = Console(highlight=False, markup=False, emoji=False)
        self._notes = Console(stderr=True, highlight=False, markup=False, emoji=False)

    @property
    def is_for_a_person(self) -> bool:
        """Whether somebody reads the result on a terminal, rather than a program."""
        return not self.is_json and self._results.is_terminal

    @property
    def can_show_bars(self) -> bool:
        """Whether what reads the result takes more than the letters of its language."""
        return self._results.encoding.lower().startswith("utf")

    @property
    def can_ask(self) -> bool:
        """Whether somebody is there to answer a question."""
        return not self.is_json and sys.stdin.isatty()

    def document(self, value: Mapping[str, JsonValue]) -> None:
        """Write the one JSON document of a command."""
        # ASCII, so that neither the terminal's encoding nor a control character in a text can spoil it.
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")
        sys.stdout.flush()

    def line(self, text: str = "", *, style: str = "", indent: int = 0, hang: int = 0) -> None:
        """Write a paragraph of the result, wrapped at the width of a terminal.

        Args:
            indent: Columns in front of each line; `hang` those in front of all but the first besides.
        """
        self._paragraph(self._results, text, style=style, indent=indent, hang=hang)

    def raw(self, text: str) -> None:
        """Write a text that another program may read: neither wrapped nor styled, one line feed at its end."""
        self._results.file.write(visible(text).rstrip("\n") + "\n")
        self._results.file.flush()

    def preview(self, text: str, *, limit: int) -> str:
        """Return the text in one line, cut at so many characters for a person; a program gets all of it."""
        return one_line(text, limit=limit if self._results.is_terminal else sys.maxsize)

    def note(self, text: str) -> None:
        """Tell a person something that is not part of the result."""
        if not self.is_json:
            self._tell(text)

    def warn(self, text: str) -> None:
        """Tell something that must not be overlooked, scripts included."""
        self._tell(text, style="yellow")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table without borders; where it does not fit, its fields below each other. No cell is ever cut."""
        if not self._results.is_terminal:
            self._rows(rows)
        elif layout.fits_in_columns(columns, rows, width=self._results.width):
            self._align(columns, rows)
        else:
            self._paragraphs(layout.below_each_other(columns, rows, width=self._results.width))

    def entries(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table whose last column is a text; where it does not fit, the texts below what belongs to them."""
        if not self._results.is_terminal:
            self._rows(rows)
        elif layout.fits_in_columns(columns, rows, width=self._results.width):
            self._align(columns, rows)
        else:
            self._paragraphs(layout.as_entries(rows, width=self._results.width))

    def _rows(self, rows: Sequence[Sequence[str]]) -> None:
        for row in rows:
            self._whole(self._results, "\t".join(" ".join(visible(cell).split()) for cell in row))

    def _paragraphs(self, lines: Iterable[layout.Line]) -> None:
        for line in lines:
            self.line(line.text, style="bold" if line.is_heading else "", indent=line.indent, hang=line.hang)

    def _align(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(
            box=None,
            pad_edge=False,
            show_edge=False,
            padding=(0, layout.GAP, 0, 0),
            show_header=any(columns),
            header_style="bold",
        )
        for name in columns[:-1]:
            table.add_column(name, no_wrap=True)
        table.add_column(columns[-1], overflow="fold")
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        self._results.print(table)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show a person that something is under way; nothing where stderr is no terminal."""
        if self.is_json or not self._notes.is_interactive:
            yield
            return
        with self._notes.status(what, spinner=self._spinner):
            yield

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show a person how far something has come; takes how much is done, and how much there is, 0 if not known."""
        if self.is_json or not self._notes.is_interactive:
            yield lambda _done, _total: None
            return
        with self._notes.status(what, spinner=self._spinner) as status:
            yield lambda done, total: status.update(f"{what} {done:,}" + (f" of {total:,}" if total else ""))

    @property
    def _spinner(self) -> str:
        return "dots" if self._notes.encoding.lower().startswith("utf") else "line"

    def error(self, error: SidecarError) -> None:
        """Say what went wrong; as JSON: reason, message, metadata and exit code."""
        message = error.message
        field = error.metadata.get("field", "")
        if not self.is_json and field in _FLAGS:
            # A person knows what was typed, not what the request calls it.
            message = message.replace(field, f"`{_FLAGS[field]}`", 1)
        self.failure(error.metadata.get("reason", error.reason), message, exit_code_of(error), error.metadata)

    def failure(self, reason: str, message: str, exit_code: int, metadata: Mapping[str, str] | None = None) -> None:
        """Say what went wrong, where it is no error of the sidecar."""
        if self.is_json:
            document = {
                "error": {
                    "reason": reason,
                    "message": message,
                    "metadata": dict(metadata or {}),
                    "exit_code": int(exit_code),
                }
            }
            with suppress(OSError):
                sys.stderr.write(json.dumps(document, indent=2) + "\n")
                sys.stderr.flush()
        else:
            self._tell(f"Error: {message}", style="red")

    def _tell(self, text: str, *, style: str = "") -> None:
        # Where stderr takes nothing, nobody can be told; the exit code still says how the command ended.
        with suppress(OSError):
            self._paragraph(self._notes, text, style=style, indent=0)

    def _paragraph(self, console: Console, text: str, *, style: str, indent: int, hang: int = 0) -> None:
        for part in visible(text).split("\n"):
            if not console.is_terminal:
                self._whole(console, " " * indent + part, style=style)
                continue
            margin = indent
            for line in layout.wrapped(console, part, width=console.width - indent - hang):
                self._whole(console, " " * margin + line, style=style)
                margin = indent + hang

    def _whole(self, console: Console, text: str, *, style: str = "") -> None:
        """Write one line, however long: where it breaks is the terminal's matter, so that it can be copied."""
        if console.is_terminal:
            console.print(Text(text, style=style), soft_wrap=True)
        else:
            # Rich would make spaces of the tabs.
            console.file.write(f"{text}\n")
