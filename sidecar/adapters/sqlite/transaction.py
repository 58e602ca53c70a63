"""What an operation of the writer works with. Knows no threads and no SQL."""

from collections.abc import Callable

import apsw


class Transaction:
    """What an operation works with: the connection, and what is to happen when the whole group is done."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._before_commit: list[Callable[[], None]] = []
        self._after_commit: list[Callable[[], None]] = []

    def before_commit(self, step: Callable[[], None]) -> None:
        """Run a step at the end of the group, outside of any savepoint. FTS5 writes a segment at each savepoint."""
        self._before_commit.append(step)

    def after_commit(self, step: Callable[[], None]) -> None:
        """Run a step on the writer's thread once it is durable and before it is acknowledged.

        A failure is counted and logged; what was committed is acknowledged all the same.
        """
        self._after_commit.append(step)

    def run_before_commit(self) -> None:
        """Run what was asked for, in order."""
        for step in self._before_commit:
            step()

    def run_after_commit(self) -> list[Exception]:
        """Run what was asked for, in order, and return what failed."""
        failures = []
        for step in self._after_commit:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the group is durable: its callers must be told so whatever fails
                failures.append(error)
        return failures

    def mark(self) -> tuple[int, int]:
        """Return a point to fall back to."""
        return len(self._before_commit), len(self._after_commit)

    def fall_back(self, mark: tuple[int, int]) -> None:
        """Forget the steps that were asked for since the mark."""
        del self._before_commit[mark[0] :]
        del self._after_commit[mark[1] :]
