"""Fits stored text into a result: within the clients' limits, and never mistaken for anything but stored text."""

import json
import re
from collections.abc import Sequence
from typing import Final

from sidecar.domain.display import visible

CUT_MARK: Final = " … [cut]"
SHORTEST_CHARACTERS: Final = 40
"""Of each text, at least so many are shown."""
# Wider than an id: behind a written-out line feed (`\\n`) a reader takes for one what is none here.
_ANY_ID: Final = re.compile(r"mem_(?=[0-9A-Z]{26})")


def shown_content(content: str) -> str:
    """Return the content as it may be shown to an agent.

    Control and direction characters are written out. Ids in it get a colon, `mem:…`: every id in a result counts as a
    memory that was shown, and one that is only mentioned was not.
    """
    return _ANY_ID.sub("mem:", visible(content))


def fit(contents: Sequence[str], *, room: int) -> list[str]:
    """Return the contents, the longest ones cut so that all together take at most `room` characters of JSON.

    Short ones are left whole as long as possible: all that are cut are cut to the same length.
    """
    limit = _common_limit([_json_length(content) for content in contents], room)
    return [_cut(content, limit) for content in contents]


def _common_limit(lengths: Sequence[int], room: int) -> int:
    """Return the largest length to which all may be cut."""
    left, limit = room, 0
    for position, length in enumerate(sorted(lengths)):
        limit = max(left // (len(lengths) - position), SHORTEST_CHARACTERS)
        if length > limit:
            return limit
        left -= length
    return max(limit, *lengths) if lengths else 0


def _cut(content: str, limit: int) -> str:
    if _json_length(content) <= limit:
        return content
    kept = content[: limit - len(CUT_MARK)]
    while kept and _json_length(kept) > limit - len(CUT_MARK):
        # Characters that JSON writes as two or more; take away as many as are too much at least.
        kept = kept[: -max(1, (_json_length(kept) - limit + len(CUT_MARK)) // 6)]
    return kept.rstrip() + CUT_MARK


def _json_length(text: str) -> int:
    """Return how many characters the text takes in JSON, without the quotes."""
    return len(json.dumps(text, ensure_ascii=False)) - 2
