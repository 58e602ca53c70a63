"""What a memory is: its type, state, provenance, links, and the rules for its fields."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from sidecar.errors import InvalidInputError, UnknownMemoryTypeError, UnknownRelationError

MAX_CONTENT_BYTES: Final = 64 * 1024
MAX_METADATA_BYTES: Final = 16 * 1024
DEFAULT_IMPORTANCE: Final = 0.5
DEFAULT_CONFIDENCE: Final = 0.3
GOLDEN_CONFIDENCE: Final = 0.9
_CONFIDENCE_DIGITS: Final = 9


class MemoryType(StrEnum):
    """What kind of thing is remembered."""

    PREFERENCE = "preference"
    DECISION = "decision"
    PATTERN = "pattern"
    SESSION = "session"
    FILE_CONTEXT = "file_context"
    GOLDEN_RULE = "golden_rule"
    FACT = "fact"
    GOTCHA = "gotcha"
    CONVENTION = "convention"
    REFERENCE = "reference"
    EPISODE = "episode"
    TASK = "task"
    OPEN_QUESTION = "open_question"


class MemoryState(StrEnum):
    """Whether a memory is delivered."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    FORGOTTEN = "forgotten"


class Provenance(StrEnum):
    """Who the words come from."""

    USER = "user"
    AGENT = "agent"
    MACHINE = "machine"


class Relation(StrEnum):
    """How one memory relates to another."""

    RELATES_TO = "relates_to"
    SUPERSEDES = "supersedes"
    CAUSED_BY = "caused_by"
    CONTRADICTS = "contradicts"
    DERIVED_FROM = "derived_from"


@dataclass(frozen=True, slots=True)
class Link:
    """A relation from a new memory to an older one."""

    relation: Relation
    memory_id: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `owner` comes from the credentials, the rest from the request.

    Attributes:
        owner: Whose memories are meant.
        client: Such as `claude-code`; empty if not said.
        session: The client's session id; empty if not known.
        project: Project name from the client's working directory; empty for none.
    """

    owner: str
    client: str = ""
    session: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as stored. Times are UTC and aware.

    Attributes:
        key: Dense row number, the id of its vector; 0 before it is stored.
        content: Normalised and redacted text.
        content_hash: SHA-256 of `content` in hexadecimal.
        superseded_by: Id of the successor; empty unless `state` is superseded.
        previous_state: The state that restoring a forgotten memory returns to.
    """

    id: str
    owner: str
    namespace: str
    type: MemoryType
    content: str
    content_hash: str
    created_at: datetime
    accessed_at: datetime
    key: int = 0
    importance: float = DEFAULT_IMPORTANCE
    confidence: float = DEFAULT_CONFIDENCE
    state: MemoryState = MemoryState.ACTIVE
    previous_state: MemoryState = MemoryState.ACTIVE
    provenance: Provenance = Provenance.AGENT
    client: str = ""
    session: str = ""
    access_count: int = 0
    superseded_by: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)

    def is_golden_from(self, confidence: float) -> bool:
        """Tell whether it is a golden rule, where one becomes that from this confidence on; see `is_golden_rule`."""
        return is_golden_rule(self.type, self.confidence, golden_from=confidence)


def is_golden_rule(memory_type: MemoryType, confidence: float, *, golden_from: float) -> bool:
    """Tell whether such a memory is a golden rule: by its type, or from a confidence on. Forgetting it takes force."""
    return memory_type is MemoryType.GOLDEN_RULE or round(confidence, _CONFIDENCE_DIGITS) >= golden_from


def parse_memory_type(text: str) -> MemoryType:
    """Return the type of this name; empty means session.

    Raises:
        UnknownMemoryTypeError: Lists the valid names.
    """
    try:
        return MemoryType(text or MemoryType.SESSION)
    except ValueError:
        raise UnknownMemoryTypeError(text, tuple(MemoryType)) from None


def parse_relation(text: str, *, field_name: str) -> Relation:
    """Return the relation of this name.

    Raises:
        UnknownRelationError: Lists the valid names.
    """
    try:
        return Relation(text)
    except ValueError:
        raise UnknownRelationError(field_name, text, tuple(Relation)) from None


def parse_fraction(value: float, *, field_name: str) -> float:
    """Return the value if it lies in 0 to 1.

    Raises:
        InvalidInputError: If it is outside or not a number.
    """
    if not 0.0 <= value <= 1.0:
        raise InvalidInputError(field_name, value, "a number from 0 to 1")
    return value
