"""Finds out whether file events are missing: a changed file of which no event told until the scan after. Pure."""

from pathlib import Path
from typing import Final

_PROOF: Final = 2


class Blindness:
    """Compares what scans find with what events told."""

    def __init__(self) -> None:
        self._suspects: set[Path] = set()
        self._noticed: set[Path] = set()
        self._times = 0

    @property
    def is_proven(self) -> bool:
        """Whether watching anew did not help: from then on only scans count."""
        return self._times >= _PROOF

    def noticed(self, paths: set[Path]) -> None:
        """Take in what events told of."""
        self._noticed |= paths

    def grows(self, changed: set[Path]) -> bool:
        """Take in what a scan found changed; return whether, of what the scan before found, no event has come since.

        An event may still be on its way while the scan runs, hence the delay by one scan.
        """
        has_missed = bool(self._suspects - self._noticed)
        self._suspects = changed - self._noticed
        self._noticed = set()
        self._times += has_missed
        return has_missed
