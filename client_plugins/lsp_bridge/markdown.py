"""Writes memories as Markdown or plain text in which a stored text is text and nothing else. Pure.

A memory may have been written by anybody. Its text stands in a code fence longer than any run of backticks in it, with
harmful characters written out, so that it can bring no link, no command, no picture and no heading.
"""

import re
from collections.abc import Sequence
from typing import Final

from client_plugins.lsp_bridge.contract import Figure, Memory
from client_plugins.lsp_bridge.presenting import joined, use_in_words
from sidecar.domain.display import one_line, visible

HOVER_CHARACTERS: Final = 600
WHOLE_CHARACTERS: Final = 20_000
_HOVER_LINES: Final = 12
_CUT: Final = "…"
_VOLUMES: Final = frozenset({"useful_recalls"})

_BACKTICKS: Final = re.compile(r"`+")
# What Markdown gives a meaning within a line. Everything else is left, for pages are read as they are written.
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|!])")


def fenced(text: str, *, max_characters: int = WHOLE_CHARACTERS, max_lines: int = 0) -> str:
    """Return the text in a fence that it cannot leave.

    Args:
        max_lines: 0 for any number.
    """
    shown = cut(visible(text), max_characters=max_characters, max_lines=max_lines)
    longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"


def cut(text: str, *, max_characters: int, max_lines: int = 0) -> str:
    """Return the beginning of the text, with a mark where something is left out."""
    lines = text.split("\n")
    shown = "\n".join(lines[:max_lines]) if max_lines else text
    shown = shown[:max_characters].rstrip()
    return shown if len(shown) == len(text.rstrip()) else f"{shown} {_CUT}"


def escaped(text: str, *, limit: int = 200) -> str:
    """Return a short text in one line in which Markdown finds nothing."""
    return _SPECIAL.sub(r"\\\1", one_line(text, limit=limit))


def heading(memory: Memory) -> str:
    """Return what is known of a memory besides its text, in one line of plain text without anything of its author's."""
    marks = ["golden"] * memory.golden + ["disputed"] * memory.disputed + ["superseded"] * memory.superseded
    how_old = "new" if memory.age == "now" else f"{memory.age} old"
    return joined((memory.type, *marks, how_old, use_in_words(memory.usefulness)))


def hover(about: str, memories: Sequence[Memory], *, is_markdown: bool, left_out: int) -> str:
    """Return what is shown beside the cursor.

    Args:
        about: What the memories are about, already fit to be shown.
        left_out: How many more there are.
    """
    parts = [f"**Memory** · {about}" if is_markdown else f"Memory · {about}"]
    for memory in memories:
        if is_markdown:
            parts.append(f"{heading(memory)} · `{memory.id}`")
            parts.append(fenced(memory.content, max_characters=HOVER_CHARACTERS, max_lines=_HOVER_LINES))
        else:
            shown = cut(visible(memory.content), max_characters=HOVER_CHARACTERS, max_lines=_HOVER_LINES)
            parts.append(f"{heading(memory)} · {memory.id}\n{_indented(shown)}")
    if left_out:
        parts.append(f"and {left_out} more")
    return "\n\n".join(parts)


def document(title: str, memories: Sequence[Memory], *, note: str = "") -> str:
    """Return a page of memories."""
    parts = [f"# {escaped(title)}", *([f"Note: {escaped(note)}"] if note else [])]
    for memory in memories:
        relevance = f"relevance {memory.relevance:.2f}" if memory.relevance is not None else ""
        parts.append(f"## {memory.id}")
        parts.append(joined((heading(memory), escaped(memory.namespace), relevance)))
        parts.append(fenced(memory.content))
    if not memories:
        parts.append("None.")
    return "\n\n".join(parts) + "\n"


def insights_document(figures: Sequence[Figure], *, days: int) -> str:
    """Return a page of figures, each with what it rests on."""
    rows = [
        f"| `{figure.name}` | {_value(figure)} | {figure.numerator} of {figure.denominator} "
        f"| {escaped(figure.label, limit=400)} | {escaped(figure.proxy or '', limit=400)} |"
        for figure in figures
    ]
    return "\n".join(
        (
            f"# How useful memories were, {days} days (UTC)",
            "",
            "| figure | value | of | what it says | and only stands for |",
            "|---|---|---|---|---|",
            *rows,
            "",
        )
    )


def _value(figure: Figure) -> str:
    if figure.value is None:
        return "not known"
    return f"{figure.value:.0f}" if figure.name in _VOLUMES else f"{figure.value:.1%}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
