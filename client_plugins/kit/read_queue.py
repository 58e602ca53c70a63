"""Which file is read next: what changes now before what is old, the newest first, one batch each in turn. Pure."""

from collections import deque
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

# Of so many turns one goes to the old files, even while others change all the time.
_TURNS: Final = 4


class ReadQueue(Generic[Item]):
    """Two lines of items that stand in it once each."""

    def __init__(self) -> None:
        self._live: deque[Item] = deque()
        self._old: deque[Item] = deque()
        self._waiting: set[Item] = set()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add_live(self, item: Item) -> None:
        """Put in what has just changed."""
        if item not in self._waiting:
            self._waiting.add(item)
            self._live.append(item)

    def add_old(self, items_newest_first: Iterable[Item]) -> None:
        """Put in what a scan found."""
        for item in items_newest_first:
            if item not in self._waiting:
                self._waiting.add(item)
                self._old.append(item)

    def take(self) -> tuple[Item, bool]:
        """Take the next item out, and whether it was a live one. It MUST NOT be empty."""
        self._turn += 1
        from_old = self._old and (not self._live or self._turn % _TURNS == 0)
        item = (self._old if from_old else self._live).popleft()
        self._waiting.discard(item)
        return item, not from_old

    def put_back(self, item: Item, *, is_live: bool) -> None:
        """Put an item that has more to read behind the others of its line."""
        if is_live:
            self.add_live(item)
        else:
            self.add_old([item])
