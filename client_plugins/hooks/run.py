"""The program that clients run: `python -I -S run.py <client> --home <data folder>`, the payload on stdin.

Ends with 0 before half a second is over, whatever happens: a client waits for its hooks, and takes any other code, or
words on stdout that are no JSON, for an objection. Site-packages are not there; see docs/decisions on hooks.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

# The interpreter itself takes some of the half second before this runs, more on a busy machine.
_END_AFTER_S: Final = 0.38


def main(arguments: Sequence[str]) -> NoReturn:
    """Do what the hook is for, and end the process with 0."""
    _end_in_time()
    try:
        from client_plugins.hooks.program import run  # noqa: PLC0415 - may take long on a slow disk

        run(arguments)
    finally:
        # At once, without a traceback or the interpreter's tidying up, whatever `run` raised; it has kept a note of it.
        os._exit(0)


def _end_in_time() -> None:
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, _END_AFTER_S)
        return
    import threading  # noqa: PLC0415 - only where there are no alarms

    end = threading.Timer(_END_AFTER_S, os._exit, (0,))
    end.daemon = True
    end.start()


if __name__ == "__main__":
    # Last, so that what is installed beside us takes the place of nothing in the standard library.
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    main(sys.argv[1:])
