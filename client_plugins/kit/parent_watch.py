"""Ends a bridge when the client that started it is gone, whatever it is doing then. Orphaned bridges would add up."""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

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
