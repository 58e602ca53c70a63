"""Rows of what the language model cost, a day each. Asks no model."""

from datetime import date
from functools import partial
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import fetch_one
from sidecar.adapters.sqlite.readers import Readers
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.writer import Writer
from sidecar.domain.llm import LlmBudget, LlmSpending

_ADD: Final = (
    "INSERT INTO llm_spending (day, calls, tokens) VALUES (?1, max(?2, 0), max(?3, 0)) "
    "ON CONFLICT (day) DO UPDATE SET calls = max(calls + ?2, 0), tokens = max(tokens + ?3, 0)"
)


class SqliteLlmLedger:
    """See `LlmLedger`. Works through the writer and the readers of a store, which outlives it."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def reserve(self, day: date, tokens: int, budget: LlmBudget) -> bool:
        """See `LlmLedger.reserve`."""
        return await self._writer.run(partial(_reserve, day=day, tokens=tokens, budget=budget))

    async def correct(self, day: date, *, calls: int, tokens: int) -> None:
        """See `LlmLedger.correct`."""
        await self._writer.run(partial(_add, day=day, calls=calls, tokens=tokens))

    async def spent(self, day: date) -> LlmSpending:
        """See `LlmLedger.spent`."""
        return await self._readers.run(partial(_spent, day=day))


def _reserve(transaction: Transaction, day: date, tokens: int, budget: LlmBudget) -> bool:
    # The one writer runs one operation at a time, so that nobody spends between the look and the count.
    if not _spent(transaction.connection, day).allows(tokens, budget):
        return False
    _add(transaction, day, calls=1, tokens=tokens)
    return True


def _add(transaction: Transaction, day: date, calls: int, tokens: int) -> None:
    transaction.connection.execute(_ADD, (day.isoformat(), calls, tokens))


def _spent(connection: apsw.Connection, day: date) -> LlmSpending:
    row = fetch_one(connection, "SELECT calls, tokens FROM llm_spending WHERE day = ?", (day.isoformat(),))
    return LlmSpending() if row is None else LlmSpending(row[0], row[1])
