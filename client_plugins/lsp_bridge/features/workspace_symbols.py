"""Workspace symbols: memories by words, each leading to its place in a page of what was found."""

from typing import TYPE_CHECKING, Final

from lsprotocol.types import Location, Position, Range, SymbolInformation, SymbolKind, WorkspaceSymbolParams

from client_plugins.lsp_bridge import markdown
from client_plugins.lsp_bridge.contract import MAX_QUERY_CHARACTERS, Memory
from client_plugins.lsp_bridge.desk import Desk
from client_plugins.lsp_bridge.presenting import joined
from client_plugins.lsp_bridge.views import Views
from sidecar.domain.display import one_line

if TYPE_CHECKING:
    from sidecar.api.v1.memory_pb2 import Memory as StoredMemory
    from sidecar.client import AsyncSidecar

_MOST: Final = 20
_NAME_CHARACTERS: Final = 100
_PAGE: Final = "symbols"


async def workspace_symbols(desk: Desk, views: Views, params: WorkspaceSymbolParams) -> list[SymbolInformation]:
    """Return memories that answer the query, best first; the newest for an empty one."""
    query = params.query.strip()[:MAX_QUERY_CHARACTERS]
    project = desk.places.project(None)
    memories = await desk.connection.look(lambda sidecar: _found(desk, sidecar, project, query))
    if not memories:
        return []
    page = markdown.document(f"Memories: {query}" if query else "The newest memories", memories)
    uri = views.write(_PAGE, page)
    lines = {line.removeprefix("## "): number for number, line in enumerate(page.split("\n")) if line.startswith("## ")}
    return [_symbol(memory, uri, lines[memory.id]) for memory in memories]


async def _found(desk: Desk, sidecar: "AsyncSidecar", project: str, query: str) -> list[Memory]:
    from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415 - protobuf is for calls only

    context = desk.context(project)
    stored: list[StoredMemory]
    if query:
        asked = service.RecallRequest(query=query, n_results=_MOST, internal=True, context=context)
        stored = [found.memory for found in (await sidecar.recall(asked)).memories]
    else:
        listing = service.ListMemoriesRequest(page_size=_MOST, context=context)
        stored = list((await sidecar.list_memories(listing)).memories)
    return await desk.about.describe_these(sidecar, stored)


def _symbol(memory: Memory, uri: str, line: int) -> SymbolInformation:
    return SymbolInformation(
        name=one_line(memory.content, limit=_NAME_CHARACTERS),
        kind=SymbolKind.Constant if memory.golden else SymbolKind.String,
        location=Location(uri=uri, range=Range(Position(line, 0), Position(line, 0))),
        container_name=joined((memory.type, memory.namespace, memory.age)),
    )
