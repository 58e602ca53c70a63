"""What was begun is finished, although whoever asked for it stops waiting."""

import asyncio

import pytest

from sidecar.use_cases.completion import Completion


async def test_cancelled_caller_does_not_stop_the_work() -> None:
    """The second half of the work is done all the same."""
    completion = Completion()
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> str:
        begun.set()
        await go_on.wait()
        done.set()
        return "done"

    caller = asyncio.create_task(completion.run(work()))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not done.is_set()
    go_on.set()
    await completion.finish()
    assert done.is_set()


async def test_result_and_error_reach_the_caller() -> None:
    """As if it had been awaited directly."""
    completion = Completion()

    async def fail() -> None:
        raise ValueError("no")

    async def succeed() -> int:
        return 7

    assert await completion.run(succeed()) == 7
    with pytest.raises(ValueError, match="no"):
        await completion.run(fail())
    await completion.finish()
