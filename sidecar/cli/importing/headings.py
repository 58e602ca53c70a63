"""What the headings above a note tell about it: its context in words, and what kind of memory it is."""

import re
from collections.abc import Sequence
from typing import Final

from sidecar.domain.memory import MemoryType

# The first line whose word is in a heading decides. Golden rules are never made by an import: they are earned.
_WORDS: Final[tuple[tuple[MemoryType, str], ...]] = (
    (MemoryType.GOTCHA, r"gotchas?|pitfalls?|caveats?|known issues?|troubleshooting|quirks?|watch out"),
    (MemoryType.OPEN_QUESTION, r"open questions?|questions?|unknowns?"),
    (MemoryType.PREFERENCE, r"preferences?|likes?|dislikes?|about me|about the user|feedback"),
    (MemoryType.DECISION, r"decisions?|adrs?|choices"),
    (MemoryType.TASK, r"tasks?|to-?dos?|next steps?|roadmap|backlog"),
    (MemoryType.PATTERN, r"patterns?|recipes?"),
    (MemoryType.CONVENTION, r"conventions?|styles?|guidelines?|rules?|standards?|naming|workflow"),
    (MemoryType.REFERENCE, r"references?|links?|resources|urls?|contacts?"),
    (MemoryType.FACT, r"facts?|architecture|overview|structure|layout|environment|setup|commands?|stack"),
)
_PATTERNS: Final = tuple((kind, re.compile(rf"\b(?:{words})\b")) for kind, words in _WORDS)


def type_below(headings: Sequence[str], *, default: MemoryType) -> MemoryType:
    """Return the type that the nearest telling heading names, else the default."""
    for heading in reversed(headings):
        lowered = heading.lower()
        found = next((kind for kind, pattern in _PATTERNS if pattern.search(lowered)), None)
        if found is not None:
            return found
    return default


def context_of(headings: Sequence[str]) -> str:
    """Return the headings in one line, outermost first."""
    return " > ".join(headings)
