"""What wants a decision: disputes, memories that misled, contradictions, and what nothing has confirmed lately.

Every decision is a use case's, and each that hides a memory can be taken back where it was made.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from starlette.responses import Response

from sidecar.domain.disputes import Dispute, Resolution
from sidecar.domain.health_report import HealthFinding, HealthKind
from sidecar.domain.hygiene import ReviewItem
from sidecar.domain.memory import Memory, Relation
from sidecar.errors import InvalidInputError, MemoryNotFoundError
from sidecar.use_cases.forget import ForgetQuery
from sidecar.use_cases.health import HealthRequest
from sidecar.use_cases.relate import RelateQuery
from sidecar.web.page import Page, PageRoute, Visit

_EVERYWHERE: Final = "*"
_SHOWN: Final = 20
_SETTLED_HERE: Final = "decided in review"
_KINDS: Final = (HealthKind.STALE_GOLDEN_RULE, HealthKind.LOW_CONFIDENCE, HealthKind.STALE)
_TITLES: Final = {
    HealthKind.STALE_GOLDEN_RULE: "Standing rules that nothing has confirmed lately",
    HealthKind.LOW_CONFIDENCE: "Memories of low confidence",
    HealthKind.STALE: "Memories that nothing has confirmed lately",
}


@dataclass(frozen=True, slots=True)
class _DisputeItem:
    dispute: Dispute
    memory: Memory | None


@dataclass(frozen=True, slots=True)
class _MisledItem:
    item: ReviewItem
    memory: Memory | None


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two memories that contradict each other, the newer one first."""

    newer: Memory
    older: Memory


@dataclass(frozen=True, slots=True)
class _Group:
    """Findings of one kind: `count` in all, of which some are listed."""

    kind: str
    title: str
    count: int
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class _Done:
    """What a decision did. `undo`: name of the route that takes it back, with `fields`; empty if nothing is hidden."""

    message: str
    undo: str = ""
    fields: Mapping[str, str] | None = None


_Act: TypeAlias = Callable[[Visit, Mapping[str, str]], Awaitable[_Done]]


async def review(visit: Visit) -> Response:
    """Show the page."""
    return visit.show("review/page.html", await _values(visit))


async def items(visit: Visit) -> Response:
    """Show the part that changes."""
    return visit.show("review/items.html", await _values(visit))


async def findings(visit: Visit) -> Response:
    """Show what a look at all memories finds. Apart from the page, since that takes a second with many of them."""
    return visit.show("review/findings.html", await _found(visit))


async def _keep(visit: Visit, form: Mapping[str, str]) -> _Done:
    await _settle(visit, form, Resolution.KEEP)
    return _Done("Kept: what was said against it counts no longer.")


async def _retire(visit: Visit, form: Mapping[str, str]) -> _Done:
    dispute = await _settle(visit, form, Resolution.RETIRE)
    return _Done("Forgotten.", "restore", {"memory_id": dispute.memory_id})


async def _supersede(visit: Visit, form: Mapping[str, str]) -> _Done:
    """Let the one memory of a contradicting pair take the other's place."""
    newer, older = _field(form, "newer_id"), _field(form, "older_id")
    await visit.services.relate.run(visit.caller, RelateQuery(newer, older, Relation.SUPERSEDES))
    return _Done("Replaced: recalls give the one that holds.")


async def _holds(visit: Visit, form: Mapping[str, str]) -> _Done:
    memory_id = _field(form, "memory_id")
    await visit.services.validate.validate(visit.caller, memory_id, is_success=True, adjustment=None)
    return _Done("Confirmed.")


async def _forget(visit: Visit, form: Mapping[str, str]) -> _Done:
    memory_id = _field(form, "memory_id")
    key = _field(form, "request_key")
    await visit.services.forget.run(visit.caller, ForgetQuery(memory_id=memory_id, request_key=key, is_forced=True))
    return _Done("Forgotten.", "restore", {"memory_id": memory_id})


async def _restore(visit: Visit, form: Mapping[str, str]) -> _Done:
    await visit.services.forget.restore(visit.caller, _field(form, "memory_id"))
    return _Done("Restored.")


