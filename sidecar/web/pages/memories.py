"""Memories: found as an agent would find them, listed with filters, and each with all that bears on its rank.

Looking here is no recall: nothing counts as shown, and no figure moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from starlette.responses import Response

from sidecar.domain.memory import Memory, MemoryState, MemoryType
from sidecar.domain.recall import ScoreParts
from sidecar.domain.store_values import OrderBy
from sidecar.errors import InvalidInputError
from sidecar.use_cases.browse import Selection
from sidecar.use_cases.recall import RecallQuery
from sidecar.web.memory_detail import ACTIONS, detail
from sidecar.web.page import Page, PageRoute, Visit

Choice = TypeVar("Choice", bound=StrEnum)

_PAGE_SIZE: Final = 25
_FOUND: Final = 25
_EVERYWHERE: Final = "*"
_STATE_CHOICES: Final = (
    ("", "Active"),
    ("superseded", "Superseded"),
    ("forgotten", "Forgotten"),
    ("all", "All"),
)
_ORDER_CHOICES: Final = (
    (OrderBy.CREATED_AT.value, "Newest"),
    (OrderBy.ACCESSED_AT.value, "Last recalled"),
    (OrderBy.IMPORTANCE.value, "Importance"),
    (OrderBy.CONFIDENCE.value, "Confidence"),
)


@dataclass(frozen=True, slots=True)
class _Found:
    """A memory of the list; `parts` only where it was searched for."""

    memory: Memory
    parts: ScoreParts | None
    badges: Sequence[tuple[str, str]]


async def memories(visit: Visit) -> Response:
    """Show the page."""
    return visit.show("memories/page.html", await _values(visit))


async def _values(visit: Visit) -> dict[str, object]:
    query = visit.query("q").strip()
    chosen = {name: visit.query(name) for name in ("q", "namespace", "type", "state", "order")}
    found, more, told = await (_searched(visit, query) if query else _listed(visit))
    return {
        **chosen,
        "chosen": chosen,
        "found": found,
        "more": visit.site.url("memories", **chosen, cursor=more) if more else "",
        "first": visit.site.url("memories", **chosen) if visit.query("cursor") else "",
        "told": told,
        "types": [("", "Every type"), *((each.value, each.value.replace("_", " ")) for each in MemoryType)],
        "states": _STATE_CHOICES,
        "orders": _ORDER_CHOICES,
    }


async def _searched(visit: Visit, query: str) -> tuple[list[_Found], str, str]:
    wanted = RecallQuery(
        query,
        limit=_FOUND,
        namespace=visit.query("namespace") or _EVERYWHERE,
        types=_types(visit),
        is_including_superseded=visit.query("state") in ("superseded", "all"),
        is_internal=True,
    )
    states = _states(visit.query("state"))
    answer = await visit.services.recall.run(visit.caller, wanted)
    found = [
        _Found(each.memory, each.parts, [("disputed", "bad")] if each.is_disputed else [])
        for each in answer.memories
        if not states or each.memory.state in states
    ]
    if states == (MemoryState.FORGOTTEN,):
        return found, "", "What is forgotten cannot be searched; without words, all of it is listed"
    return found, "", f"{len(found)} found, the most useful first"


async def _listed(visit: Visit) -> tuple[list[_Found], str, str]:
    selection = Selection(
        namespace=visit.query("namespace") or _EVERYWHERE, types=_types(visit), states=_states(visit.query("state"))
    )
    page = await visit.services.browse.list_page(
        visit.caller,
        selection,
        limit=_PAGE_SIZE,
        cursor=visit.query("cursor"),
        order_by=_order(visit.query("order")),
    )
    total = (await visit.services.browse.count(visit.caller, selection)).total
    return [_Found(memory, None, []) for memory in page.memories], page.next_cursor, f"{total} in all"


def _types(visit: Visit) -> tuple[MemoryType, ...]:
    return (_one_of(MemoryType, "type", visit.query("type")),) if visit.query("type") else ()


def _states(name: str) -> tuple[MemoryState, ...]:
    if name == "all":
        return tuple(MemoryState)
    return (_one_of(MemoryState, "state", name),) if name else ()


def _order(name: str) -> OrderBy:
    return _one_of(OrderBy, "order", name or OrderBy.CREATED_AT.value)


def _one_of(kind: type[Choice], name: str, text: str) -> Choice:
    try:
        return kind(text)
    except ValueError as error:
        raise InvalidInputError(name, text, "one of " + ", ".join(each.value for each in kind)) from error


PAGE: Final = Page(
    name="memories",
    title="Memories",
    path="memories",
    order=20,
    icon="M3 3.5h7.5L13 6v6.5H3zM5.5 7h5M5.5 9.5h5",
    routes=(
        PageRoute("", memories),
        *(PageRoute("{memory_id}/" + name, act, is_action=True) for name, act in ACTIONS.items()),
        PageRoute("{memory_id}", detail),
    ),
)
