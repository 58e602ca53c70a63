"""Errors of the language model, which is optional: whoever asks it goes on without."""

from sidecar.errors.availability import UnavailableError
from sidecar.errors.state import StateConflictError


class LlmUnavailableError(UnavailableError):
    """The language model gave no answer; the request may have been worked on and be charged."""

    reason = "LLM_UNAVAILABLE"

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"the language model at {host} gave no answer: {problem}", host=host)


class JudgeUnavailableError(UnavailableError):
    """The judge of usefulness cannot judge now; what waits for it keeps waiting."""

    reason = "JUDGE_UNAVAILABLE"

    def __init__(self, judge: str, problem: str) -> None:
        super().__init__(f"the judge {judge} cannot judge now: {problem}", judge=judge)


class LlmUnreachableError(LlmUnavailableError):
    """No connection to the language model came about, so nothing was sent."""

    reason = "LLM_UNREACHABLE"


class LlmAnswerMalformedError(UnavailableError):
    """The language model answered something that does not fit the schema; the answer was dropped."""

    reason = "LLM_ANSWER_MALFORMED"

    def __init__(self, host: str, problem: str, *, tokens: int = 0) -> None:
        super().__init__(
            f"the answer of the language model at {host} was dropped: {problem}", host=host, tokens=str(tokens)
        )

    @property
    def tokens(self) -> int:
        """Tokens that the answer cost, in and out; 0 if it did not say."""
        told = self.metadata.get("tokens", "0")
        return int(told) if told.isdecimal() else 0


class LlmBudgetSpentError(StateConflictError):
    """The day's budget does not allow this call; nothing was sent."""

    reason = "LLM_BUDGET_SPENT"

    def __init__(self, *, calls: int, tokens: int, calls_a_day: int, tokens_a_day: int) -> None:
        super().__init__(
            f"the language model's budget of today has no room for this call: {calls} of {calls_a_day} calls and "
            f"{tokens} of {tokens_a_day} tokens are spent or set aside. It is new at 00:00 UTC; "
            "llm_calls_a_day and llm_tokens_a_day set it",
            calls=str(calls),
            tokens=str(tokens),
        )
