"""Ends the bridge when its client is gone, whatever it is doing then. Orphaned bridges would add up."""

import os
import threading
import time
from collections.abc import Callable
from typing import IO, Final

LAST_ANSWERS_S: Final = 1.2
"""How long requests that were read may still be answered after the client closed stdin, seconds."""

_POLL_S: Final = 0.4


def end_process() -> None:
    """End this process now; no thread that waits for the sidecar can keep it."""
    os._exit(0)


def end_with_parent(end: Callable[[], None] = end_process) -> None:
    """Watch the parent in a thread and end when it dies; stdin would tell only if nobody else held its other end."""
    parent = os.getppid()

    def watch() -> None:
        # An orphan is given to another process, so its parent id changes.
        while os.getppid() == parent:
            time.sleep(_POLL_S)
        end()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


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
