"""What every ledger of the language model's cost must do."""

import asyncio
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path

import pytest

from sidecar.adapters.in_memory.llm_ledger import InMemoryLlmLedger
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.domain.llm import LlmBudget, LlmSpending
from sidecar.ports import LlmLedger
from tests.store_builders import SetClock

DAY, NEXT_DAY = date(2026, 1, 31), date(2026, 2, 1)
WIDE = LlmBudget(1_000, 1_000_000)


@pytest.fixture(params=["in-memory", "sqlite"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LlmLedger]:
    """Each adapter, empty."""
    if request.param == "in-memory":
        yield InMemoryLlmLedger()
        return
    store = SqliteStore.open(tmp_path / "memories.db", clock=SetClock())
    yield store.llm_ledger
    await store.close()


async def test_days_are_kept_apart(ledger: LlmLedger) -> None:
    """A new day has its whole budget."""
    assert await ledger.reserve(DAY, 10, WIDE)
    assert await ledger.spent(DAY) == LlmSpending(1, 10)
    assert await ledger.spent(NEXT_DAY) == LlmSpending()


async def test_refused_reservation_counts_nothing(ledger: LlmLedger) -> None:
    """What is not sent costs nothing, and both limits are inclusive."""
    budget = LlmBudget(2, 100)
    assert await ledger.reserve(DAY, 60, budget)
    assert not await ledger.reserve(DAY, 41, budget)
    assert await ledger.reserve(DAY, 40, budget)
    assert not await ledger.reserve(DAY, 0, budget)
    assert await ledger.spent(DAY) == LlmSpending(2, 100)


async def test_reservations_at_once_never_pass_the_budget(ledger: LlmLedger) -> None:
    """Looking and counting are one step."""
    budget = LlmBudget(1_000, 100)
    granted = await asyncio.gather(*(ledger.reserve(DAY, 30, budget) for _ in range(20)))
    assert sum(granted) == 3
    assert await ledger.spent(DAY) == LlmSpending(3, 90)


async def test_correction_goes_both_ways_but_never_below_zero(ledger: LlmLedger) -> None:
    """A correction that comes twice must not make room that was never there."""
    await ledger.reserve(DAY, 10, WIDE)
    await ledger.correct(DAY, calls=0, tokens=5)
    assert await ledger.spent(DAY) == LlmSpending(1, 15)
    await ledger.correct(DAY, calls=-2, tokens=-50)
    assert await ledger.spent(DAY) == LlmSpending(0, 0)


async def test_correction_of_a_day_without_a_call_never_goes_below_zero(ledger: LlmLedger) -> None:
    """A call that ends after midnight corrects the day that it began in, which somebody may have emptied."""
    await ledger.correct(DAY, calls=-1, tokens=-10)
    assert await ledger.spent(DAY) == LlmSpending()


async def test_spending_survives_a_restart(tmp_path: Path) -> None:
    """Whoever restarts the sidecar gets no second budget."""
    path = tmp_path / "memories.db"
    store = SqliteStore.open(path, clock=SetClock())
    assert await store.llm_ledger.reserve(DAY, 40, LlmBudget(1, 100))
    await store.close()
    again = SqliteStore.open(path, clock=SetClock())
    assert await again.llm_ledger.spent(DAY) == LlmSpending(1, 40)
    assert not await again.llm_ledger.reserve(DAY, 1, LlmBudget(1, 100))
    await again.close()
