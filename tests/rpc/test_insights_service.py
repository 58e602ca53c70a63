"""The InsightsService over real gRPC: what evidence comes to, why memories rank so, and what forgers achieve."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import insights_service_pb2 as pb
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.client import Sidecar
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.errors import InvalidInputError, MemoryNotFoundError
from tests.e2e.running import running_sidecar

FORGERIES = 1000
NO_ONE = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"

Store = Callable[..., str]


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("home"), embedder="none") as running:
        yield running


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return f"project:{request.node.name.partition('[')[0]}"


@pytest.fixture
def store(sidecar: Sidecar, namespace: str) -> Store:
    """Stores a text and returns its id."""

    def remember(content: str, **fields: object) -> str:
        request = memory.RememberRequest(content=content, namespace=namespace, **fields)  # type: ignore[arg-type]
        return sidecar.remember(request).memory_id

    return remember


def caller(session: str) -> memory_pb2.CallContext:
    return memory_pb2.CallContext(client="test", session=session, project="tested")


def explain(sidecar: Sidecar, memory_id: str, **fields: str) -> pb.ExplainMemoryResponse:
    return sidecar.explain_memory(pb.ExplainMemoryRequest(memory_id=memory_id, **fields))  # type: ignore[arg-type]


def succeed(sidecar: Sidecar, memory_id: str, session: str = "s-1") -> None:
    sidecar.record_outcome(validation.RecordOutcomeRequest(memory_id=memory_id, success=True, caller=caller(session)))


def challenge(sidecar: Sidecar, memory_id: str, reason: str, session: str = "s-1") -> validation.Dispute:
    request = validation.ChallengeMemoryRequest(memory_id=memory_id, reason=reason, caller=caller(session))
    return sidecar.challenge_memory(request).dispute


def forged(number: int, memory_id: str, *, session: str) -> evidence.EvidenceEvent:
    """A made-up recall, its result, or a made-up remember, each with an id of its own."""
    event = evidence.EvidenceEvent(
        event_id=f"forged-{session}-{number}", thread=evidence.SessionThread(client="test", session=session)
    )
    event.time.FromDatetime(datetime.now(UTC))
    call_id = f"call-{session}-{number // 2}"
    if number % 2:
        event.tool_answered.call_id = call_id
        event.tool_answered.shown.ids.memory_ids.append(memory_id)
    else:
        event.recall_called.call_id = call_id
        event.recall_called.tool = "recall"
    return event


def stream(sidecar: Sidecar, events: list[evidence.EvidenceEvent], *, path: str) -> None:
    cursor = evidence.TranscriptCursor(client="test", path=path, file_id="1", offset=1)
    request = evidence.StreamEvidenceRequest(cursor=cursor, events=events)
    assert len(list(sidecar.stream_evidence(iter([request])))) == 1


def test_thousand_forgeries_move_a_memory_by_one_piece_of_evidence(sidecar: Sidecar, store: Store) -> None:
    """Made-up recalls, replayed events, outcomes and links of one session: it has one voice for a memory."""
    memory_id = store("The broker listens on port 7222.")
    events = [forged(number, memory_id, session="forger") for number in range(FORGERIES)]
    stream(sidecar, events, path="a.jsonl")
    stream(sidecar, events, path="replayed.jsonl")
    assert explain(sidecar, memory_id).multiplier == 1.0
    link = memory_pb2.Link(relation=memory_pb2.RELATION_DERIVED_FROM, memory_id=memory_id)
    for number in range(20):
        store(f"A conclusion, number {number}.", links=[link], context=caller("forger"))
        succeed(sidecar, memory_id, "forger")
    found = explain(sidecar, memory_id)
    assert (found.useful, found.misled, found.multiplier) == (1.0, 0.0, multiplier(Evidence(useful=1)))


def test_thousand_challenges_of_one_session_count_once(sidecar: Sidecar, store: Store) -> None:
    """The dispute is open and seen; the rank moves by one voice."""
    memory_id = store("The broker listens on port 7223.")
    for number in range(FORGERIES):
        challenge(sidecar, memory_id, f"wrong, for reason {number % 50}", "forger")
    found = explain(sidecar, memory_id)
    assert (found.misled, found.multiplier, found.disputed) == (1.0, multiplier(Evidence(misled=1)), True)
    assert [item for item in sidecar.list_review_items().items if item.memory_id == memory_id] == []


def test_explanation_names_evidence_arithmetic_and_what_it_changed(
    sidecar: Sidecar, store: Store, namespace: str
) -> None:
    """The rank for a query with evidence of use and without it."""
    plain, used = store("The ferry timetable is imported nightly."), store("The ferry timetable is checked weekly.")
    for number in range(9):
        succeed(sidecar, plain, f"s-{number}")
    before = explain(sidecar, used, query="ferry timetable", namespace=namespace)
    assert (before.multiplier, before.rank_change.rank, before.rank_change.rank_without) == (1.0, 2, 1)
    found = explain(sidecar, plain, query="ferry timetable", namespace=namespace)
    assert found.arithmetic == "1 + 0.15 x ln(1 + 9.00) - 0.25 x ln(1 + 0.00) = 1.345"
    assert len(found.events) == 9
    assert {event.standing for event in found.events} == {pb.EVIDENCE_STANDING_COUNTED}
    assert {event.source for event in found.events} == {"outcome"}
    change = found.rank_change
    assert (change.rank, change.rank_without) == (1, 2)
    assert change.score == pytest.approx(change.score_without * change.reinforcement)
    assert explain(sidecar, plain, query="nothing of the kind", namespace=namespace).rank_change.rank == 0
    assert not explain(sidecar, plain).HasField("rank_change")


def test_explaining_counts_as_no_delivery(sidecar: Sidecar, store: Store, namespace: str) -> None:
    """Looking at a memory must not make it look used."""
    memory_id = store("Deploys happen on Tuesdays.")
    for _ in range(3):
        explain(sidecar, memory_id, query="deploys", namespace=namespace)
    assert explain(sidecar, memory_id).surfaced == 0
    sidecar.recall(memory.RecallRequest(query="deploys", namespace=namespace))
    # Written behind the answer, but before every later write.
    store("Another memory.")
    assert explain(sidecar, memory_id).surfaced == 1


def test_explaining_what_is_not_there_is_refused(sidecar: Sidecar) -> None:
    """By the same errors as everywhere."""
    with pytest.raises(MemoryNotFoundError):
        explain(sidecar, NO_ONE)
    with pytest.raises(MemoryNotFoundError):
        explain(sidecar, "no id")


def test_memory_that_misled_twice_waits_for_a_review(sidecar: Sidecar, store: Store) -> None:
    """Until a dispute about it is settled; it is not removed by itself."""
    memory_id = store("The broker listens on port 7224.")
    challenge(sidecar, memory_id, "it does not", "s-1")
    dispute = challenge(sidecar, memory_id, "nor here", "s-2")
    (item,) = [item for item in sidecar.list_review_items().items if item.memory_id == memory_id]
    assert (item.signals, list(item.sources), len(item.dispute_ids)) == (2, ["challenge"], 2)
    keep = validation.ResolveDisputeRequest(dispute_id=dispute.id, resolution=validation.RESOLUTION_KEEP)
    sidecar.resolve_dispute(keep)
    assert [item for item in sidecar.list_review_items().items if item.memory_id == memory_id] == []
    cleared = explain(sidecar, memory_id)
    assert cleared.multiplier == 1.0
    assert {event.standing for event in cleared.events} == {pb.EVIDENCE_STANDING_CLEARED}


def test_hygiene_on_demand_changes_nothing_that_is_right(sidecar: Sidecar, store: Store) -> None:
    """It finds what has evidence."""
    succeed(sidecar, store("Branches are named after tickets."))
    first, second = sidecar.run_hygiene(), sidecar.run_hygiene()
    assert first.looked_at >= 1
    assert (second.looked_at, second.changed, second.already_running) == (first.looked_at, 0, False)


def test_metrics_come_with_what_they_rest_on(sidecar: Sidecar, store: Store, namespace: str) -> None:
    """As many days as asked for, the last one today."""
    memory_id = store("Fixtures live next to their tests.")
    sidecar.recall(memory.RecallRequest(query="fixtures tests", namespace=namespace, context=caller("m-1")))
    succeed(sidecar, memory_id, "m-1")
    answer = sidecar.export_metrics(pb.ExportMetricsRequest(days=7))
    metrics = {metric.name: metric for metric in answer.metrics}
    assert 0 < metrics["hit_rate"].value <= 1
    assert metrics["hit_rate"].numerator <= metrics["hit_rate"].denominator
    assert not metrics["context_precision"].HasField("value")
    assert metrics["context_precision"].reason
    assert answer.headline == "recurring_facts"
    assert {len(series.values) for series in answer.series} == {7}
    assert {client.client for client in answer.clients} >= {"test"}
    with pytest.raises(InvalidInputError, match="days"):
        sidecar.export_metrics(pb.ExportMetricsRequest(days=366))
    assert sidecar.export_metrics().days == 30


def test_replay_of_a_few_recalls_decides_nothing(sidecar: Sidecar, store: Store, namespace: str) -> None:
    """But tells what it had to go by."""
    memory_id = store("Logs rotate at midnight.")
    sidecar.recall(memory.RecallRequest(query="logs midnight", namespace=namespace, context=caller("r-1")))
    succeed(sidecar, memory_id, "r-1")
    answer = sidecar.replay_recalls(pb.ReplayRecallsRequest(proposed=pb.ReinforcementConstants(useful_gain=0.3)))
    assert answer.outcome == "too_little_data"
    assert answer.judged_recalls >= 1
    with pytest.raises(InvalidInputError, match="misled_loss"):
        sidecar.replay_recalls(pb.ReplayRecallsRequest(proposed=pb.ReinforcementConstants(misled_loss=3)))


def test_judge_queue_tells_what_waits(sidecar: Sidecar, store: Store) -> None:
    """Shown memories wait until their session is judged."""
    memory_id = store("The staging host is called heron.")
    stream(sidecar, [forged(number, memory_id, session="waiting") for number in range(2)], path="w.jsonl")
    queue = sidecar.get_judge_queue()
    assert queue.waiting + queue.done >= 1
    assert sidecar.retry_judge_jobs().retried == 0
