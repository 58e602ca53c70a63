"""What commands say and where: results on stdout, notes and errors on stderr; as text or as one JSON document.

Stored text may hold anything, so all of it passes through `visible`; colours and markup in it are never acted on.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sidecar.api.plain import JsonValue
from sidecar.cli.exit_codes import exit_code_of
from sidecar.domain.display import visible
from sidecar.errors import SidecarError


class Output:
    """Speaks to a person or to a script. Create one for each command."""

    def __init__(self, *, is_json: bool) -> None:
        self.is_json = is_json
        self._results = Console(highlight=False, markup=False, emoji=False)
        self._notes = Console(stderr=True, highlight=False, markup=False, emoji=False)

    @property
    def can_ask(self) -> bool:
        """Whether somebody is there to answer a question."""
        return not self.is_json and sys.stdin.isatty()

    def document(self, value: Mapping[str, JsonValue]) -> None:
        """Write the one JSON document of a command."""
        # ASCII, so that neither the terminal's encoding nor a control character in a text can spoil it.
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")
        sys.stdout.flush()

    def line(self, text: str = "", *, style: str = "", indent: int = 0) -> None:
        """Write a paragraph of the result, wrapped at the width of the terminal."""
        self._paragraph(self._results, text, style=style, indent=indent)

    def raw(self, text: str) -> None:
        """Write a text that another program may read: neither wrapped nor styled, one line feed at its end."""
        self._results.file.write(visible(text).rstrip("\n") + "\n")
        self._results.file.flush()

    def note(self, text: str) -> None:
        """Tell a person something that is not part of the result."""
        if not self.is_json:
            self._paragraph(self._notes, text, style="", indent=0)

    def warn(self, text: str) -> None:
        """Tell something that must not be overlooked, scripts included."""
        self._paragraph(self._notes, text, style="yellow", indent=0)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table without borders; the last column takes the room that is left."""
        table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
        for name in columns[:-1]:
            table.add_column(name, no_wrap=True)
        table.add_column(columns[-1], overflow="fold")
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        self._results.print(table)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show a person that something is under way; nothing where stderr is no terminal."""
        if self.is_json or not self._notes.is_terminal:
            yield
            return
        with self._notes.status(what):
            yield

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show a person how far something has come; takes how much is done, and how much there is, 0 if not known."""
        if self.is_json or not self._notes.is_terminal:
            yield lambda _done, _total: None
            return
        with self._notes.status(what) as status:
            yield lambda done, total: status.update(f"{what} {done:,}" + (f" of {total:,}" if total else ""))

    def error(self, error: SidecarError) -> None:
        """Say what went wrong; as JSON: reason, message, metadata and exit code."""
        self.failure(error.metadata.get("reason", error.reason), error.message, exit_code_of(error), error.metadata)

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
            sys.stderr.write(json.dumps(document, indent=2) + "\n")
            sys.stderr.flush()
        else:
            self._paragraph(self._notes, f"Error: {message}", style="red", indent=0)

    def _paragraph(self, console: Console, text: str, *, style: str, indent: int) -> None:
        for part in visible(text).split("\n"):
            lines = Text(part, style=style, overflow="fold").wrap(console, max(console.width - indent, 20))
            for line in lines or [Text()]:
                console.print(Text(" " * indent) + line)