async def _settle(visit: Visit, form: Mapping[str, str], resolution: Resolution) -> Dispute:
    """End a dispute; without one, a decision is put on record as a dispute that ends at once."""
    number = form.get("dispute_id", "")
    if not number:
        memory_id = _field(form, "memory_id")
        opened, _ = await visit.services.challenge.run(visit.caller, memory_id, reason=_SETTLED_HERE, evidence="")
        number = str(opened.id)
    if not number.isdecimal():
        raise InvalidInputError("dispute_id", number, "the number of a dispute")
    return await visit.services.challenge.resolve(
        visit.caller, int(number), resolution=resolution, successor_id=form.get("successor_id", "")
    )


def _field(form: Mapping[str, str], name: str) -> str:
    value = form.get(name, "")
    if not value:
        raise InvalidInputError(name, value, "not empty")
    return value


def _answering(act: _Act) -> Callable[[Visit], Awaitable[Response]]:
    async def answer(visit: Visit) -> Response:
        done = await act(visit, await visit.form())
        return visit.show("review/items.html", {**await _values(visit), "done": done})

    return answer


async def _values(visit: Visit) -> dict[str, object]:
    caller = visit.caller
    disputes = await visit.services.challenge.disputes(caller, memory_id="", is_including_resolved=False, limit=_SHOWN)
    reviewed = await visit.services.explain.review_items(caller, limit=_SHOWN)
    disputed = {dispute.memory_id for dispute in disputes}
    return {
        "disputes": [_DisputeItem(each, await _memory(visit, each.memory_id)) for each in disputes],
        "misled": [
            _MisledItem(each, await _memory(visit, each.memory_id))
            for each in reviewed
            if each.memory_id not in disputed
        ],
        "done": None,
    }


async def _found(visit: Visit) -> dict[str, object]:
    report = await visit.services.health.run(visit.caller, HealthRequest(namespace=_EVERYWHERE))
    return {
        "pairs": await _pairs(visit, report.findings),
        "pair_count": report.counts.get(HealthKind.CONTRADICTION, 0),
        "groups": [await _group(visit, kind, report.counts.get(kind, 0), report.findings) for kind in _KINDS],
        "analyzed": report.analyzed,
    }


async def _pairs(visit: Visit, findings: Iterable[HealthFinding]) -> list[_Pair]:
    pairs: list[_Pair] = []
    for finding in findings:
        if finding.kind is HealthKind.CONTRADICTION and len(pairs) < _SHOWN:
            both = [m for m in [await _memory(visit, each) for each in finding.memory_ids] if m is not None]
            if len(both) == len(finding.memory_ids):
                older, newer = sorted(both, key=lambda memory: memory.created_at)
                pairs.append(_Pair(newer, older))
    return pairs


async def _group(visit: Visit, kind: HealthKind, count: int, findings: Sequence[HealthFinding]) -> _Group:
    ids = [memory_id for finding in findings if finding.kind is kind for memory_id in finding.memory_ids][:_SHOWN]
    memories = [memory for memory in [await _memory(visit, each) for each in ids] if memory is not None]
    return _Group(str(kind), _TITLES[kind], count, memories)


async def _memory(visit: Visit, memory_id: str) -> Memory | None:
    try:
        return (await visit.services.browse.get(visit.caller, memory_id)).memory
    except MemoryNotFoundError:
        # Purged since the finding was made; there is nothing to decide any more.
        return None


_ACTIONS: Final[Mapping[str, _Act]] = {
    "keep": _keep,
    "retire": _retire,
    "supersede": _supersede,
    "holds": _holds,
    "forget": _forget,
    "restore": _restore,
}
PAGE: Final = Page(
    name="review",
    title="Review",
    path="review",
    order=40,
    icon="M8 2l6 11.5H2zM8 6.5v3.5M8 12v.1",
    routes=(
        PageRoute("", review),
        PageRoute("items", items),
        PageRoute("findings", findings),
        *(PageRoute(name, _answering(act), is_action=True) for name, act in _ACTIONS.items()),
    ),
)
