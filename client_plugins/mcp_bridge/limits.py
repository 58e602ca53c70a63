"""How much a client lets its model see of one result. What is longer is cut by the client, in the midst of a fence."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """Limits of a context.

    Attributes:
        characters: Most of the whole result, as JSON has it.
        max_tokens: Most that may be asked for besides golden rules.
        default_tokens: What is asked for where the agent says nothing; 0 for the setting `context_tokens`.
    """

    characters: int
    max_tokens: int
    default_tokens: int


MAX_TOKENS: Final = 6_000

# Claude Code moves what is over 25,000 tokens to a file, and warns from 10,000 on; others are not known to cut.
ROOMY: Final = ContextLimits(characters=38_000, max_tokens=MAX_TOKENS, default_tokens=0)

# Codex cuts what the model sees at 12,000 characters, and its own frame needs some of them: 1,500 tokens, of four
# characters each, leave room for golden rules.
_CUTTING: Final = {"codex": ContextLimits(characters=10_000, max_tokens=2_000, default_tokens=1_500)}


def context_limits(client: str) -> ContextLimits:
    """Return the limits of a client, named as its transcripts are."""
    return _CUTTING.get(client, ROOMY)
