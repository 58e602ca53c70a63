"""Tasks of the event loop that are looked after: a failure is seen, tried again, and told in the end."""

import asyncio
from collections.abc import Callable

import pytest

from sidecar.errors import (
    SidecarError,
    StorageCorruptError,
    StorageFullError,
    StorageReadOnlyError,
    TooManyRequestsError,
)
from sidecar.server.background import RetryPolicy, SupervisedTask

QUICK = RetryPolicy(failures=3, backoff_s=0.001)


class Runs:
    """A task that fails so many times and then goes on, or returns."""

    def __init__(self, failures: int, *, goes_on: bool = False, error: Exception | None = None) -> None:
        self._left = failures
        self._error = error or ValueError("out of order")
        self._goes_on = goes_on
        self.count = 0

    async def run(self) -> None:
        self.count += 1
        if self._left:
            self._left -= 1
            raise self._error
        if self._goes_on:
            await asyncio.Event().wait()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def test_task_that_fails_is_started_again() -> None:
    """Once in a while is no problem that anybody must act on, but it is counted."""
    runs = Runs(2, goes_on=True)
    task = SupervisedTask("work", runs.run, consequence="nothing works", policy=QUICK)
    task.start()
    await until(lambda: runs.count == 3)
    assert (task.problem, task.failures) == ("", 2)
    await task.stop()


async def test_task_that_keeps_failing_is_given_up_and_told() -> None:
    """The problem says what is missing, why, and what to do."""
    runs = Runs(99)
    task = SupervisedTask("work", runs.run, consequence="nothing works", policy=QUICK)
    task.start()
    await until(lambda: "restart" in task.problem)
    assert task.problem == "nothing works: ValueError: out of order, 3 times in a row; `sidecar restart` tries again"
    assert runs.count == 3
    await task.stop()


@pytest.mark.parametrize(
    "error", [StorageFullError("/h/memories.db"), StorageReadOnlyError("/h/memories.db"), TooManyRequestsError("reads")]
)
async def test_disk_that_refuses_is_waited_for(error: SidecarError) -> None:
    """A full disk must not switch anything off until the next start: once there is space it goes on."""
    runs = Runs(20, goes_on=True, error=error)
    given_up: list[str] = []
    policy = RetryPolicy(failures=3, backoff_s=0.001, longest_backoff_s=0.002)
    task = SupervisedTask("work", runs.run, consequence="nothing works", policy=policy, on_give_up=given_up.append)
    task.start()
    await until(lambda: f"nothing works: {error.message}" in task.problem)
    await until(lambda: runs.count == 21)
    assert (task.problem, task.failures, given_up) == ("", 20, [])
    await task.stop()


async def test_damaged_database_is_not_waited_for() -> None:
    """It does not mend itself."""
    task = SupervisedTask(
        "work", Runs(99, error=StorageCorruptError("/h/memories.db")).run, consequence="x", policy=QUICK
    )
    task.start()
    await until(lambda: "restart" in task.problem)
    await task.stop()


async def test_whoever_takes_the_failure_tells_of_it() -> None:
    """Not twice, then."""
    told: list[str] = []
    task = SupervisedTask("work", Runs(99).run, consequence="x", policy=QUICK, on_give_up=told.append)
    task.start()
    await until(lambda: bool(told))
    assert "out of order" in told[0]
    assert task.problem == ""
    await task.stop()


async def test_stopping_ends_it_without_its_errors() -> None:
    """Whatever state it is in; what comes after must be closed as well."""
    for runs in (Runs(0), Runs(0, goes_on=True), Runs(99)):
        task = SupervisedTask("work", runs.run, consequence="x", policy=RetryPolicy(backoff_s=3600))
        task.start()
        await until(lambda runs=runs: runs.count == 1)  # type: ignore[misc]
        await task.stop()
        await task.stop()
