"""Keeps stdin and stdout for the protocol alone.

The client takes all that comes on stdout for JSON-RPC, so one stray print breaks the connection. The real descriptors
are moved away at the level of the operating system: what Python, C code or a child writes to stdout goes to stderr.
"""

import os
import sys
from dataclasses import dataclass
from typing import Final, Self

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2


@dataclass(frozen=True)
class Wire:
    """The two ends of the connection to the client.

    Attributes:
        incoming: Descriptor to read from.
        outgoing: Descriptor to write to.
    """

    incoming: int
    outgoing: int

    @classmethod
    def take(cls) -> Self:
        """Move the wire away from the standard descriptors; stdin is empty and stdout is stderr from then on."""
        sys.stdout.flush()
        wire = cls(incoming=os.dup(_STDIN), outgoing=os.dup(_STDOUT))
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(nothing, _STDIN)
            os.dup2(_STDERR if _is_open(_STDERR) else nothing, _STDOUT)
        finally:
            os.close(nothing)
        return wire


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
