"""One memory of the memories page: what bears on its rank, and what may be done with it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from starlette.responses import Response

from sidecar.domain.evidence import UsageEvent, Valence
from sidecar.domain.memory import Memory, MemoryState
from sidecar.domain.store_values import Edge
from sidecar.domain.validation import ValidationEvent
from sidecar.errors import InvalidInputError
from sidecar.use_cases.explain_memory import MemoryExplanation
from sidecar.use_cases.forget import ForgetQuery
from sidecar.web.page import Visit

_HISTORY: Final = 50
_MOMENTS: Final = 100
_TONES: Final = {
    Valence.USEFUL: "good",
    Valence.MISLED: "bad",
    Valence.RELEVANT: "accent",
    Valence.SURFACED: "neutral",
    Valence.BRIEFED: "neutral",
}
_WORDS: Final = {
    Valence.USEFUL: "Used",
    Valence.MISLED: "Misled",
    Valence.RELEVANT: "Relevant",
    Valence.SURFACED: "Shown by a recall",
    Valence.BRIEFED: "Shown in a briefing",
}
_SOURCES: Final = {
    "in_band": "the agent said so",
    "judge": "as the judge sees it",
    "challenge": "by a challenge",
    "outcome": "by an outcome",
}


@dataclass(frozen=True, slots=True)
class _Moment:
    """One line of the timeline, with where it came from."""

    at: datetime
    title: str
    tone: str
    note: str
    client: str
    session: str


@dataclass(frozen=True, slots=True)
class _Link:
    """A relation as seen from this memory."""

    relation: str
    other_id: str
    weight: float


async def detail(visit: Visit) -> Response:
    """Show one memory; with a query, also what its score for that is made of."""
    return visit.show("memories/detail.html", await _values(visit))


async def _promote(visit: Visit, form: Mapping[str, str]) -> str:
    del form
    await visit.services.challenge.promote(visit.caller, _id(visit))
    return "It is a standing rule now: every briefing holds it."


async def _demote(visit: Visit, form: Mapping[str, str]) -> str:
    del form
    await visit.services.challenge.demote(visit.caller, _id(visit))
    return "It is no standing rule any more."


async def _challenge(visit: Visit, form: Mapping[str, str]) -> str:
    reason = form.get("reason", "")
    await visit.services.challenge.run(visit.caller, _id(visit), reason=reason, evidence="")
    return "Disputed: it ranks lower at once. Review settles it."


async def _holds(visit: Visit, form: Mapping[str, str]) -> str:
    del form
    await visit.services.validate.validate(visit.caller, _id(visit), is_success=True, adjustment=None)
    return "Confirmed."


async def _forget(visit: Visit, form: Mapping[str, str]) -> str:
    key = form.get("request_key", "")
    if not key:
        raise InvalidInputError("request_key", key, "the key of the form")
    query = ForgetQuery(memory_id=_id(visit), request_key=key, is_forced=form.get("force") == "yes")
    await visit.services.forget.run(visit.caller, query)
    return "Forgotten."


async def _restore(visit: Visit, form: Mapping[str, str]) -> str:
    del form
    await visit.services.forget.restore(visit.caller, _id(visit))
    return "Restored."


_Act: TypeAlias = Callable[[Visit, Mapping[str, str]], Awaitable[str]]
_UNDO: Final = {"promote": "demote", "demote": "promote", "forget": "restore"}


def _answering(name: str, act: _Act) -> Callable[[Visit], Awaitable[Response]]:
    async def answer(visit: Visit) -> Response:
        message = await act(visit, await visit.form())
        return visit.show(
            "memories/about.html", {**await _values(visit), "message": message, "undo": _UNDO.get(name, "")}
        )

    return answer


ACTIONS: Final[Mapping[str, Callable[[Visit], Awaitable[Response]]]] = {
    name: _answering(name, act)
    for name, act in {
        "promote": _promote,
        "demote": _demote,
        "challenge": _challenge,
        "holds": _holds,
        "forget": _forget,
        "restore": _restore,
    }.items()
}


def _id(visit: Visit) -> str:
    return visit.segment("memory_id")


async def _values(visit: Visit) -> dict[str, object]:
    memory_id, query = _id(visit), visit.query("q").strip()
    found = await visit.services.browse.get(visit.caller, memory_id)
    explained = await visit.services.explain.run(visit.caller, memory_id, query=query, namespace=found.memory.namespace)
    history = await visit.services.validate.history(visit.caller, memory_id, kind=None, limit=_HISTORY)
    return {
        "memory": found.memory,
        "is_active": found.memory.state is MemoryState.ACTIVE,
        "is_forgotten": found.memory.state is MemoryState.FORGOTTEN,
        "badges": _badges(explained),
        "evidence": explained.evidence,
        "counted": explained.evidence.evidence,
        "verdicts": explained.verdicts,
        "change": explained.rank_change,
        "q": query,
        "links": [_link(edge, memory_id) for edge in found.edges],
        "moments": _timeline(found.memory, found.usage_events, history.events),
        "message": "",
        "undo": "",
    }


def _badges(explained: MemoryExplanation) -> Sequence[tuple[str, str]]:
    badges = []
    if explained.evidence.is_standing_rule:
        badges.append(("standing rule", "accent"))
    if explained.evidence.is_disputed:
        badges.append(("disputed", "bad"))
    if explained.evidence.multiplier != 1.0:
        tone = "good" if explained.evidence.multiplier > 1.0 else "bad"
        badges.append((f"use × {explained.evidence.multiplier:.2f}", tone))
    return badges


def _link(edge: Edge, memory_id: str) -> _Link:
    is_from_here = edge.source_id == memory_id
    relation = str(edge.relation).replace("_", " ")
    return _Link(
        relation if is_from_here else f"{relation} (this one)",
        edge.target_id if is_from_here else edge.source_id,
        edge.weight,
    )


def _timeline(memory: Memory, events: Sequence[UsageEvent], history: Sequence[ValidationEvent]) -> Sequence[_Moment]:
    """Return all that happened to a memory, newest first; at most `_MOMENTS`, and its beginning."""
    moments = [
        _Moment(
            event.at,
            _WORDS[event.valence],
            _TONES[event.valence],
            _SOURCES.get(str(event.source or ""), ""),
            event.client,
            event.session,
        )
        for event in events
    ]
    moments += [
        _Moment(each.at, str(each.kind).capitalize(), "accent", "as reported", each.client, each.session)
        for each in history
    ]
    moments.sort(key=lambda moment: moment.at, reverse=True)
    stored = _Moment(memory.created_at, "Stored", "neutral", "", memory.client, memory.session)
    return [*moments[:_MOMENTS], stored]
