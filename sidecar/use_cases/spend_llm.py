"""Asks the language model within a hard daily budget, without secrets, and counts what came of it.

Every use of the model goes through here. What the budget does not allow is not sent; nothing waits for tomorrow.
"""

import asyncio
import json
import logging
from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Final

from sidecar.domain.llm import LlmAnswer, LlmBudget, LlmEndpoint, LlmRequest, LlmStatus
from sidecar.domain.text import normalise
from sidecar.errors import (
    InvalidInputError,
    LlmAnswerMalformedError,
    LlmBudgetSpentError,
    LlmUnavailableError,
    LlmUnreachableError,
)
from sidecar.ports import Clock, LanguageModel, LlmLedger, Redactor

log = logging.getLogger(__name__)

ANSWERED: Final = "answered"
MALFORMED: Final = "malformed"
UNAVAILABLE: Final = "unavailable"
OVER_BUDGET: Final = "over_budget"
REDACTED: Final = "redacted"
_COUNTERS: Final = (ANSWERED, MALFORMED, UNAVAILABLE, OVER_BUDGET, REDACTED)


class SpendLlm:
    """A `LanguageModel` that keeps to the budget; see the module.

    The most a call can cost is set aside before it is sent, and put right by what the provider counted. So a call that
    is cut off, by a crash too, stays counted in full.
    """

    def __init__(
        self, *, model: LanguageModel, ledger: LlmLedger, redactor: Redactor, budget: LlmBudget, clock: Clock
    ) -> None:
        self._model = model
        self._ledger = ledger
        self._redactor = redactor
        self._budget = budget
        self._clock = clock
        self._counters: Counter[str] = Counter(dict.fromkeys(_COUNTERS, 0))
        self._problem = ""

    @property
    def endpoint(self) -> LlmEndpoint:
        """See `LanguageModel.endpoint`."""
        return self._model.endpoint

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """See `LanguageModel.complete`.

        Raises:
            InvalidInputError: If the schema holds a secret: it cannot be redacted without changing its meaning.
            RedactionUnavailableError: If secrets cannot be looked for; nothing was sent.
        """
        clean, secret_count = await asyncio.to_thread(self._clean, request)
        self._counters[REDACTED] += secret_count
        day = self._clock.now().date()
        reserved_tokens = clean.most_tokens
        if not await self._ledger.reserve(day, reserved_tokens, self._budget):
            raise await self._budget_spent(day)
        try:
            answer = await self._model.complete(clean)
        except LlmUnreachableError as error:
            self._failed(UNAVAILABLE, error)
            await self._ledger.correct(day, calls=-1, tokens=-reserved_tokens)
            raise
        except LlmUnavailableError as error:
            # It may have been worked on, and be charged: the tokens stay set aside.
            self._failed(UNAVAILABLE, error)
            raise
        except asyncio.CancelledError:
            # Whoever asked waits no longer; the model may answer all the same, so the tokens stay set aside.
            self._counters[UNAVAILABLE] += 1
            self._problem = f"the language model at {self._model.endpoint.host} took longer than anybody waited"
            raise
        except LlmAnswerMalformedError as error:
            self._failed(MALFORMED, error)
            await self._settle(day, reserved_tokens, error.tokens)
            raise
        self._counters[ANSWERED] += 1
        self._problem = ""
        await self._settle(day, reserved_tokens, answer.tokens)
        return answer

    async def status(self) -> LlmStatus:
        """Return where texts go, and what was spent today."""
        spent = await self._ledger.spent(self._clock.now().date())
        return LlmStatus(
            endpoint=self._model.endpoint,
            budget=self._budget,
            spent_today=spent,
            counters=dict(self._counters),
            problem=self._problem,
        )

    async def close(self) -> None:
        """See `LanguageModel.close`."""
        await self._model.close()

    def _clean(self, request: LlmRequest) -> tuple[LlmRequest, int]:
        texts = [self._redactor.redact(normalise(text)) for text in (request.system, request.user)]
        if self._redactor.redact(json.dumps(request.schema, default=dict)).findings:
            raise InvalidInputError("schema", "one that holds a secret", "a schema without secrets")
        count = sum(finding.count for text in texts for finding in text.findings)
        return replace(request, system=texts[0].text, user=texts[1].text), count

    async def _budget_spent(self, day: date) -> LlmBudgetSpentError:
        self._counters[OVER_BUDGET] += 1
        spent = await self._ledger.spent(day)
        error = LlmBudgetSpentError(
            calls=spent.calls,
            tokens=spent.tokens,
            calls_a_day=self._budget.calls_a_day,
            tokens_a_day=self._budget.tokens_a_day,
        )
        self._problem = error.message
        return error

    async def _settle(self, day: date, reserved_tokens: int, used_tokens: int) -> None:
        """Put the tokens right; a provider that does not count leaves what was set aside."""
        if used_tokens:
            await self._ledger.correct(day, calls=0, tokens=used_tokens - reserved_tokens)

    def _failed(self, counter: str, error: LlmUnavailableError | LlmAnswerMalformedError) -> None:
        self._counters[counter] += 1
        self._problem = error.message
        log.warning("language model failed", extra={"reason": error.reason, "host": self._model.endpoint.host})
