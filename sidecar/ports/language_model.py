"""The seams of the optional language model: the model itself, and the ledger of what it cost."""

from datetime import date
from typing import Protocol

from sidecar.domain.llm import LlmAnswer, LlmBudget, LlmEndpoint, LlmRequest, LlmSpending


class LanguageModel(Protocol):
    """Answers questions in a given form. Never asked inside a call that stores or recalls."""

    @property
    def endpoint(self) -> LlmEndpoint:
        """Where texts go when it is asked."""
        ...

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """Return an answer that fits the request's schema.

        Raises:
            LlmUnavailableError: It gave none; with `LlmUnreachableError` nothing was even sent.
            LlmAnswerMalformedError: It gave one that does not fit; that one was dropped.
            LlmBudgetSpentError: Nothing was sent.
        """
        ...

    async def close(self) -> None:
        """Free what it holds. It MUST NOT be asked again afterwards."""
        ...


class LlmLedger(Protocol):
    """Keeps what the language model cost each day (UTC), across restarts.

    Raises (every method):
        StorageError: Nothing was changed, and nothing may be sent then.
    """

    async def reserve(self, day: date, tokens: int, budget: LlmBudget) -> bool:
        """Count one call and so many tokens if `LlmSpending.allows` says so; one step, durable when it returns."""
        ...

    async def correct(self, day: date, *, calls: int, tokens: int) -> None:
        """Add to a day's figures what a call turned out to be more, or less where negative; never below 0."""
        ...

    async def spent(self, day: date) -> LlmSpending:
        """Return a day's figures, 0 for a day without a call."""
        ...
