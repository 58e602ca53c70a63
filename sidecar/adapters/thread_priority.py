"""Lets a thread that works in the background give way to those that somebody waits for."""

import contextlib
import os
import sys
import threading


def give_way(niceness: int) -> None:
    """Lower the priority of the calling thread for good, where the system schedules threads by themselves.

    Args:
        niceness: 1 to 19; each step leaves it about a fifth less of a busy processor.
    """
    # Elsewhere the call would change the whole process.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
