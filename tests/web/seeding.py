"""Fills a sidecar by its own calls with two weeks of a made-up project: memories, sessions, verdicts, disputes, links.

The memories are those of the demo. What the sessions say is made up, and the judge that ships decides what it thinks.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.cli.demo.recordings import load_story
from sidecar.client import Sidecar

PROJECT = "saltmarsh"
DAYS = 14
_JUDGED_WITHIN_S = 60.0


@dataclass(frozen=True)
class Exchange:
    """One question of an agent, and what it did next."""

    query: str
    asked: str
    done: str
    said: str


EXCHANGES = (
    Exchange(
        "how do we deploy the API",
        "Please ship tag v41 of the API.",
        "make migrate-check && ./ops/deploy.sh api v41",
        "`make migrate-check` first, then `./ops/deploy.sh api v41`; I waited for the health check on port 8410.",
    ),
    Exchange(
        "scanner refuses every ticket after a reboot",
        "The scanners at Heron Quay refuse everything since the power cut.",
        "ssh pier-heron systemctl restart wpa_supplicant",
        "They have no battery clock: after the reboot they believe it is 2019, until they see the pier's Wi-Fi.",
    ),
    Exchange(
        "how is money stored",
        "Add the parking fee to bookings.",
        "ALTER TABLE bookings ADD COLUMN parking_pence bigint NOT NULL DEFAULT 0",
        "The fee is integer pence in a bigint column, no floats.",
    ),
    Exchange(
        "the last seat was sold twice",
        "Two people hold the same seat again.",
        "ALTER TABLE seat_holds ADD CONSTRAINT no_overlap EXCLUDE USING gist (seat WITH =, during WITH &&)",
        "I put the exclusion constraint on `seat_holds` back; the check in Python goes.",
    ),
    Exchange(
        "payment timed out, may we charge again",
        "A customer says that the payment timed out.",
        "python tools/reconcile.py --booking B-2231",
        "The provider may have charged all the same, so I reconciled by booking reference before charging again.",
    ),
    Exchange(
        "what may be logged about passengers",
        "Log failed check-ins.",
        'log.warning("check-in failed", extra={"booking": booking.reference})',
        "Only the booking reference is logged, no names or e-mail addresses of passengers.",
    ),
    Exchange(
        "start a database for the tests",
        "Run the tests, please.",
        "make test-db && pytest",
        "`make test-db` started Postgres with btree_gist on port 55432; all tests pass.",
    ),
    Exchange(
        "how long does a queue job stay invisible",
        "Reword the landing page.",
        "sed -i s/ferries/boats/ site/index.html",
        "The landing page now says boats instead of ferries.",
    ),
    Exchange(
        "quarterly revenue forecast of the bakery",
        "What will the bakery earn?",
        "ls",
        "There is nothing on a bakery in this repository.",
    ),
)
_CLIENTS = ("claude-code", "codex", "claude-code", "cursor-hooks", "claude-code")


@dataclass(frozen=True)
class Seeded:
    """What there is now: ids by the names of the demo's memories, and the sessions."""

    ids: dict[str, str]
    sessions: tuple[str, ...]


def seed(sidecar: Sidecar, set_back: Callable[[float], None], *, days: int = DAYS) -> Seeded:
    """Fill the sidecar, day by day up to today; returns when all is embedded and judged.

    Args:
        sidecar: Empty; a session counts as over once nothing was read of it for a moment.
        set_back: Sets its clock back by so many days.
        days: How many days of history.
    """
    set_back(days)
    ids = _store_memories(sidecar)
    sessions: list[str] = []
    number = 0
    for day in range(days - 1, -1, -1):
        set_back(day)
        # Weekdays are busier; the pattern is the same on every run.
        for _ in range((2, 3, 1, 3, 2, 1, 1)[day % 7]):
            exchange = EXCHANGES[(number * 5) % len(EXCHANGES)]
            client = _CLIENTS[number % len(_CLIENTS)]
            session = f"{client.removesuffix('-hooks')}-{number:03d}"
            play(sidecar, exchange, client=client, session=session, at=_moment(day, number))
            sessions.append(session)
            number += 1
    set_back(0)
    _do_the_rest(sidecar, ids)
    sidecar.wait_for_index(admin.WaitForIndexRequest())
    _wait_until_judged(sidecar)
    return Seeded(ids, tuple(sessions))


def _moment(day: int, number: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=day, minutes=number % 7)


def _store_memories(sidecar: Sidecar) -> dict[str, str]:
    ids = {}
    for told in load_story().memories:
        stored = sidecar.remember(
            memory.RememberRequest(
                content=told.content,
                memory_type=memory_pb2.MemoryType.Value(f"MEMORY_TYPE_{told.type.upper()}"),
                importance=told.importance,
                namespace=f"project:{PROJECT}",
            )
        )
        ids[told.name] = stored.memory_id
    sidecar.wait_for_index(admin.WaitForIndexRequest())
    return ids


