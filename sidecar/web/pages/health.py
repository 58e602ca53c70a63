"""Whether the sidecar works: what waits, what was given up and why, and what it runs on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from sidecar.domain.coverage import ClientCoverage
from sidecar.domain.llm import LlmStatus
from sidecar.use_cases.semantic_index import SemanticState, SemanticStatus
from sidecar.web.page import Page, PageRoute, Visit
from sidecar.web.rendering import count

_COVERAGE_COLUMNS: Final = (
    ("Client", ""),
    ("Version", ""),
    ("Channel", ""),
    ("Files", "num"),
    ("Calls", "num"),
    ("Recalls", "num"),
    ("Unknown", "num"),
    ("Not recognised", "num"),
)
_PARKED_COLUMNS: Final = (("What", ""), ("Tries", "num"), ("Why", "wrap"))


@dataclass(frozen=True, slots=True)
class _Fact:
    """A line of what the sidecar runs on."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class _ClientRow:
    """What could be read of a client; `unknown` recalls by reason, `unrecognised` records by kind, as words."""

    coverage: ClientCoverage
    unknown: int
    unknown_why: str
    unrecognised: int
    unrecognised_why: str


async def health(visit: Visit) -> Response:
    """Show the page."""
    return visit.show("health/page.html", await _values(visit))


async def state(visit: Visit) -> Response:
    """Show the part that changes."""
    return visit.show("health/state.html", await _values(visit))


async def retry_embedding(visit: Visit) -> Response:
    """Have memories embedded again that were given up."""
    retried = await visit.services.retry_parked()
    return await _told(visit, f"{count(retried)} queued to be embedded again.")


async def retry_judging(visit: Visit) -> Response:
    """Have sessions judged again that were given up."""
    retried = await visit.services.judge_queue.retry(visit.owner)
    return await _told(visit, f"{count(retried)} queued to be judged again.")


async def check(visit: Visit) -> Response:
    """Check the database and the index; takes a second at a hundred thousand memories."""
    integrity = await visit.services.look_after.check()
    return visit.show("health/integrity.html", {"integrity": integrity})


async def _told(visit: Visit, message: str) -> Response:
    return visit.show("health/state.html", {**await _values(visit), "message": message})


async def _values(visit: Visit) -> dict[str, object]:
    status = await visit.services.status.run(visit.owner)
    queue = await visit.services.judge_queue.run(visit.owner)
    coverage = await visit.services.evidence.coverage(visit.owner, "")
    return {
        "status": status,
        "queue": queue,
        "search": _search(status.semantic),
        "clients": [_client_row(each) for each in coverage],
        "client_columns": _COVERAGE_COLUMNS,
        "parked_columns": _PARKED_COLUMNS,
        "own_facts": (*_own_facts(visit), *_store_facts(visit, status.store.schema, status.store.engine)),
        "index_facts": _index_facts(status.semantic),
        "llm": _llm(status.llm),
        "message": "",
    }


def _search(semantic: SemanticStatus) -> tuple[str, str]:
    """Return how memories are found, and a tone for it."""
    if semantic.state is SemanticState.READY:
        return "by meaning and words", "good"
    if semantic.state is SemanticState.LOADING:
        return "by words, meaning is loading", "warn"
    return ("by words, as chosen", "neutral") if semantic.is_chosen_off else ("by words only", "bad")


def _own_facts(visit: Visit) -> Sequence[_Fact]:
    about = visit.services.about
    return (
        _Fact("Version", about.version),
        _Fact("Protocol", str(about.protocol)),
        _Fact("Process", str(about.pid)),
        _Fact("Data folder", about.data_folder),
    )


def _store_facts(visit: Visit, schema: int, engine: str) -> Sequence[_Fact]:
    return (_Fact("Schema", str(schema)), _Fact("Database engine", engine), _Fact("Owner", visit.owner))


def _index_facts(semantic: SemanticStatus) -> Sequence[_Fact]:
    facts = [
        _Fact("Vectors", count(semantic.index_size)),
        _Fact("Index", semantic.index_origin or "not there"),
    ]
    if semantic.fingerprint is not None:
        facts += [
            _Fact("Model", semantic.fingerprint.model),
            _Fact("Dimensions", str(semantic.fingerprint.dim)),
        ]
    if semantic.rebuild_reason:
        facts.append(_Fact("Rebuilt because", semantic.rebuild_reason))
    if semantic.cache_lookups:
        hits = f"{count(semantic.cache_hits)} of {count(semantic.cache_lookups)}"
        facts.append(_Fact("Queries known already", hits))
    return facts


def _llm(status: LlmStatus) -> Sequence[_Fact]:
    if status.endpoint is None:
        return (_Fact("Language model", "off"),)
    where = "on this machine" if status.endpoint.is_local else "elsewhere"
    return (
        _Fact("Language model", f"{status.endpoint.model} at {status.endpoint.host}, {where}"),
        _Fact("Calls today", f"{count(status.spent_today.calls)} of {count(status.budget.calls_a_day)}"),
        _Fact("Tokens today", f"{count(status.spent_today.tokens)} of {count(status.budget.tokens_a_day)}"),
    )


def _client_row(coverage: ClientCoverage) -> _ClientRow:
    return _ClientRow(
        coverage,
        unknown=sum(number for _, number in coverage.unknown),
        unknown_why=_in_words(coverage.unknown),
        unrecognised=sum(number for _, number in coverage.unrecognised),
        unrecognised_why=_in_words(coverage.unrecognised),
    )


def _in_words(counts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name.replace('_', ' ') or 'no reason told'}: {number}" for name, number in counts)


PAGE: Final = Page(
    name="health",
    title="Health",
    path="health",
    order=60,
    icon="M1.5 8.5h3l2-5 3 9 2-4h3",
    routes=(
        PageRoute("", health),
        PageRoute("state", state),
        PageRoute("retry-embedding", retry_embedding, is_action=True),
        PageRoute("retry-judging", retry_judging, is_action=True),
        PageRoute("check", check, is_action=True),
    ),
)
