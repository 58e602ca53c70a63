"""What a language model is asked and answers, and what it may cost. Values only; `llm_answer` reads the answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sidecar.domain.llm_schema import check_schema
from sidecar.errors import InvalidInputError

MAX_ANSWER_TOKENS: Final = 8_192
# Roles, the chat template and the words that providers put around a tool: Anthropic says up to 800 for the last.
_FRAME_TOKENS: Final = 1_024


class LlmProvider(StrEnum):
    """Which interface a language model is asked through; `off` asks none."""

    OFF = "off"
    OPENAI_COMPATIBLE = "openai-compatible"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class LlmEndpoint:
    """Where texts go when a language model is asked; what status shows.

    Attributes:
        model: Name as the provider knows it.
        host: Host and port that requests are sent to, such as `127.0.0.1:11434`.
        is_local: Whether that is this machine, by its loopback address or `localhost`.
    """

    provider: LlmProvider
    model: str
    host: str
    is_local: bool


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """One question. Nothing of it may hold a secret: whoever spends the budget redacts first.

    Attributes:
        system: What the model is to do; ours.
        user: What it is to judge; other people's words.
        schema: JSON schema of the answer, an object, within what `check_schema` knows.
        max_tokens: Longest answer, 1 to 8192.
        name: Lower-case name of the answer, such as `verdict`.

    Raises:
        InvalidInputError: If schema, limit or name is not of that kind.
    """

    system: str
    user: str
    schema: Mapping[str, object]
    max_tokens: int = 512
    name: str = "answer"

    def __post_init__(self) -> None:
        check_schema(self.schema)
        if not 1 <= self.max_tokens <= MAX_ANSWER_TOKENS:
            raise InvalidInputError("max_tokens", self.max_tokens, f"a whole number from 1 to {MAX_ANSWER_TOKENS}")
        if not (self.name.isascii() and self.name.isidentifier() and self.name.islower()):
            raise InvalidInputError("name", self.name, "lower-case ASCII letters, digits and _")

    @property
    def most_tokens(self) -> int:
        """More than it can cost, in and out: no tokenizer in use makes more tokens than a text has bytes."""
        # The schema is sent twice, as a constraint and in words.
        sent = len(self.system.encode()) + len(self.user.encode()) + 2 * len(repr(self.schema).encode())
        return sent + _FRAME_TOKENS + self.max_tokens


@dataclass(frozen=True, slots=True)
class LlmAnswer:
    """An answer that fits the request's schema.

    Attributes:
        fields: Exactly the properties that the schema names; optional ones may be missing.
        tokens_in: What the provider counted; 0 with `tokens_out` if it did not say.
        model: Which model the provider says answered.
    """

    fields: Mapping[str, object]
    tokens_in: int
    tokens_out: int
    model: str

    @property
    def tokens(self) -> int:
        """What it cost, in and out."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class LlmBudget:
    """What may be spent in a day (UTC). 0 allows nothing.

    Raises:
        InvalidInputError: If one is negative.
    """

    calls_a_day: int
    tokens_a_day: int

    def __post_init__(self) -> None:
        for name, value in (("llm_calls_a_day", self.calls_a_day), ("llm_tokens_a_day", self.tokens_a_day)):
            if value < 0:
                raise InvalidInputError(name, value, "0 or more")


@dataclass(frozen=True, slots=True)
class LlmSpending:
    """What was spent in a day, what running calls have set aside included."""

    calls: int = 0
    tokens: int = 0

    def allows(self, tokens: int, budget: LlmBudget) -> bool:
        """Tell whether one more call of at most so many tokens stays within the budget."""
        return self.calls < budget.calls_a_day and self.tokens + tokens <= budget.tokens_a_day


@dataclass(frozen=True, slots=True)
class LlmStatus:
    """How the language model is used.

    Attributes:
        endpoint: Where texts go; None if none is set up, and then nothing goes anywhere.
        counters: Since the start: answered, malformed, unavailable, over_budget, redacted (secrets taken out).
        problem: What the last call failed of; empty after a good one.
    """

    endpoint: LlmEndpoint | None
    budget: LlmBudget
    spent_today: LlmSpending
    counters: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
