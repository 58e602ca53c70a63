"""Standard streams that are closed, take nothing more, or cannot express every character."""

import codecs
import errno
import io
import os
import sys
from typing import Final, TextIO

_HANDLER: Final = "sidecar-plain-letters"
_PLAIN: Final = {"…": "...", "×": "x", "→": "->", "—": "-", "–": "-", "“": '"', "”": '"', "‘": "'", "’": "'", "·": "."}
_REFUSED: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def open_stderr() -> None:
    """See to it that notes can be written, if only to nowhere: without a stderr nobody wants them."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - lives as long as the process


def accept_every_text() -> None:
    """See to it that no character makes writing fail, whatever the encoding of a terminal or a file.

    What the encoding lacks is written in plain letters where there are such, else by its number.
    """
    codecs.register_error(_HANDLER, _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors=_HANDLER)


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


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(each) or _by_number(each) for each in lacking), error.end


def _by_number(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def _silence(stream: TextIO) -> None:
    """Send what is left in a stream to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
