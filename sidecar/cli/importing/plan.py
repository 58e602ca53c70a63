"""Plans an import, which is its dry run, and carries the plan out. Knows files and plans, and no sidecar."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.cli.importing.agents_md import read_agents_md
from sidecar.cli.importing.claude_memory import read_claude_memory
from sidecar.cli.importing.cursor_rules import read_cursor_rule
from sidecar.cli.importing.files import Source, UnreadableSourceError, read_lines, read_notes
from sidecar.cli.importing.json_lines import MAX_LINE_BYTES, read_json_lines
from sidecar.domain.importing import (
    ImportedMemory,
    ImportedPart,
    ImportPlan,
    SkippedPart,
    SkipReason,
    SourceFormat,
    SourcePlace,
    make_plan,
)
from sidecar.errors import InvalidInputError, SidecarError

MAX_MEMORIES: Final = 50_000
_RULE_SUFFIX: Final = ".mdc"


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one memory. `is_duplicate`: the sidecar had it already, and nothing changed."""

    memory_id: str
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A memory that the sidecar did not take, and why."""

    place: SourcePlace
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did."""

    plan: ImportPlan
    stored: int
    duplicates: int
    refused: tuple[Refused, ...]


def plan_import(sources: Iterable[Source | SkippedPart], *, most_memories: int = MAX_MEMORIES) -> ImportPlan:
    """Read the files and return what an import would store; stores nothing.

    Args:
        sources: From `sidecar.cli.importing.files`, with what was left when they were looked for.
        most_memories: Further ones are skipped.
    """
    given = list(sources)
    files = [source.label for source in given if isinstance(source, Source)]
    return make_plan(files, _parts(given), most_memories=most_memories)


def carry_out(plan: ImportPlan, remember: Callable[[ImportedMemory], Stored]) -> ImportReport:
    """Store what the plan says, in its order. Doing it again stores nothing twice.

    Args:
        plan: From `plan_import`.
        remember: Stores one memory; what it refuses as invalid is reported, and the rest goes on.

    Raises:
        SidecarError: Whatever else `remember` raises, such as an unavailable sidecar; import again later.
    """
    outcomes: list[Stored] = []
    refused: list[Refused] = []
    for memory in plan.memories:
        try:
            outcomes.append(remember(memory))
        except InvalidInputError as error:
            refused.append(_refusal(memory, error))
    duplicates = sum(outcome.is_duplicate for outcome in outcomes)
    return ImportReport(plan, len(outcomes) - duplicates, duplicates, tuple(refused))


def _refusal(memory: ImportedMemory, error: SidecarError) -> Refused:
    return Refused(memory.place, error.reason, error.message)


def _parts(sources: Iterable[Source | SkippedPart]) -> Iterator[ImportedPart]:
    for source in sources:
        if isinstance(source, SkippedPart):
            yield source
            continue
        try:
            yield from _read(source)
        except UnreadableSourceError as error:
            yield SkippedPart(SourcePlace(source.label), error.reason, error.detail)
        except OSError as error:
            # The disk failed in the middle; what was read before stays in the plan.
            yield SkippedPart(SourcePlace(source.label), SkipReason.UNREADABLE, error.strerror or type(error).__name__)


def _read(source: Source) -> Iterable[ImportedPart]:
    if source.format is SourceFormat.JSON_LINES:
        return read_json_lines(read_lines(source.path, max_line_bytes=MAX_LINE_BYTES), source.label)
    text = read_notes(source.path)
    if source.format is SourceFormat.CLAUDE_MEMORY:
        return read_claude_memory(text, source.label)
    if source.format is SourceFormat.CURSOR_RULES and source.label.endswith(_RULE_SUFFIX):
        return read_cursor_rule(text, source.label)
    return read_agents_md(text, source.label, source_format=source.format)
