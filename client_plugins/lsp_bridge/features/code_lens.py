"""Code lens: how many memories name a file, above its first line."""

from typing import TYPE_CHECKING

from lsprotocol.types import CodeLens, CodeLensParams, Command, Position, Range

from client_plugins.lsp_bridge.command_names import MEMORIES_FOR_FILE
from client_plugins.lsp_bridge.contract import MAX_RECALLED, Memory
from client_plugins.lsp_bridge.desk import Desk
from client_plugins.lsp_bridge.places import Place
from client_plugins.lsp_bridge.presenting import counted, joined

if TYPE_CHECKING:
    from sidecar.client import AsyncSidecar


async def code_lenses(desk: Desk, params: CodeLensParams) -> list[CodeLens]:
    """Return one lens, or none where no memory names the file."""
    place = desk.places.place(params.text_document.uri)
    if place is None:
        return []
    memories = await desk.connection.look(lambda sidecar: _naming(desk, sidecar, place))
    if not memories:
        return []
    command = Command(
        title=lens_title(memories),
        command=MEMORIES_FOR_FILE,
        arguments=[{"uri": params.text_document.uri}],
    )
    return [CodeLens(range=Range(Position(0, 0), Position(0, 0)), command=command)]


def lens_title(memories: list[Memory]) -> str:
    """Return `3 memories · 1 golden`."""
    golden = sum(memory.golden for memory in memories)
    disputed = sum(memory.disputed for memory in memories)
    return joined(
        (
            counted(len(memories), "memory", "memories"),
            f"{golden} golden" if golden else "",
            f"{disputed} disputed" if disputed else "",
        )
    )


async def _naming(desk: Desk, sidecar: "AsyncSidecar", place: Place) -> list[Memory]:
    aspect = await desk.about.file(sidecar, place, with_related=False)
    return await desk.about.describe(sidecar, aspect.named[:MAX_RECALLED])
