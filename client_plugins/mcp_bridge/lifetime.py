"""Ends the bridge soon after its client closed stdin, so that the last requests are still answered."""

import threading
from collections.abc import Callable
from typing import IO, Final

from client_plugins.kit.parent_watch import end_process

LAST_ANSWERS_S: Final = 1.2
"""How long requests that were read may still be answered after the client closed stdin, seconds."""


class EndingReader:
    """Reads lines of text, and sees to it that the process ends soon after the last one."""

    def __init__(self, lines: IO[str], end: Callable[[], None] = end_process) -> None:
        self._lines = lines
        self._end = end

    def readline(self) -> str:
        """Return the next line, empty at the end."""
        line = self._lines.readline()
        if not line:
            timer = threading.Timer(LAST_ANSWERS_S, self._end)
            timer.daemon = True
            timer.start()
        return line
