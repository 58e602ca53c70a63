"""Reads the sections of AGENTS.md, and of the older `.cursorrules`: each heading with the text directly below it."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from sidecar.cli.importing.headings import context_of, type_below
from sidecar.domain.front_matter import split_front_matter
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


def read_agents_md(text: str, path: str, *, source_format: SourceFormat = SourceFormat.AGENTS_MD) -> list[ImportedPart]:
    """Return one memory for each section that has text of its own, in order.

    Args:
        text: Of the file.
        path: As it is to be named.
        source_format: What the file is, if it is only written like AGENTS.md.
    """
    lines = split_lines(text)
    front = split_front_matter(lines)
    start = front.body_start if front is not None else 0
    return list(_sections(lines, parse_blocks(lines[start:], first_line=start + 1), path, source_format))


def _sections(
    lines: Sequence[str], blocks: Sequence[Block], path: str, source_format: SourceFormat
) -> Iterator[ImportedPart]:
    number = 0
    numbered: list[tuple[int, Block]] = []
    for block in blocks:
        number += block.kind is BlockKind.HEADING
        numbered.append((number, block))
    for _, group in groupby(numbered, key=lambda pair: pair[0]):
        section = [block for _, block in group]
        told = [block for block in section if block.kind not in {BlockKind.HEADING, BlockKind.COMMENT}]
        for block in section:
            if block.kind is BlockKind.COMMENT:
                yield SkippedPart(SourcePlace(path, block.line), SkipReason.COMMENT)
        if told:
            yield _section(lines, section, told, SourcePlace(path, section[0].line), source_format)


def _section(
    lines: Sequence[str],
    section: Sequence[Block],
    told: Sequence[Block],
    place: SourcePlace,
    source_format: SourceFormat,
) -> ImportedPart:
    silent = {
        line for block in section if block.kind is BlockKind.COMMENT for line in range(block.line, block.end_line)
    }
    span = range(told[0].line, told[-1].end_line)
    body = "\n".join(lines[number - 1] for number in span if number not in silent)
    headings = told[0].headings
    context = context_of(headings)
    return checked(
        ImportedMemory(
            content=f"{context}\n\n{body}" if context else body,
            memory_type=type_below(headings, default=MemoryType.CONVENTION),
            format=source_format,
            place=place,
        )
    )
