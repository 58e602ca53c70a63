"""What a judge of usefulness is asked and what it answers. Pure values; the judges themselves are adapters."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.evidence import SliceKind
from sidecar.domain.memory import MemoryType

USED_THRESHOLD: Final = 0.6
"""From this probability on a memory counts as used."""

RELEVANT_THRESHOLD: Final = 0.5
"""From this probability on a memory counts as relevant."""

MISLED_THRESHOLD: Final = 0.6
"""From this probability on a memory counts as having misled."""


class JudgeKind(StrEnum):
    """Which judge is used."""

    LOCAL = "local"
    LLM = "llm"


@dataclass(frozen=True, slots=True)
class TranscriptPiece:
    """A text of the transcript, redacted and cut; of a tool call, the tool's name and its input."""

    kind: SliceKind
    text: str


@dataclass(frozen=True, slots=True)
class JudgeCase:
    """One memory that one session was shown.

    Attributes:
        age_days: Between the memory's creation and the moment it was shown, 0 or more.
        others: Contents of the other memories that the session was shown.
        before: What was said before the memory was shown, oldest first; may be empty.
        after: What was said and done afterwards, oldest first.
    """

    memory_id: str
    content: str
    memory_type: MemoryType
    age_days: float
    others: tuple[str, ...]
    before: tuple[TranscriptPiece, ...]
    after: tuple[TranscriptPiece, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Calibrated probabilities, 0 to 1: of all cases with 0.8, about 80 in 100 are so.

    Attributes:
        used: The memory influenced an answer, a decision or an action, and nothing else in sight explains it.
        relevant: It governs something that the agent touched or decided, heeded or not.
        misled: The agent acted by it and had to correct course.
    """

    memory_id: str
    used: float
    relevant: float
    misled: float

    @property
    def is_misled(self) -> bool:
        """Whether it counts as having misled."""
        return self.misled >= MISLED_THRESHOLD

    @property
    def is_used(self) -> bool:
        """Whether it counts as used; what misled was not used, however much it was followed."""
        return self.used >= USED_THRESHOLD and not self.is_misled

    @property
    def is_relevant(self) -> bool:
        """Whether it counts as relevant; what was used or misled was relevant too."""
        return self.relevant >= RELEVANT_THRESHOLD or self.is_used or self.is_misled
