"""Standard streams that are closed, or that take nothing more."""

import errno
import os
import sys
from typing import Final, TextIO

_REFUSED: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def open_stderr() -> None:
    """See to it that notes can be written, if only to nowhere: without a stderr nobody wants them."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the process


def problem_of_stdout(failure: Exception) -> str:
    """Return why stdout did not take the answer, and silence it then; empty if the failure has another reason.

    Commands raise errors of ours for the disk under the data folder, so that these are of stdout.
    """
    if not isinstance(failure, OSError) or failure.errno not in _REFUSED:
        return ""
    _silence(sys.stdout)
    return failure.strerror or str(failure)


def settle() -> None:
    """Write out what both streams still hold, and silence one that takes nothing.

    The end of the process would fail on it once more, and Python's own exit code would replace ours.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            _silence(stream)


def _silence(stream: TextIO) -> None:
    """Send what is left in a stream to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
