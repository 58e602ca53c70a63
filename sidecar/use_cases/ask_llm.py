"""Asks the language model something that can do without an answer. What goes wrong becomes a reason, never an error."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.domain.llm import LlmRequest
from sidecar.domain.llm_prompt import DataFence
from sidecar.errors import (
    LlmAnswerMalformedError,
    LlmBudgetSpentError,
    LlmUnavailableError,
    RedactionUnavailableError,
    StorageError,
)
from sidecar.ports import Clock, LanguageModel

_FAILURES: Final = (
    LlmAnswerMalformedError,
    LlmBudgetSpentError,
    LlmUnavailableError,
    RedactionUnavailableError,
    StorageError,
)
_MARKER_BYTES: Final = 8

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LlmReply:
    """What came back.

    Attributes:
        fields: Of the answer, which fit the request's schema; None if there is none.
        problem: Why there is none, for a person; empty otherwise.
    """

    fields: Mapping[str, object] | None
    problem: str = ""


class AskLlm:
    """Asks within a time that whoever calls can wait for."""

    def __init__(self, *, model: LanguageModel, clock: Clock, wait_s: float) -> None:
        """Take what is needed.

        Args:
            model: Keeps to the budget by itself.
            clock: For chance.
            wait_s: Longest wait for an answer, seconds.
        """
        self._model = model
        self._clock = clock
        self._wait_s = wait_s

    async def ask(self, question: Callable[[DataFence], LlmRequest]) -> LlmReply:
        """Return the answer to a question, which is put with a fence of its own."""
        request = question(DataFence(self._clock.random_bytes(_MARKER_BYTES).hex()))
        try:
            async with asyncio.timeout(self._wait_s):
                answer = await self._model.complete(request)
        except _FAILURES as error:
            log.info("went on without the language model", extra={"reason": error.reason, "question": request.name})
            return LlmReply(None, error.message)
        except TimeoutError:
            log.info("went on without the language model", extra={"reason": "TIMEOUT", "question": request.name})
            return LlmReply(None, f"the language model gave no answer within {self._wait_s:g} s")
        return LlmReply(answer.fields)
