"""What an import takes from the files a user already has, and what it leaves and why. Values only; stores nothing."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sidecar.domain.memory import DEFAULT_IMPORTANCE, MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MemoryType
from sidecar.domain.text import normalise

ORIGIN_KEY: Final = "imported_from"
"""Key of the metadata that says where a memory came from; a file's own value of it is replaced."""


class SourceFormat(StrEnum):
    """How a file is read."""

    CLAUDE_MEMORY = "claude-memory"
    CURSOR_RULES = "cursor-rules"
    AGENTS_MD = "agents-md"
    JSON_LINES = "json-lines"


class SkipReason(StrEnum):
    """Why a file, or a part of one, is not imported."""

    SYMLINK = "symlink"
    NOT_A_FILE = "not_a_file"
    UNREADABLE = "unreadable"
    BINARY = "binary"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    EMPTY = "empty"
    PROSE = "prose"
    CODE = "code"
    COMMENT = "comment"
    INCLUDE = "include"
    INDEX_ENTRY = "index_entry"
    DONE_TASK = "done_task"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    BAD_FIELD = "bad_field"
    UNKNOWN_FIELD = "unknown_field"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in a file.

    Attributes:
        path: As the user named it, or relative to the folder that was searched; with forward slashes.
        line: 1-based; 0 means the whole file.
    """

    path: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """A memory that an import proposes.

    Attributes:
        content: Normalised; not yet redacted.
        importance: 0 to 1.
        namespace: Empty means the one the user imports into.
        extra: What else the file says of it, such as globs; JSON values.
    """

    content: str
    memory_type: MemoryType
    format: SourceFormat
    place: SourcePlace
    importance: float = DEFAULT_IMPORTANCE
    namespace: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, object]:
        """What is stored beside the content: the extras, and where it came from."""
        origin = {"format": str(self.format), "path": self.place.path, "line": self.place.line}
        return {**self.extra, ORIGIN_KEY: origin}


@dataclass(frozen=True, slots=True)
class SkippedPart:
    """A part of a file, or all of it, that is not imported. `detail` says more, for a person."""

    place: SourcePlace
    reason: SkipReason
    detail: str = ""


ImportedPart = ImportedMemory | SkippedPart


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would store: its dry run. Equal files give an equal plan.

    Attributes:
        files: Paths that were read, in order.
        memories: In the order of files and lines, each once.
        skipped: In the same order.
    """

    files: tuple[str, ...]
    memories: tuple[ImportedMemory, ...]
    skipped: tuple[SkippedPart, ...]

    @property
    def counts_by_type(self) -> dict[str, int]:
        """How many memories of each type, by name."""
        return dict(sorted(Counter(str(memory.memory_type) for memory in self.memories).items()))

    @property
    def counts_by_reason(self) -> dict[str, int]:
        """How many parts were left for each reason, by name."""
        return dict(sorted(Counter(str(part.reason) for part in self.skipped).items()))


def checked(memory: ImportedMemory) -> ImportedPart:
    """Return the memory with normalised content, or why it cannot be stored."""
    content = normalise(memory.content)
    if not content:
        return SkippedPart(memory.place, SkipReason.EMPTY)
    size_bytes = len(content.encode())
    if size_bytes > MAX_CONTENT_BYTES:
        detail = f"{size_bytes} bytes; at most {MAX_CONTENT_BYTES} are stored"
        return SkippedPart(memory.place, SkipReason.TOO_LARGE, detail)
    try:
        size_bytes = len(json.dumps(memory.metadata, ensure_ascii=False).encode(errors="replace"))
    except RecursionError:
        return SkippedPart(memory.place, SkipReason.TOO_LARGE, "metadata is nested too deep")
    if size_bytes > MAX_METADATA_BYTES:
        detail = f"metadata of {size_bytes} bytes; at most {MAX_METADATA_BYTES} are stored"
        return SkippedPart(memory.place, SkipReason.TOO_LARGE, detail)
    return ImportedMemory(
        content=content,
        memory_type=memory.memory_type,
        format=memory.format,
        place=memory.place,
        importance=memory.importance,
        namespace=memory.namespace,
        extra=memory.extra,
    )


def make_plan(files: Iterable[str], parts: Iterable[ImportedPart], *, most_memories: int) -> ImportPlan:
    """Return the plan of these parts: of memories that say the same in the same namespace the first stays.

    Args:
        files: What was read.
        parts: In the order of the files.
        most_memories: Further ones are skipped, and said so.
    """
    memories: dict[tuple[str, str], ImportedMemory] = {}
    skipped: list[SkippedPart] = []
    for part in parts:
        if isinstance(part, SkippedPart):
            skipped.append(part)
            continue
        first = memories.get((part.namespace, part.content))
        if first is not None:
            detail = f"says the same as {first.place.path}:{first.place.line}"
            skipped.append(SkippedPart(part.place, SkipReason.DUPLICATE, detail))
        elif len(memories) >= most_memories:
            skipped.append(SkippedPart(part.place, SkipReason.TOO_MANY, f"one import takes {most_memories} memories"))
        else:
            memories[part.namespace, part.content] = part
    return ImportPlan(tuple(files), tuple(memories.values()), tuple(skipped))
