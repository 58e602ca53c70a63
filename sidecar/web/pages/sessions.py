"""What each session of an agent was shown, what of it was used, and what cannot be known. No text of transcripts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from sidecar.domain.coverage import client_and_channel
from sidecar.domain.evidence import SessionCoverage, SessionRecall, ShownState, UsageEvent, Valence
from sidecar.domain.judge_jobs import StoredVerdict
from sidecar.domain.memory import Memory
from sidecar.errors import MemoryNotFoundError, NotFoundError
from sidecar.use_cases.collect_evidence import DEFAULT_SESSIONS, MAX_SESSIONS
from sidecar.web.page import Page, PageRoute, Visit
from sidecar.web.rendering import percent

_COLUMNS: Final = (
    ("Session", ""),
    ("Client", ""),
    ("Project", ""),
    ("Last seen", ""),
    ("Recalls", "num"),
    ("Shown", "num"),
    ("Used", "num"),
    ("Not judged yet", "num"),
    ("Not known", ""),
)
_MAX_MEMORIES: Final = 200
_TONES: Final = {Valence.USEFUL: "good", Valence.MISLED: "bad", Valence.RELEVANT: "accent"}
_WORDS: Final = {Valence.USEFUL: "used", Valence.MISLED: "misled", Valence.RELEVANT: "relevant"}
_SOURCES: Final = {"in_band": "said so itself", "judge": "judge", "challenge": "challenged", "outcome": "outcome"}


@dataclass(frozen=True, slots=True)
class _Row:
    """A session; `unknown_why` says in words what could not be read."""

    coverage: SessionCoverage
    client: str
    channel: str
    unknown: int
    unknown_why: str


@dataclass(frozen=True, slots=True)
class _ShownMemory:
    """A memory that a session was shown. `memory`: None if it was purged; `marks`: what came of it, with tones."""

    memory_id: str
    memory: Memory | None
    marks: Sequence[tuple[str, str]]
    verdict: str


@dataclass(frozen=True, slots=True)
class _Recall:
    """One recall; `told` says what it showed where there are no memories."""

    recall: SessionRecall
    told: str
    memories: Sequence[_ShownMemory]


async def sessions(visit: Visit) -> Response:
    """Show the list."""
    return visit.show("sessions/page.html", await _list(visit))


async def listed(visit: Visit) -> Response:
    """Show the part that changes."""
    return visit.show("sessions/list.html", await _list(visit))


async def session(visit: Visit) -> Response:
    """Show one session, recall by recall."""
    client, name = visit.query("client"), visit.query("session")
    recalls = await visit.services.evidence.session_recalls(visit.owner, client, name)
    rows = [row for row in await _rows(visit, MAX_SESSIONS) if _is(row, client, name)]
    if not rows and not recalls:
        raise NotFoundError("there is no such session; it may have been forgotten with what it was shown")
    ids = list(dict.fromkeys(memory_id for recall in recalls for memory_id in recall.shown.memory_ids))
    shown = {memory_id: await _shown(visit, memory_id, client, name) for memory_id in ids[:_MAX_MEMORIES]}
    values = {
        "client": client,
        "session_name": name,
        "rows": rows,
        "left_out": max(len(ids) - _MAX_MEMORIES, 0),
        "recalls": [
            _Recall(each, _told(each), [shown[m] for m in each.shown.memory_ids if m in shown]) for each in recalls
        ],
    }
    return visit.show("sessions/session.html", values)


async def _list(visit: Visit) -> dict[str, object]:
    limit = visit.number("limit", DEFAULT_SESSIONS)
    wanted = visit.query("client")
    every = await _rows(visit, limit)
    return {
        "limit": limit,
        "client": wanted,
        "columns": _COLUMNS,
        "clients": sorted({row.client for row in every}),
        "rows": [row for row in every if wanted in ("", row.client)],
        "more": min(limit * 2, MAX_SESSIONS) if len(every) == limit < MAX_SESSIONS else 0,
    }


async def _rows(visit: Visit, limit: int) -> list[_Row]:
    return [_row(coverage) for coverage in await visit.services.evidence.sessions(visit.owner, limit)]


def _row(coverage: SessionCoverage) -> _Row:
    client, channel = client_and_channel(coverage.thread.client)
    parts = [(_spoken(reason), number) for reason, number in coverage.unknown]
    if coverage.cannot_record:
        parts.append(("not recorded by this client", coverage.cannot_record))
    why = ", ".join(f"{reason}: {number}" for reason, number in parts)
    return _Row(coverage, client, channel, sum(number for _, number in parts), why)


def _is(row: _Row, client: str, name: str) -> bool:
    return (row.coverage.thread.client, row.coverage.thread.session) == (client, name)


async def _shown(visit: Visit, memory_id: str, client: str, name: str) -> _ShownMemory:
    try:
        detail = await visit.services.browse.get(visit.caller, memory_id)
    except MemoryNotFoundError:
        return _ShownMemory(memory_id, None, (), "")
    explained = await visit.services.explain.run(visit.caller, memory_id)
    own = [event for event in detail.usage_events if (event.client, event.session) == (client, name)]
    verdicts = [v for v in explained.verdicts if (v.key.client, v.key.session) == (client, name)]
    return _ShownMemory(memory_id, detail.memory, _marks(own), _verdict(verdicts))


def _marks(events: Iterable[UsageEvent]) -> Sequence[tuple[str, str]]:
    """Return what events of a session say of a memory, each once."""
    marks = {}
    for event in events:
        if event.valence in _WORDS:
            source = _SOURCES.get(str(event.source), "")
            marks[f"{_WORDS[event.valence]} ({source})" if source else _WORDS[event.valence]] = _TONES[event.valence]
    return sorted(marks.items())


def _verdict(verdicts: Sequence[StoredVerdict]) -> str:
    if not verdicts:
        return "not judged"
    latest = verdicts[0]
    figures = latest.verdict
    return (
        f"{latest.judge}: used {percent(figures.used)}, relevant {percent(figures.relevant)}, "
        f"misled {percent(figures.misled)}"
    )


def _told(recall: SessionRecall) -> str:
    if recall.shown.state is ShownState.IDS:
        return ""
    if recall.shown.state is ShownState.NOTHING:
        return "It showed nothing."
    if recall.shown.state is ShownState.CANNOT_RECORD:
        return "What it showed is not recorded by this client."
    return f"What it showed could not be read: {_spoken(str(recall.shown.reason or ''))}."


def _spoken(reason: str) -> str:
    return reason.replace("_", " ") or "no reason told"


PAGE: Final = Page(
    name="sessions",
    title="Sessions",
    path="sessions",
    order=50,
    icon="M2.5 3.5h11v7h-6l-3 3v-3h-2z",
    routes=(PageRoute("", sessions), PageRoute("list", listed), PageRoute("one", session)),
)
