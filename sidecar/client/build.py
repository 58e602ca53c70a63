"""Which build of the sidecar this is, and how two builds get on. Compares versions; does no I/O."""

import re
from dataclasses import dataclass
from typing import Final

from sidecar import __version__

PROTOCOL: Final = 1
"""Major version of the contract in proto/; client and sidecar must agree on it."""

_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Build:
    """A version of the package and the protocol that it speaks."""

    version: str
    protocol: int

    def is_newer_than(self, other: "Build") -> bool:
        """Return whether this build may replace the other; builds that differ in a suffix only may not."""
        return (self.protocol, _release(self.version)) > (other.protocol, _release(other.version))


THIS_BUILD: Final = Build(version=__version__, protocol=PROTOCOL)


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers, `1.10.0rc2` as (1, 10), so that 1.2 and 1.2.0 are equal."""
    found = _NUMBERS.match(version)
    numbers = [int(part) for part in found.group().split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
