"""Where a text over a model's limit is cut. Counts tokens; knows no tokenizer."""

import math
from typing import Final

MAX_WINDOWS: Final = 64
OVERLAP_TOKENS: Final = 32


def window_starts(token_count: int, *, window_tokens: int) -> list[int]:
    """Return the first token of each window, evenly spread over the text; one window for a short text.

    Neighbours share at least `OVERLAP_TOKENS`, so that a sentence at a cut is whole in one of them. All windows of a
    long text are full, so none gets its vector from a few left-over words. A text too long for `MAX_WINDOWS` has gaps
    between them rather than no window at its end.

    Args:
        token_count: Tokens of the text, without special ones; 0 or more.
        window_tokens: Most tokens of one window, more than `OVERLAP_TOKENS`.
    """
    last_start = token_count - window_tokens
    if last_start <= 0:
        return [0]
    count = min(1 + math.ceil(last_start / (window_tokens - OVERLAP_TOKENS)), MAX_WINDOWS)
    return [round(step * last_start / (count - 1)) for step in range(count)]
