"""Where a text over a model's limit is cut. Counts tokens and words; knows no tokenizer."""

import math
from collections.abc import Sequence
from typing import Final

MAX_WINDOWS: Final = 64
OVERLAP_TOKENS: Final = 32
# A longer word than this is cut inside; it is hardly one.
_MAX_SHIFT: Final = OVERLAP_TOKENS // 2


def window_spans(word_of_token: Sequence[int | None], *, window_tokens: int) -> list[tuple[int, int]]:
    """Return the (first, end) tokens of each window, evenly spread over the text; one window for a short text.

    Neighbours share some tokens, `OVERLAP_TOKENS` less what it takes to begin and end with whole words, so that a
    sentence at a cut is whole in one of them. All windows of a long text are full, so none gets its vector from a few
    left-over words. A text too long for `MAX_WINDOWS` has gaps between them rather than no window at its end.

    Args:
        word_of_token: For each token of the text, without special ones, the number of the word it is of; None if it
            is of none.
        window_tokens: Most tokens of one window, more than `OVERLAP_TOKENS`.
    """
    token_count = len(word_of_token)
    last_start = token_count - window_tokens
    if last_start <= 0:
        return [(0, token_count)]
    count = min(1 + math.ceil(last_start / (window_tokens - OVERLAP_TOKENS)), MAX_WINDOWS)
    starts = [round(step * last_start / (count - 1)) for step in range(count)]
    return [
        (_word_edge(word_of_token, start, step=1), _word_edge(word_of_token, start + window_tokens, step=-1))
        for start in starts
    ]


def _word_edge(word_of_token: Sequence[int | None], position: int, *, step: int) -> int:
    """Return the nearest place between two words at or after (`step` 1) or before (-1) a place between tokens."""
    for shift in range(_MAX_SHIFT):
        edge = position + step * shift
        if edge in {0, len(word_of_token)}:
            return edge
        before, after = word_of_token[edge - 1], word_of_token[edge]
        if before is None or before != after:
            return edge
    return position
