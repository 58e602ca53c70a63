"""Makes a message of the contract a tool's result: as plain JSON, within the clients' limits, no text taken for ours.

For the operations that agents seldom need; those of every session have results of their own, made to be short. An id in
one of these counts as shown to nobody, since only results of `recall` and `build_context` do.
"""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict

from client_plugins.mcp_bridge.display import fit
from sidecar.domain.display import visible

if TYPE_CHECKING:
    from sidecar.api.plain import JsonValue

# Codex cuts what the model sees at 12,000 characters.
MAX_DOCUMENT_CHARACTERS: Final = 10_000
_ROOM_FOR_TEXTS: Final = 6_000
_CUT: Final = "cut"
# Texts up to this length, such as ids, times and kinds, are never cut.
_SHORT_CHARACTERS: Final = 64


class ContractDocument(BaseModel):
    """As in the contract."""

    model_config = ConfigDict(extra="allow")


def as_document(document: "dict[str, JsonValue]") -> CallToolResult:
    """Return the result in both forms, since clients show the model the one or the other.

    Long texts are cut, and said to be; if that is not enough, what is longest loses its end, and `cut` names it.
    """
    fitted = _with_short_texts(document)
    cut: set[str] = set()
    while len(_text(fitted)) > MAX_DOCUMENT_CHARACTERS:
        longest = max((name for name in fitted if name != _CUT), key=lambda name: len(_text(fitted[name])))
        fitted = {**fitted, longest: _shortened(fitted[longest])}
        cut.add(longest)
        fitted[_CUT] = [*sorted(cut)]
    text = _text(fitted)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=json.loads(text))


def _shortened(node: "JsonValue") -> "JsonValue":
    """Return the node without its last half, if it is a list, or else without the longest thing in it."""
    if isinstance(node, list):
        return node[: len(node) // 2]
    if isinstance(node, dict) and node:
        longest = max(node, key=lambda name: len(_text(node[name])))
        return {name: value for name, value in node.items() if name != longest}
    return None


def _with_short_texts(document: "dict[str, JsonValue]") -> "dict[str, JsonValue]":
    """Return the document with its long texts cut to what has room, and nothing in any of them that could deceive."""
    shown = [visible(text) for text in _texts(document)]
    fitted = iter(fit([text for text in shown if len(text) > _SHORT_CHARACTERS], room=_ROOM_FOR_TEXTS))

    def short(text: str) -> str:
        return next(fitted) if len(visible(text)) > _SHORT_CHARACTERS else visible(text)

    replaced = _replaced(document, short)
    assert isinstance(replaced, dict)
    return replaced


def _texts(node: "JsonValue") -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        for item in node.values():
            yield from _texts(item)


def _replaced(node: "JsonValue", change: Callable[[str], str]) -> "JsonValue":
    """Return the node with each text changed, in the order of `_texts`."""
    if isinstance(node, str):
        return change(node)
    if isinstance(node, list):
        return [_replaced(item, change) for item in node]
    if isinstance(node, dict):
        return {visible(key): _replaced(item, change) for key, item in node.items()}
    return node


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
