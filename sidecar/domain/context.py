"""Builds the context an agent starts with: which memories, in which order, within how many tokens. Fetches nothing.

Golden rules come first and take nothing of the budget, but only so many of them. The others are chosen by score, and
shown by section.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import log1p
from typing import Final, Protocol

from sidecar.domain.fencing import Fence
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Memory, MemoryType, Provenance
from sidecar.domain.namespace import PROJECT_PREFIX
from sidecar.domain.ranking import provenance_factor
from sidecar.domain.reinforcement import NEUTRAL
from sidecar.errors import InvalidInputError

DEFAULT_TOKEN_BUDGET: Final = 4_000
DEFAULT_MAX_GOLDEN_RULES: Final = 12
DEFAULT_ENTRY_CHARACTERS: Final = 2_000
CHARACTERS_PER_TOKEN: Final = 4
HALF_LIFE_DAYS: Final = 7.0
OWN_PROJECT_FACTOR: Final = 3.0
DEFAULT_MACHINE_WEIGHT: Final = 0.9

TITLE: Final = "# Memories\n"
GOLDEN_SECTION: Final = "Golden Rules"
RECENT_SECTION: Final = "Recent"

_RULES_OF_THUMB: Final = "Patterns, Conventions, Gotchas"
_SECTION_BY_TYPE: Final = {
    MemoryType.PREFERENCE: "Preferences",
    MemoryType.DECISION: "Decisions",
    MemoryType.PATTERN: _RULES_OF_THUMB,
    MemoryType.CONVENTION: _RULES_OF_THUMB,
    MemoryType.GOTCHA: _RULES_OF_THUMB,
    MemoryType.FACT: "Facts",
    MemoryType.REFERENCE: "Facts",
}
SECTIONS: Final = (GOLDEN_SECTION, *dict.fromkeys(_SECTION_BY_TYPE.values()), RECENT_SECTION)
"""In the order in which they are shown."""

_SECONDS_PER_DAY: Final = 86_400.0


class TokenCounter(Protocol):
    """Counts tokens as some model would."""

    def count(self, text: str) -> int:
        """Return how many tokens a text has.

        The parts of a text are counted one by one, so two texts apart MUST NOT count less than joined.
        """
        ...


@dataclass(frozen=True, slots=True)
class CharacterTokenCounter:
    """Counts every so many characters as a token; right within a quarter for English and code."""

    characters_per_token: int = CHARACTERS_PER_TOKEN

    def count(self, text: str) -> int:
        """See `TokenCounter.count`."""
        return -(-len(text) // self.characters_per_token)


@dataclass(frozen=True, slots=True)
class ContextCandidate:
    """A memory that may be shown. `reinforcement` is its multiplier, 1 without evidence."""

    memory: Memory
    reinforcement: float = NEUTRAL
    is_disputed: bool = False


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What is wanted.

    Attributes:
        now: UTC; ages are told from it.
        marker: See `Fence.marker`.
        project: Name of the caller's project; empty for none.
        token_budget: Most tokens of everything but golden rules, at least 0.
        max_golden_rules: Most golden rules, at least 0.
        max_entry_characters: Most characters of one memory's text, at least 1.
        machine_weight: Factor of what was extracted by a machine.
        golden_confidence: From this confidence on a memory is a golden rule.
        half_life_days: After so long without being read a memory counts half as much; above 0.
        own_project_factor: How much more the project's own memories count.

    Raises:
        InvalidInputError: If a number is below its least.
    """

    now: datetime
    marker: str
    project: str = ""
    token_budget: int = DEFAULT_TOKEN_BUDGET
    max_golden_rules: int = DEFAULT_MAX_GOLDEN_RULES
    max_entry_characters: int = DEFAULT_ENTRY_CHARACTERS
    machine_weight: float = DEFAULT_MACHINE_WEIGHT
    golden_confidence: float = GOLDEN_CONFIDENCE
    half_life_days: float = HALF_LIFE_DAYS
    own_project_factor: float = OWN_PROJECT_FACTOR

    def __post_init__(self) -> None:
        for name, least in (("token_budget", 0), ("max_golden_rules", 0), ("max_entry_characters", 1)):
            value = getattr(self, name)
            if value < least:
                raise InvalidInputError(name, value, f"a number from {least}")


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """What an agent is given.

    Attributes:
        markdown: Empty if there is nothing to say.
        memory_ids: The memories in it, in order.
        tokens_used: Of everything but golden rules; where there are any, title and fence count as theirs.
        golden_tokens: Of the golden rules, title and fence.
        dropped_ids: Memories that had no room, the best first.
        overflow_ids: Golden rules beyond the most, the best first.
        suspicious_ids: Shown memories that read like instructions.
    """

    markdown: str
    memory_ids: tuple[str, ...]
    tokens_used: int
    golden_tokens: int
    dropped_ids: tuple[str, ...]
    overflow_ids: tuple[str, ...]
    suspicious_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A memory as it would be shown, and what that costs."""

    memory_id: str
    section: str
    text: str
    token_count: int
    is_suspicious: bool


def context_score(candidate: ContextCandidate, request: ContextRequest) -> float:
    """Return how much a memory matters now; at least 0.

    That is importance x 0.5^(days since access / half life) x (1 + ln(1 + accesses)) x a factor for the project's own
    x reinforcement x the weight of its source.
    """
    memory = candidate.memory
    days = max((request.now - memory.accessed_at).total_seconds(), 0.0) / _SECONDS_PER_DAY
    is_own = bool(request.project) and memory.namespace == f"{PROJECT_PREFIX}{request.project}"
    return float(
        memory.importance
        * 0.5 ** (days / request.half_life_days)
        * (1.0 + log1p(max(memory.access_count, 0)))
        * (request.own_project_factor if is_own else 1.0)
        * candidate.reinforcement
        * provenance_factor(memory.provenance, machine_weight=request.machine_weight)
    )


def section_of(memory: Memory) -> str:
    """Return under which heading a memory that is no golden rule is shown."""
    return _SECTION_BY_TYPE.get(memory.type, RECENT_SECTION)


def build_context(
    candidates: Iterable[ContextCandidate], request: ContextRequest, *, counter: TokenCounter
) -> BuiltContext:
    """Return the context made of these memories; the same for equal input, in whatever order the candidates come.

    Args:
        candidates: Memories that the caller may be shown; one that comes twice is shown once.
    """
    fence = Fence(request.marker, request.now, request.max_entry_characters)
    ranked = _ranked(candidates, request)
    golden_from = request.golden_confidence
    rules = [candidate for candidate in ranked if candidate.memory.is_golden_from(golden_from)]
    # What a machine made of a text must not crowd out what people and agents said themselves.
    rules.sort(key=lambda rule: rule.memory.provenance is Provenance.MACHINE)
    shown_rules = [_entry(rule, GOLDEN_SECTION, fence, counter) for rule in rules[: request.max_golden_rules]]
    others = (candidate for candidate in ranked if not candidate.memory.is_golden_from(golden_from))

    frame_tokens = sum(map(counter.count, (TITLE, fence.opening, fence.closing)))
    spent_tokens = 0 if shown_rules else frame_tokens
    entries_left = (_entry(other, section_of(other.memory), fence, counter) for other in others)
    chosen, dropped_ids, tokens_used = _fit(entries_left, request.token_budget, counter, spent_tokens=spent_tokens)
    rules_heading = counter.count(_heading(GOLDEN_SECTION))
    golden_tokens = frame_tokens + rules_heading + sum(rule.token_count for rule in shown_rules) if shown_rules else 0
    entries = sorted((*shown_rules, *chosen), key=lambda entry: SECTIONS.index(entry.section))
    return BuiltContext(
        markdown=_markdown(entries, fence),
        memory_ids=tuple(entry.memory_id for entry in entries),
        tokens_used=tokens_used if chosen else 0,
        golden_tokens=golden_tokens,
        dropped_ids=dropped_ids,
        overflow_ids=tuple(rule.memory.id for rule in rules[request.max_golden_rules :]),
        suspicious_ids=tuple(entry.memory_id for entry in entries if entry.is_suspicious),
    )


def _ranked(candidates: Iterable[ContextCandidate], request: ContextRequest) -> list[ContextCandidate]:
    """Return the candidates, each once: the highest score first, equal ones newest first, then by id."""
    by_id = {candidate.memory.id: candidate for candidate in candidates}
    return sorted(
        by_id.values(),
        key=lambda candidate: (
            -context_score(candidate, request),
            -candidate.memory.created_at.timestamp(),
            candidate.memory.id,
        ),
    )


def _entry(candidate: ContextCandidate, section: str, fence: Fence, counter: TokenCounter) -> _Entry:
    memory = candidate.memory
    fenced = fence.enclose(memory, is_disputed=candidate.is_disputed)
    return _Entry(memory.id, section, fenced.text, counter.count(fenced.text), fenced.is_suspicious)


def _fit(
    ranked: Iterable[_Entry], budget: int, counter: TokenCounter, *, spent_tokens: int
) -> tuple[list[_Entry], tuple[str, ...], int]:
    """Return the entries that have room, best first, the ids of the others, and the tokens spent.

    An entry too large for what is left is passed over, and a smaller one after it may still fit.
    """
    chosen: list[_Entry] = []
    dropped_ids: list[str] = []
    opened: set[str] = set()
    for entry in ranked:
        heading_tokens = 0 if entry.section in opened else counter.count(_heading(entry.section))
        cost = entry.token_count + heading_tokens
        if spent_tokens + cost > budget:
            dropped_ids.append(entry.memory_id)
            continue
        spent_tokens += cost
        opened.add(entry.section)
        chosen.append(entry)
    return chosen, tuple(dropped_ids), spent_tokens


def _heading(section: str) -> str:
    return f"\n## {section}\n"


def _markdown(entries: Sequence[_Entry], fence: Fence) -> str:
    """Return the whole text of entries that are in the order of their sections."""
    if not entries:
        return ""
    parts = [TITLE, fence.opening]
    section = ""
    for entry in entries:
        if entry.section != section:
            section = entry.section
            parts.append(_heading(section))
        parts.append(entry.text)
    return "".join((*parts, fence.closing))
