"""For processes that the sidecar keeps: they end when it does, however it ended."""

import os
import sys
import threading
from collections.abc import Callable


def call_when_parent_ends(on_end: Callable[[], None]) -> None:
    """Call `on_end` in a thread of its own once stdin, whose other end the parent holds, is closed.

    The kernel closes it also when the parent is killed, which no signal to us would tell on every system.
    """
    descriptor = sys.stdin.fileno()

    def wait() -> None:
        while os.read(descriptor, 4096):
            # The parent sends nothing; whatever comes is not for us.
            pass
        on_end()

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()
