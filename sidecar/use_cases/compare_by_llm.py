"""Has the language model compare a memory with those near it about which no rule decided. Relates nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sidecar.domain.llm_contradictions import DifferingParts, contradiction_request, read_contradictions
from sidecar.domain.memory import Memory
from sidecar.use_cases.ask_llm import AskLlm

MAX_PAIRS: Final = 10
"""Memories in one question; with more of them models begin to mix them up."""

_WHAT: Final = "what only a language model could tell"
NO_MODEL: Final = f"{_WHAT}: none is asked, rules alone compared"


@dataclass(frozen=True, slots=True)
class LlmComparison:
    """What the model said.

    Attributes:
        contradicting: By the other memory's id.
        decided_ids: Memories of which it said something definite, either way.
        not_checked: What it was not asked, or did not tell, as phrases for a person.
    """

    contradicting: Mapping[str, DifferingParts] = field(default_factory=dict)
    decided_ids: frozenset[str] = frozenset()
    not_checked: tuple[str, ...] = ()


class CompareByLlm:
    """Compares memories by meaning, where there is a language model."""

    def __init__(self, llm: AskLlm | None) -> None:
        """Take the model; None if there is none, or it is not to be asked this."""
        self._llm = llm

    async def run(self, memory: Memory, others: Sequence[Memory]) -> LlmComparison:
        """Return what the model says of these pairs, the nearest of which are asked about."""
        if self._llm is None:
            return LlmComparison(not_checked=(NO_MODEL,))
        asked = others[:MAX_PAIRS]
        if not asked:
            return LlmComparison()
        texts = [other.content for other in asked]
        reply = await self._llm.ask(lambda fence: contradiction_request(fence, memory.content, texts))
        if reply.fields is None:
            return LlmComparison(not_checked=(f"{_WHAT}: {reply.problem}",))
        answers = read_contradictions(reply.fields, memory.content, texts)
        undecided = [f"{asked[place].id}: the language model was not sure" for place in answers.undecided]
        beyond = len(others) - len(asked)
        left_out = [f"{_WHAT} of {beyond} more: it is asked about {MAX_PAIRS} at once"] if beyond else []
        return LlmComparison(
            contradicting={asked[place].id: parts for place, parts in answers.contradicting.items()},
            decided_ids=frozenset(o.id for place, o in enumerate(asked) if place not in answers.undecided),
            not_checked=(*undecided, *left_out),
        )
