"""Tells our tools from others, and which memories a result showed. Shared by all clients; pure.

A call counts as ours by its tool's name, a memory as shown by an id of exactly our shape in the text that the model
received. Nothing else of a record is searched: copies of results elsewhere were not shown a second time.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from client_plugins.kit.texts import cut, render_input
from sidecar.domain.evidence import (
    RecallCalled,
    RememberCalled,
    Shown,
    ShownState,
    ToolCalled,
    UnknownReason,
)
from sidecar.domain.ids import MEMORY_PREFIX, find_memory_ids

_RECALLING: Final = {
    "recall": "recall",
    "memory_recall": "recall",
    "build_context": "build_context",
    "memory_context": "build_context",
}
_REMEMBERING: Final = frozenset({"remember", "memory_remember"})
_MAX_NAME_CHARACTERS: Final = 200
# Several times what a recall can return; only something hostile shows more.
_MAX_IDS: Final = 1_000
# JSON inside a string leaves `\n` as two characters, and the `n` would stick to an id that follows.
_ESCAPE: Final = re.compile(r"\\+(?:u[0-9a-fA-F]{4}|[nrtbf])")


def recalling_tool(name: str) -> str | None:
    """Return our name of a recalling tool, whatever server it is mounted under; None for any other tool."""
    return _RECALLING.get(_last_segment(name))


def is_remembering_tool(name: str) -> bool:
    """Tell whether this is our `remember`, whatever server it is mounted under."""
    return _last_segment(name) in _REMEMBERING


def describe_call(call_id: str, name: str, arguments: object) -> RecallCalled | RememberCalled | ToolCalled:
    """Return what a call was: a recall, a `remember`, or another tool with its input as a judge may read it."""
    tool = recalling_tool(name)
    if tool is not None:
        return RecallCalled(call_id, tool)
    if is_remembering_tool(name):
        return RememberCalled(call_id)
    return ToolCalled(call_id, cut(name, _MAX_NAME_CHARACTERS), render_input(arguments))


def shown_memories(texts: Sequence[str]) -> Shown:
    """Return what a readable result showed: the ids in all of its texts in order, or that there were none."""
    # Most results are of other tools, large, and without any.
    candidates = (text for text in texts if MEMORY_PREFIX in text)
    found = (memory_id for text in candidates for memory_id in find_memory_ids(_ESCAPE.sub(" ", text)))
    ids = tuple(dict.fromkeys(islice(found, _MAX_IDS)))
    return Shown(ShownState.IDS, memory_ids=ids) if ids else Shown(ShownState.NOTHING)


def unknown(reason: UnknownReason) -> Shown:
    """Return that it is not known what a result showed."""
    return Shown(ShownState.UNKNOWN, reason=reason)


def _last_segment(name: str) -> str:
    return name.rpartition("__")[2]
