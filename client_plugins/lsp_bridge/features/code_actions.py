"""Code actions on a selection: remember it, recall what bears on it."""

import asyncio
from collections.abc import Sequence
from typing import Final

from lsprotocol.types import CodeAction, CodeActionKind, CodeActionParams, CodeActionTriggerKind, Command
from pygls.workspace import PositionCodec

from client_plugins.lsp_bridge.command_names import RECALL, REMEMBER
from client_plugins.lsp_bridge.contract import MAX_QUERY_CHARACTERS
from client_plugins.lsp_bridge.desk import Desk
from client_plugins.lsp_bridge.documents import text_in
from sidecar.domain.display import one_line
from sidecar.domain.memory import MAX_CONTENT_BYTES

_PREVIEW_CHARACTERS: Final = 40


async def code_actions(
    desk: Desk, params: CodeActionParams, codec: PositionCodec, *, takes_literals: bool
) -> Sequence[CodeAction | Command]:
    """Return the actions on a selection; none where nothing is selected, or where the editor only looks for fixes.

    Args:
        takes_literals: Whether the editor knows more than bare commands.
    """
    selected, context = params.range, params.context
    place = desk.places.place(params.text_document.uri)
    is_wanted = not context.only or CodeActionKind.Empty in context.only
    # Asked for by itself at every move of the cursor, to show that there are fixes.
    is_asked = context.trigger_kind is not CodeActionTriggerKind.Automatic
    if place is None or selected.start == selected.end or not (is_wanted and is_asked):
        return []
    text = (await asyncio.to_thread(text_in, place.path, selected, codec)).strip()
    if not text or len(text.encode("utf-8", "replace")) > MAX_CONTENT_BYTES:
        return []
    uri = params.text_document.uri
    # The text is that on the disk; the title shows which, since what was typed since is not known here.
    preview = one_line(text, limit=_PREVIEW_CHARACTERS)
    commands = [
        Command(f"Remember “{preview}”", REMEMBER, arguments=[{"content": text, "uri": uri}]),
        Command(f"Recall about “{preview}”", RECALL, arguments=[{"query": text[:MAX_QUERY_CHARACTERS], "uri": uri}]),
    ]
    if not takes_literals:
        return commands
    return [CodeAction(title=each.title, kind=CodeActionKind.Empty, command=each) for each in commands]
