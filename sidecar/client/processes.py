"""Ends a process that is surely the one that was meant. A pid alone is not: it may have been given away again."""

import os
import time
from typing import Final

from sidecar.client.endpoint import Holder

# The system's boot time, which start times are counted from, is corrected by a second now and then.
_START_TOLERANCE_S: Final = 2.0
_POLL_S: Final = 0.05


def started_at(pid: int | None = None) -> float:
    """Return when a process was started, seconds since the epoch; without a pid, this one."""
    # 20 ms to import, and no client that finds a sidecar needs it.
    import psutil  # noqa: PLC0415

    return psutil.Process(os.getpid() if pid is None else pid).create_time()


def is_alive(holder: Holder) -> bool:
    """Return whether exactly this process still runs; one that ended but was not waited for does not."""
    import psutil  # noqa: PLC0415

    try:
        process = psutil.Process(holder.pid)
        is_same = abs(process.create_time() - holder.started_at) <= _START_TOLERANCE_S
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def end_process(holder: Holder, *, wait_s: float) -> bool:
    """Ask exactly this process to end, then make it; return whether it is gone.

    Args:
        holder: Which process.
        wait_s: How long it may take to end by itself, and again after it was made to, seconds.
    """
    import psutil  # noqa: PLC0415

    for send in (psutil.Process.terminate, psutil.Process.kill):
        if not is_alive(holder):
            return True
        try:
            process = psutil.Process(holder.pid)
            if send is psutil.Process.terminate and process.status() == psutil.STATUS_STOPPED:
                # It would not see the request before somebody lets it go on.
                continue
            send(process)
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return False
        deadline = time.monotonic() + wait_s
        while is_alive(holder) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    return not is_alive(holder)
