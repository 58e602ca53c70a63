"""Reads a Cursor rule, `.cursor/rules/*.mdc`: one rule is one memory, with what its front matter says of its reach."""

from typing import Final

from sidecar.domain.front_matter import split_commas, split_front_matter
from sidecar.domain.importing import ImportedMemory, ImportedPart, SourceFormat, SourcePlace, checked
from sidecar.domain.markdown_blocks import split_lines
from sidecar.domain.memory import DEFAULT_IMPORTANCE, MemoryType

ALWAYS_IMPORTANCE: Final = 0.7
"""Of a rule that Cursor puts before every conversation."""


def read_cursor_rule(text: str, path: str) -> list[ImportedPart]:
    """Return the rule, or why it is left.

    Args:
        text: Of the file.
        path: As it is to be named.
    """
    lines = split_lines(text)
    front = split_front_matter(lines)
    start = front.body_start if front is not None else 0
    body = "\n".join(lines[start:]).strip()
    description = front.text("description").strip() if front is not None else ""
    globs = [part for value in (front.values.get("globs", ()) if front else ()) for part in split_commas(value)]
    # As in Cursor, only the word itself counts.
    is_always = front is not None and front.text("alwaysApply") == "true"
    extra: dict[str, object] = {"always_apply": is_always}
    if globs:
        extra["globs"] = globs
    rule = ImportedMemory(
        content=f"{description}\n\n{body}" if description and body else body,
        memory_type=MemoryType.CONVENTION,
        format=SourceFormat.CURSOR_RULES,
        place=SourcePlace(path, start + 1),
        importance=ALWAYS_IMPORTANCE if is_always else DEFAULT_IMPORTANCE,
        extra=extra,
    )
    return [checked(rule)]
