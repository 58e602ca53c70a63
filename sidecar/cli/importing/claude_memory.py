"""Reads Claude Code's own memory: the list items of CLAUDE.md and MEMORY.md, and the topic files beside MEMORY.md.

A list item with all below it is one memory, its headings before it. Files that a note names are never opened.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sidecar.cli.importing.headings import context_of, type_below
from sidecar.domain.front_matter import FrontMatter, split_front_matter
from sidecar.domain.importing import (
    ImportedMemory,
    ImportedPart,
    SkippedPart,
    SkipReason,
    SourceFormat,
    SourcePlace,
    checked,
)
from sidecar.domain.markdown_blocks import Block, BlockKind, parse_blocks, split_lines
from sidecar.domain.memory import MemoryType

INDEX_NAME: Final = "MEMORY.md"
_INDEX_ENTRY: Final = re.compile(r"\[[^\]\n]{1,300}\]\(([^()\s]{1,300}\.md)\)[^\n]*")
_INCLUDE: Final = re.compile(r"@[^\s@`]+")
_TASK: Final = re.compile(r"\[([ xX])\] +")
# What the types in the front matter of topic files mean here.
_TOPIC_TYPES: Final[Mapping[str, MemoryType]] = {
    "user": MemoryType.PREFERENCE,
    "feedback": MemoryType.PREFERENCE,
    "project": MemoryType.FACT,
    "reference": MemoryType.REFERENCE,
}
_LEFT: Final[Mapping[BlockKind, SkipReason]] = {
    BlockKind.PROSE: SkipReason.PROSE,
    BlockKind.CODE: SkipReason.CODE,
    BlockKind.COMMENT: SkipReason.COMMENT,
}


def read_claude_memory(text: str, path: str) -> list[ImportedPart]:
    """Return what one file of Claude Code's memory holds, in order.

    Args:
        text: Of CLAUDE.md, MEMORY.md or a topic file.
        path: As it is to be named; its last part decides what is left untold.
    """
    lines = split_lines(text)
    front = split_front_matter(lines)
    if front is not None and (front.text("name") or front.text("description")):
        return [_topic(lines, front, path)]
    is_notes_of_agent = path.rpartition("/")[2] != "CLAUDE.md" and not path.endswith("CLAUDE.local.md")
    default = MemoryType.FACT if is_notes_of_agent else MemoryType.CONVENTION
    start = front.body_start if front is not None else 0
    return list(_notes(parse_blocks(lines[start:], first_line=start + 1), path, default))


def _notes(blocks: Sequence[Block], path: str, default: MemoryType) -> Iterator[ImportedPart]:
    for block in blocks:
        place = SourcePlace(path, block.line)
        include = _INCLUDE.fullmatch(block.text.strip())
        if block.kind is BlockKind.HEADING:
            continue
        if include:
            yield SkippedPart(place, SkipReason.INCLUDE, f"{include.group(0)} is not followed")
        elif block.kind is BlockKind.ITEM:
            yield _item(block, place, default)
        else:
            yield SkippedPart(place, _LEFT[block.kind])


def _item(block: Block, place: SourcePlace, default: MemoryType) -> ImportedPart:
    entry = _INDEX_ENTRY.fullmatch(block.text)
    if entry:
        return SkippedPart(place, SkipReason.INDEX_ENTRY, f"what {entry.group(1)} says is imported from there")
    task = _TASK.match(block.text)
    if task and task.group(1) != " ":
        return SkippedPart(place, SkipReason.DONE_TASK)
    text = block.text[task.end() :] if task else block.text
    context = context_of(block.headings)
    return checked(
        ImportedMemory(
            content=f"{context}: {text}" if context and text else text,
            memory_type=MemoryType.TASK if task else type_below(block.headings, default=default),
            format=SourceFormat.CLAUDE_MEMORY,
            place=place,
        )
    )


def _topic(lines: Sequence[str], front: FrontMatter, path: str) -> ImportedPart:
    """Return a topic file as one memory: its description says in a line what the body says at length."""
    body = "\n".join(lines[front.body_start :]).strip()
    description = front.text("description").strip()
    is_told = not description or description in body
    kind = (front.text("metadata.type") or front.text("type")).lower()
    name = front.text("name")
    return checked(
        ImportedMemory(
            content=body if is_told else f"{description}\n\n{body}",
            memory_type=_TOPIC_TYPES.get(kind, MemoryType.FACT),
            format=SourceFormat.CLAUDE_MEMORY,
            place=SourcePlace(path, front.body_start + 1),
            extra={"name": name} if name else {},
        )
    )
