"""A column-wise mirror of what decides whether a memory may be returned, and of what was remembered next to what.

It turns a filter into a mask over keys, so that the vector index filters before its cut. A mirror only: the store
checks every memory again before it is delivered. Used from the event loop only; the masks it hands out are never
changed.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from sidecar.domain.memory import MemoryState, MemoryType
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import CatalogRow
from sidecar.ports import KeyMask, Keys

_STATES: Final = tuple(MemoryState)
_TYPES: Final = tuple(MemoryType)
_ABSENT: Final = -1
_INITIAL_ROWS: Final = 1024
_CACHED_MASKS: Final = 16
_LONGEST_LOG: Final = 4_096
_MICROSECONDS: Final = 1_000_000
_NEIGHBOUR_STEPS: Final = (-2, -1, 1, 2)
_NO_RUN: Final = 0
_LONGEST_GAP_US: Final = 3600 * _MICROSECONDS
"""A session may go on for days; what was remembered hours apart belongs to other work."""


class MemoryCatalog:
    """Keeps one row a key. Rows that were purged, or never were, match no filter."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        # With how much of the log each has seen: a mask of a million rows is brought up to date, not made anew.
        self._masks: dict[MemoryFilter, tuple[KeyMask, int]] = {}
        self._log: list[int] = []
        self._size = 0
        self._owner = np.full(_INITIAL_ROWS, _ABSENT, dtype=np.int32)
        self._namespace = np.full(_INITIAL_ROWS, _ABSENT, dtype=np.int32)
        self._type = np.zeros(_INITIAL_ROWS, dtype=np.int8)
        self._state = np.zeros(_INITIAL_ROWS, dtype=np.int8)
        self._importance = np.zeros(_INITIAL_ROWS, dtype=np.float64)
        self._created = np.zeros(_INITIAL_ROWS, dtype=np.int64)
        # A run is what one owner's session put into one namespace; a place counts in it from 1.
        self._run = np.full(_INITIAL_ROWS, _NO_RUN, dtype=np.int64)
        self._place = np.zeros(_INITIAL_ROWS, dtype=np.int64)
        self._runs: dict[tuple[str, str, str], int] = {}
        self._run_lengths: list[int] = []

    def apply(self, rows: Iterable[CatalogRow]) -> None:
        """Take new or changed rows."""
        for row in rows:
            self._grow(row.key)
            self._owner[row.key] = self._code(row.owner)
            self._namespace[row.key] = self._code(row.namespace)
            self._type[row.key] = _TYPES.index(row.type)
            self._state[row.key] = _STATES.index(row.state)
            self._importance[row.key] = row.importance
            self._created[row.key] = int(row.created_at.timestamp() * _MICROSECONDS)
            if row.session and self._run[row.key] == _NO_RUN:
                self._run[row.key], self._place[row.key] = self._place_in_run(row)
            self._log.append(row.key)
        self._shorten_log()

    def remove(self, keys: Sequence[int]) -> None:
        """Forget purged rows."""
        for key in keys:
            if key < self._size:
                self._owner[key] = _ABSENT
                self._log.append(key)
        self._shorten_log()

    def mask(self, selection: MemoryFilter) -> KeyMask:
        """Return which keys a filter covers."""
        cached, seen = self._masks.get(selection, (None, 0))
        if cached is not None and seen == len(self._log):
            return cached
        if cached is None:
            mask = self._covered(selection, slice(0, self._size))
        else:
            mask = np.zeros(self._size, np.bool_)
            mask[: len(cached)] = cached
            changed = np.unique(np.array(self._log[seen:], np.int64))
            mask[changed] = self._covered(selection, changed)
        if len(self._masks) >= _CACHED_MASKS and selection not in self._masks:
            self._masks.clear()
        self._masks[selection] = mask, len(self._log)
        return mask

    def type_of(self, key: int) -> MemoryType:
        """Return the type of the memory with this key."""
        return _TYPES[int(self._type[key])]

    def created_us(self, key: int) -> int:
        """Return when the memory was created, in microseconds since 1970 UTC."""
        return int(self._created[key])

    def neighbours(self, keys: Iterable[int]) -> dict[int, tuple[int | None, ...]]:
        """Return for each key which others of these keys stand next to it: two before, before, after, two after.

        Next to each other stand memories of one owner and namespace that were remembered one after the other in one
        session, within an hour. Where no session is known, nothing stands next to anything.
        """
        # Words find a memory that was stored a moment ago, before its row is here.
        known = [key for key in keys if key < self._size and self._run[key] != _NO_RUN]
        places = {(int(self._run[key]), int(self._place[key])): key for key in known}
        found: dict[int, tuple[int | None, ...]] = {}
        for (run, place), key in places.items():
            near = [places.get((run, place + step)) for step in _NEIGHBOUR_STEPS]
            if any(other is not None for other in near):
                found[key] = tuple(n if n is not None and self._are_together(key, n) else None for n in near)
        return found

    def _are_together(self, key: int, other: int) -> bool:
        return bool(abs(self._created[key] - self._created[other]) <= _LONGEST_GAP_US)

    def _place_in_run(self, row: CatalogRow) -> tuple[int, int]:
        run = self._runs.setdefault((row.owner, row.namespace, row.session), len(self._runs) + 1)
        if run > len(self._run_lengths):
            self._run_lengths.append(0)
        self._run_lengths[run - 1] += 1
        return run, self._run_lengths[run - 1]

    def _shorten_log(self) -> None:
        if len(self._log) > _LONGEST_LOG:
            self._log.clear()
            self._masks.clear()

    def _covered(self, selection: MemoryFilter, rows: slice | Keys) -> KeyMask:
        """Return which of these rows a filter covers."""
        mask: KeyMask = self._owner[rows] == self._codes.get(selection.owner, _ABSENT - 1)
        if not selection.scope.covers_everything:
            codes = [self._codes.get(name, _ABSENT - 1) for name in selection.scope.names]
            mask &= np.isin(self._namespace[rows], codes)
        if selection.types:
            mask &= np.isin(self._type[rows], [_TYPES.index(t) for t in selection.types])
        mask &= np.isin(self._state[rows], [_STATES.index(s) for s in selection.states])
        if selection.min_importance > 0:
            mask &= self._importance[rows] >= selection.min_importance
        if selection.created_after is not None:
            mask &= self._created[rows] >= int(selection.created_after.timestamp() * _MICROSECONDS)
        if selection.created_before is not None:
            mask &= self._created[rows] < int(selection.created_before.timestamp() * _MICROSECONDS)
        return mask

    def _code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def _grow(self, key: int) -> None:
        if key >= len(self._owner):
            extra = max(key + 1, 2 * len(self._owner)) - len(self._owner)
            self._owner = np.concatenate([self._owner, np.full(extra, _ABSENT, dtype=np.int32)])
            self._namespace = np.concatenate([self._namespace, np.full(extra, _ABSENT, dtype=np.int32)])
            self._type = np.concatenate([self._type, np.zeros(extra, dtype=np.int8)])
            self._state = np.concatenate([self._state, np.zeros(extra, dtype=np.int8)])
            self._importance = np.concatenate([self._importance, np.zeros(extra)])
            self._created = np.concatenate([self._created, np.zeros(extra, dtype=np.int64)])
            self._run = np.concatenate([self._run, np.full(extra, _NO_RUN, dtype=np.int64)])
            self._place = np.concatenate([self._place, np.zeros(extra, dtype=np.int64)])
        self._size = max(self._size, key + 1)
