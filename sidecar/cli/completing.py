"""What the shell may complete: ids, projects, sessions and disputes of a sidecar that runs. Never starts one.

A shell evaluates what it is offered, and texts of memories and names of projects are other people's words. So a value
is offered only if it is made of harmless characters, and of a text only letters, digits and a few signs are shown.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import typer

from sidecar.domain.display import one_line
from sidecar.domain.memory import MemoryState
from sidecar.domain.namespace import EVERYTHING, GLOBAL, PROJECT_PREFIX
from sidecar.errors import SidecarError

if TYPE_CHECKING:
    from sidecar.client import Sidecar

Offer: TypeAlias = tuple[str, str]
"""A value, and what a shell that can may show beside it."""

_DEADLINE_S: Final = 1.0
_MOST: Final = 100
# Twice as many columns for Chinese; what does not fit into a line of 80 would become two offers.
_SHOWN_CHARACTERS: Final = 36
_HARMLESS: Final = re.compile(r"[A-Za-z0-9_.@+/-]{1,200}")
_NOT_FOR_A_SHELL: Final = re.compile(r"[^\w .,/+-]")


def memory_ids(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the latest memories of whatever namespace."""
    return _offered(context, incomplete, _memories(MemoryState.ACTIVE))


def forgotten_ids(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the latest memories that were forgotten."""
    return _offered(context, incomplete, _memories(MemoryState.FORGOTTEN))


def namespaces(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer `global` and the projects that have memories, by their bare names."""
    return _offered(context, incomplete, _namespaces, always=((GLOBAL, "every project"),))


def projects(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the projects that have memories."""
    return _offered(context, incomplete, _namespaces)


def sessions(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the sessions that were seen last."""
    return _offered(context, incomplete, _sessions)


def disputes(context: typer.Context, incomplete: str) -> list[Offer]:
    """Offer the numbers of open disputes."""
    return _offered(context, incomplete, _disputes)


def clients(incomplete: str) -> list[Offer]:
    """Offer the clients that can be connected."""
    from client_plugins.kit.client_setup import installed_setups  # noqa: PLC0415

    named = [(setup.name, setup.title) for setup in installed_setups().values()]
    return _matching([*named, ("all", "those that are installed")], incomplete)


def _offered(
    context: typer.Context,
    incomplete: str,
    ask: "Callable[[Sidecar], Iterable[Offer]]",
    *,
    always: tuple[Offer, ...] = (),
) -> list[Offer]:
    """Return what matches of what a running sidecar tells; without one only what is `always` there."""
    from sidecar.client import Sidecar  # noqa: PLC0415

    try:
        with Sidecar.connect(_home(context), start=False) as sidecar:
            found = list(ask(sidecar))
    except SidecarError:
        # A key was pressed; nobody asked for a message, and the command itself will tell.
        found = []
    return _matching([*always, *found], incomplete)


def _matching(offers: Iterable[Offer], incomplete: str) -> list[Offer]:
    return [
        (value, " ".join(_NOT_FOR_A_SHELL.sub(" ", told).split()))
        for value, told in offers
        if _HARMLESS.fullmatch(value) and value.startswith(incomplete)
    ]


def _home(context: typer.Context) -> Path | None:
    """Return the data folder that the line names; what stands behind the command goes first, as when it is run."""
    ahead = context.parent.params if context.parent is not None else {}
    for params in (context.params, ahead):
        named = params.get("home")
        if named is not None and str(named) != os.environ.get("SIDECAR_HOME"):
            return Path(str(named))
    return None


def _memories(state: MemoryState) -> "Callable[[Sidecar], Iterator[Offer]]":
    def ask(sidecar: "Sidecar") -> Iterator[Offer]:
        from sidecar.api.v1 import memory_pb2 as pb  # noqa: PLC0415
        from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

        states = [pb.MemoryState.Value(f"MEMORY_STATE_{state.name}")]
        request = service.ListMemoriesRequest(
            filter=service.MemoryFilter(namespace=EVERYTHING, states=states), page_size=_MOST
        )
        for memory in sidecar.list_memories(request, deadline_s=_DEADLINE_S).memories:
            yield memory.id, one_line(memory.content, limit=_SHOWN_CHARACTERS)

    return ask


def _namespaces(sidecar: "Sidecar") -> Iterator[Offer]:
    from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415

    request = service.CountMemoriesRequest(filter=service.MemoryFilter(namespace=EVERYTHING))
    counts = sidecar.count_memories(request, deadline_s=_DEADLINE_S).by_namespace
    for name in sorted(counts):
        if name.startswith(PROJECT_PREFIX):
            yield name.removeprefix(PROJECT_PREFIX), f"{counts[name]} memories"


def _sessions(sidecar: "Sidecar") -> Iterator[Offer]:
    from sidecar.api.v1 import evidence_service_pb2 as evidence  # noqa: PLC0415

    seen = sidecar.list_sessions(evidence.ListSessionsRequest(limit=_MOST), deadline_s=_DEADLINE_S).sessions
    threads = {coverage.thread.session: coverage.thread for coverage in seen}
    for session, thread in threads.items():
        yield session, f"{thread.client} {thread.project}"


def _disputes(sidecar: "Sidecar") -> Iterator[Offer]:
    from sidecar.api.v1 import validation_service_pb2 as validation  # noqa: PLC0415

    answer = sidecar.list_disputes(validation.ListDisputesRequest(limit=_MOST), deadline_s=_DEADLINE_S)
    for dispute in answer.disputes:
        yield str(dispute.id), one_line(dispute.reason, limit=_SHOWN_CHARACTERS)
