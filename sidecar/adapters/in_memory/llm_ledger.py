"""A ledger of the language model's cost that forgets with the process."""

from datetime import date

from sidecar.domain.llm import LlmBudget, LlmSpending


class InMemoryLlmLedger:
    """See `LlmLedger`."""

    def __init__(self) -> None:
        self._days: dict[date, LlmSpending] = {}

    async def reserve(self, day: date, tokens: int, budget: LlmBudget) -> bool:
        """See `LlmLedger.reserve`."""
        spent = await self.spent(day)
        if not spent.allows(tokens, budget):
            return False
        self._days[day] = LlmSpending(spent.calls + 1, spent.tokens + tokens)
        return True

    async def correct(self, day: date, *, calls: int, tokens: int) -> None:
        """See `LlmLedger.correct`."""
        spent = await self.spent(day)
        self._days[day] = LlmSpending(max(spent.calls + calls, 0), max(spent.tokens + tokens, 0))

    async def spent(self, day: date) -> LlmSpending:
        """See `LlmLedger.spent`."""
        return self._days.get(day, LlmSpending())