def play(sidecar: Sidecar, exchange: Exchange, *, client: str, session: str, at: datetime) -> None:
    """Have a client recall, and tell of it what its transcript would."""
    reported = client.removesuffix("-hooks")
    context = memory_pb2.CallContext(client=reported, session=session, project=PROJECT)
    answer = sidecar.recall(memory.RecallRequest(query=exchange.query, context=context))
    shown = _shown(client, session, [found.memory.id for found in answer.memories])
    thread = evidence.SessionThread(client=client, session=session, project=PROJECT, client_version="2.1.197")
    payloads: list[dict[str, object]] = [
        {"user_text": evidence.TextSpoken(text=exchange.asked)},
        {"recall_called": evidence.RecallCalled(call_id=f"{session}-recall", tool="recall")},
        {"tool_answered": evidence.ToolAnswered(call_id=f"{session}-recall", shown=shown)},
        {"tool_called": evidence.ToolCalled(call_id=f"{session}-do", name="Bash", text=exchange.done)},
        {
            "tool_answered": evidence.ToolAnswered(
                call_id=f"{session}-do", shown=evidence.Shown(nothing=evidence.NothingShown()), text="ok"
            )
        },
        {"agent_text": evidence.TextSpoken(text=exchange.said)},
    ]
    events = [
        _event(f"{session}-{number}", thread, at + timedelta(seconds=number), payload)
        for number, payload in enumerate(payloads)
    ]
    cursor = evidence.TranscriptCursor(client=client, path=f"{session}.jsonl", file_id=session, offset=1, lines_read=6)
    acknowledged = list(sidecar.stream_evidence([evidence.StreamEvidenceRequest(cursor=cursor, events=events)]))
    assert len(acknowledged) == 1


def _shown(client: str, session: str, memory_ids: Sequence[str]) -> evidence.Shown:
    if client.endswith("-hooks"):
        return evidence.Shown(cannot_record=evidence.CannotRecord())
    if client == "codex" and session[-1] in "16":
        return evidence.Shown(unknown=evidence.ShownUnknown(reason=evidence.UNKNOWN_REASON_NO_RESULT))
    if not memory_ids:
        return evidence.Shown(nothing=evidence.NothingShown())
    return evidence.Shown(ids=evidence.ShownIds(memory_ids=memory_ids))


def _event(
    event_id: str, thread: evidence.SessionThread, at: datetime, payload: dict[str, object]
) -> evidence.EvidenceEvent:
    event = evidence.EvidenceEvent(event_id=event_id, thread=thread, **payload)  # type: ignore[arg-type]
    event.time.FromDatetime(at)
    return event


def _do_the_rest(sidecar: Sidecar, ids: dict[str, str]) -> None:
    """Challenge, report, replace, relate, promote and forget, so that every page has something to show."""
    caller = memory_pb2.CallContext(client="claude-code", session="claude-code-000", project=PROJECT)
    for name, reason in (
        ("deploy-window", "The window was widened: since October we also deploy on Fridays before noon."),
        ("scanner-sync", "Batches hold 500 scans now, see firmware 3.2."),
    ):
        sidecar.challenge_memory(validation.ChallengeMemoryRequest(memory_id=ids[name], reason=reason, caller=caller))
    for name, is_success in (("tests-database", True), ("backup-restore", False), ("deploy-command", True)):
        sidecar.record_outcome(validation.RecordOutcomeRequest(memory_id=ids[name], success=is_success, caller=caller))
    replaced = memory_pb2.Link(relation=memory_pb2.RELATION_SUPERSEDES, memory_id=ids["old-queue"])
    ids["new-queue"] = sidecar.remember(
        memory.RememberRequest(
            content="The ticket queue runs on Redis streams; RabbitMQ was switched off in May.",
            memory_type=memory_pb2.MEMORY_TYPE_DECISION,
            namespace=f"project:{PROJECT}",
            links=[replaced],
        )
    ).memory_id
    for source, relation, target in (
        ("queue-retries", memory_pb2.RELATION_CAUSED_BY, "queue-visibility"),
        ("payments-timeouts", memory_pb2.RELATION_DERIVED_FROM, "queue-idempotency"),
        ("deploy-rollback", memory_pb2.RELATION_RELATES_TO, "scanner-offline"),
        ("scanner-sync", memory_pb2.RELATION_CONTRADICTS, "scanner-offline"),
    ):
        sidecar.relate(graph.RelateRequest(source_id=ids[source], target_id=ids[target], relation=relation))
    sidecar.promote_memory(validation.PromoteMemoryRequest(memory_id=ids["logging-pii"]))
    sidecar.forget_memories(memory.ForgetMemoriesRequest(memory_id=ids["onboarding"]))


def _wait_until_judged(sidecar: Sidecar) -> None:
    deadline = time.monotonic() + _JUDGED_WITHIN_S
    while (queue := sidecar.get_judge_queue()).waiting:
        assert time.monotonic() < deadline, f"{queue.waiting} cases still wait: {queue.problem}"
        time.sleep(0.05)
