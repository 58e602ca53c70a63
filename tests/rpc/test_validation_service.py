"""The ValidationService over real gRPC: reports, confidence, disputes and promotions."""

from collections.abc import Callable, Iterator

import pytest

from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as pb
from sidecar.client import Sidecar
from sidecar.errors import (
    DisputeNotFoundError,
    DisputeResolvedError,
    InvalidInputError,
    MemoryNotFoundError,
)
from tests.e2e.running import running_sidecar

NO_ONE = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

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


def get(sidecar: Sidecar, memory_id: str) -> memory_pb2.Memory:
    return sidecar.get_memory(memory.GetMemoryRequest(memory_id=memory_id)).memory


def test_apply_notes_it_and_moves_nothing(sidecar: Sidecar, store: Store) -> None:
    """Session and context are kept, without secrets."""
    rule = store("Restart the broker after a config change.")
    event = sidecar.apply_memory(pb.ApplyMemoryRequest(memory_id=rule, context=f"restarting with {SECRET}")).event
    assert event.id > 0
    assert (event.memory_id, event.kind, event.session) == (rule, pb.VALIDATION_KIND_APPLIED, "s-test")
    assert event.context.startswith("restarting with [redacted:")
    assert not event.direct
    assert event.HasField("create_time")
    assert get(sidecar, rule).confidence == 0.3


def test_long_remarks_are_cut(sidecar: Sidecar, store: Store) -> None:
    """At 1,000 characters."""
    rule = store("Keep remarks short.")
    applied = sidecar.apply_memory(pb.ApplyMemoryRequest(memory_id=rule, context="word " * 5000))
    failed = sidecar.record_outcome(pb.RecordOutcomeRequest(memory_id=rule, error="oops " * 5000))
    assert 990 <= len(applied.event.context) <= 1000
    assert 990 <= len(failed.event.error) <= 1000


def test_outcomes_move_confidence(sidecar: Sidecar, store: Store) -> None:
    """Up by 0.1, down by 0.15, never below 0."""
    rule = store("The linter runs before the tests.")
    up = sidecar.record_outcome(pb.RecordOutcomeRequest(memory_id=rule, success=True))
    down = sidecar.record_outcome(pb.RecordOutcomeRequest(memory_id=rule, success=False, error="it ran after"))
    assert (up.change.old_confidence, up.change.new_confidence) == (0.3, 0.4)
    assert (down.change.old_confidence, down.change.new_confidence) == (0.4, 0.25)
    assert (up.event.kind, down.event.kind) == (pb.VALIDATION_KIND_SUCCEEDED, pb.VALIDATION_KIND_FAILED)
    assert down.event.error == "it ran after"
    failure = pb.RecordOutcomeRequest(memory_id=rule, success=False)
    figures = [sidecar.record_outcome(failure).change.new_confidence for _ in range(3)]
    assert figures == [0.1, 0.0, 0.0]
    assert get(sidecar, rule).confidence == 0.0


def test_six_successes_make_a_golden_rule_and_failures_take_it_back(sidecar: Sidecar, store: Store) -> None:
    """The old type is kept and comes back below 0.75."""
    rule = store("Squash before merging.", memory_type=memory_pb2.MEMORY_TYPE_CONVENTION)
    validate = pb.ValidateMemoryRequest(memory_id=rule, success=True)
    promoted = [sidecar.validate_memory(validate).change.promoted for _ in range(6)]
    assert promoted == [False] * 5 + [True]
    golden = get(sidecar, rule)
    assert (golden.type, golden.confidence) == (memory_pb2.MEMORY_TYPE_GOLDEN_RULE, 0.9)
    failure = pb.ValidateMemoryRequest(memory_id=rule, success=False)
    first, second = sidecar.validate_memory(failure).change, sidecar.validate_memory(failure).change
    assert (first.new_confidence, first.demoted) == (0.75, False)
    assert (second.new_confidence, second.demoted) == (0.6, True)
    assert second.type == memory_pb2.MEMORY_TYPE_CONVENTION
    assert get(sidecar, rule).type == memory_pb2.MEMORY_TYPE_CONVENTION


def test_validate_takes_its_own_adjustment(sidecar: Sidecar, store: Store) -> None:
    """And says that it was said outright."""
    rule = store("Two reviewers.")
    answer = sidecar.validate_memory(pb.ValidateMemoryRequest(memory_id=rule, success=True, adjustment=0.25))
    assert answer.change.new_confidence == 0.55
    assert answer.event.direct
    nothing = sidecar.validate_memory(pb.ValidateMemoryRequest(memory_id=rule, success=False, adjustment=0.0))
    assert nothing.change.new_confidence == 0.55
    for bad in (-0.1, 1.01, float("nan")):
        with pytest.raises(InvalidInputError) as caught:
            sidecar.validate_memory(pb.ValidateMemoryRequest(memory_id=rule, adjustment=bad))
        assert caught.value.metadata["field"] == "adjustment"


def test_history_is_newest_first_with_counts_over_all(sidecar: Sidecar, store: Store) -> None:
    """A filter and a limit change what is listed, not what is counted."""
    rule = store("History is kept.")
    sidecar.apply_memory(pb.ApplyMemoryRequest(memory_id=rule))
    for is_success in (True, True, False):
        sidecar.record_outcome(pb.RecordOutcomeRequest(memory_id=rule, success=is_success))
    everything = sidecar.list_validation_events(pb.ListValidationEventsRequest(memory_id=rule))
    kinds = [event.kind for event in everything.events]
    assert kinds == [
        pb.VALIDATION_KIND_FAILED,
        pb.VALIDATION_KIND_SUCCEEDED,
        pb.VALIDATION_KIND_SUCCEEDED,
        pb.VALIDATION_KIND_APPLIED,
    ]
    few = sidecar.list_validation_events(
        pb.ListValidationEventsRequest(memory_id=rule, kind=pb.VALIDATION_KIND_SUCCEEDED, limit=1)
    )
    assert [event.id for event in few.events] == [everything.events[1].id]
    summary = few.summary
    assert (summary.total, summary.applied, summary.succeeded, summary.failed) == (4, 1, 2, 1)
    assert summary.success_rate == pytest.approx(2 / 3)


def test_history_lists_fifty_and_has_no_rate_without_outcomes(sidecar: Sidecar, store: Store) -> None:
    """Never 0 for an empty denominator."""
    rule = store("Applied often.")
    for _ in range(51):
        sidecar.apply_memory(pb.ApplyMemoryRequest(memory_id=rule))
    history = sidecar.list_validation_events(pb.ListValidationEventsRequest(memory_id=rule))
    assert (len(history.events), history.summary.total) == (50, 51)
    assert not history.summary.HasField("success_rate")


def test_every_operation_on_no_memory_is_an_error(sidecar: Sidecar) -> None:
    """Missing ids name the field, unknown ones the id."""
    calls: list[tuple[Callable[..., object], Callable[..., object]]] = [
        (sidecar.apply_memory, pb.ApplyMemoryRequest),
        (sidecar.record_outcome, pb.RecordOutcomeRequest),
        (sidecar.validate_memory, pb.ValidateMemoryRequest),
        (sidecar.list_validation_events, pb.ListValidationEventsRequest),
        (sidecar.challenge_memory, lambda memory_id: pb.ChallengeMemoryRequest(memory_id=memory_id, reason="wrong")),
        (sidecar.promote_memory, pb.PromoteMemoryRequest),
        (sidecar.demote_memory, pb.DemoteMemoryRequest),
    ]
    for call, make in calls:
        with pytest.raises(InvalidInputError) as caught:
            call(make(memory_id=""))
        assert caught.value.metadata["field"] == "memory_id"
        with pytest.raises(MemoryNotFoundError):
            call(make(memory_id=NO_ONE))


@pytest.mark.parametrize(
    ("field", "change"), [("limit", {"limit": 1001}), ("limit", {"limit": -1}), ("kind", {"kind": 9})]
)
def test_history_names_the_bad_field(sidecar: Sidecar, store: Store, field: str, change: dict[str, int]) -> None:
    """What is out of range is refused, not cut."""
    request = pb.ListValidationEventsRequest(memory_id=store("Some rule."), **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError) as caught:
        sidecar.list_validation_events(request)
    assert caught.value.metadata["field"] == field


def test_challenge_opens_a_dispute_and_marks_the_memory(sidecar: Sidecar, store: Store, namespace: str) -> None:
    """It ranks lower at once; the same again is pending already."""
    right = store("The cache expires after ten minutes in production.")
    wrong = store("The cache expires after ten hours in production.")
    query = memory.RecallRequest(query="when does the cache expire in production", namespace=namespace, explain=True)
    before = {found.memory.id: found for found in sidecar.recall(query).memories}
    challenge = pb.ChallengeMemoryRequest(memory_id=wrong, reason="It is minutes.", evidence=f"see cache.py, {SECRET}")
    first, again = sidecar.challenge_memory(challenge), sidecar.challenge_memory(challenge)
    assert (first.already_pending, again.already_pending) == (False, True)
    assert first.dispute == again.dispute
    assert (first.dispute.memory_id, first.dispute.reason) == (wrong, "It is minutes.")
    assert first.dispute.resolution == pb.RESOLUTION_UNSPECIFIED
    assert not first.dispute.HasField("resolve_time")
    assert SECRET not in first.dispute.evidence
    after = {found.memory.id: found for found in sidecar.recall(query).memories}
    assert not before[wrong].disputed
    assert after[wrong].disputed
    assert not after[right].disputed
    assert after[wrong].score_parts.reinforcement < before[wrong].score_parts.reinforcement


@pytest.mark.parametrize("reason", ["", " \n", "x" * 1001])
def test_challenge_needs_a_reason(sidecar: Sidecar, store: Store, reason: str) -> None:
    """One that a person can read."""
    with pytest.raises(InvalidInputError) as caught:
        sidecar.challenge_memory(pb.ChallengeMemoryRequest(memory_id=store("Held."), reason=reason))
    assert caught.value.metadata["field"] == "reason"


def open_dispute(sidecar: Sidecar, memory_id: str, reason: str = "It is wrong.") -> pb.Dispute:
    return sidecar.challenge_memory(pb.ChallengeMemoryRequest(memory_id=memory_id, reason=reason)).dispute


def test_dispute_kept(sidecar: Sidecar, store: Store) -> None:
    """It is no longer listed, and ends the same way as often as it is said."""
    rule = store("Kept after all.")
    first, second = open_dispute(sidecar, rule), open_dispute(sidecar, rule, "Another reason.")
    listed = sidecar.list_disputes(pb.ListDisputesRequest(memory_id=rule)).disputes
    assert [dispute.id for dispute in listed] == [second.id, first.id]
    keep = pb.ResolveDisputeRequest(dispute_id=first.id, resolution=pb.RESOLUTION_KEEP)
    ended = sidecar.resolve_dispute(keep).dispute
    assert ended == sidecar.resolve_dispute(keep).dispute
    assert ended.resolution == pb.RESOLUTION_KEEP
    assert ended.HasField("resolve_time")
    assert [d.id for d in sidecar.list_disputes(pb.ListDisputesRequest(memory_id=rule)).disputes] == [second.id]
    everything = pb.ListDisputesRequest(memory_id=rule, include_resolved=True)
    assert len(sidecar.list_disputes(everything).disputes) == 2
    assert len(sidecar.list_disputes(pb.ListDisputesRequest(limit=1)).disputes) == 1
    with pytest.raises(DisputeResolvedError):
        sidecar.resolve_dispute(pb.ResolveDisputeRequest(dispute_id=first.id, resolution=pb.RESOLUTION_RETIRE))


def test_dispute_retired_is_reversible(sidecar: Sidecar, store: Store) -> None:
    """The memory is forgotten, and restoring brings it back."""
    rule = store("Retired.")
    dispute = open_dispute(sidecar, rule)
    sidecar.resolve_dispute(pb.ResolveDisputeRequest(dispute_id=dispute.id, resolution=pb.RESOLUTION_RETIRE))
    assert get(sidecar, rule).state == memory_pb2.MEMORY_STATE_FORGOTTEN
    restored = sidecar.restore_memory(memory.RestoreMemoryRequest(memory_id=rule)).memory
    assert restored.state == memory_pb2.MEMORY_STATE_ACTIVE


def test_dispute_superseded(sidecar: Sidecar, store: Store) -> None:
    """Another memory takes its place."""
    old, new = store("Port 8080."), store("Port 9090.")
    dispute = open_dispute(sidecar, old)
    request = pb.ResolveDisputeRequest(dispute_id=dispute.id, resolution=pb.RESOLUTION_SUPERSEDE, successor_id=new)
    assert sidecar.resolve_dispute(request).dispute.resolution == pb.RESOLUTION_SUPERSEDE
    assert get(sidecar, old).superseded_by == new


def test_resolve_names_what_is_wrong(sidecar: Sidecar, store: Store) -> None:
    """Successor missing or unwanted or unknown, no resolution, no dispute."""
    dispute = open_dispute(sidecar, store("Open."))
    wrong: list[tuple[str, dict[str, object]]] = [
        ("successor_id", {"dispute_id": dispute.id, "resolution": pb.RESOLUTION_SUPERSEDE}),
        ("successor_id", {"dispute_id": dispute.id, "resolution": pb.RESOLUTION_KEEP, "successor_id": NO_ONE}),
        ("resolution", {"dispute_id": dispute.id}),
        ("resolution", {"dispute_id": dispute.id, "resolution": 9}),
        ("dispute_id", {"resolution": pb.RESOLUTION_KEEP}),
    ]
    for field, values in wrong:
        with pytest.raises(InvalidInputError) as caught:
            sidecar.resolve_dispute(pb.ResolveDisputeRequest(**values))  # type: ignore[arg-type]
        assert caught.value.metadata["field"] == field
    with pytest.raises(DisputeNotFoundError):
        sidecar.resolve_dispute(pb.ResolveDisputeRequest(dispute_id=99_999, resolution=pb.RESOLUTION_KEEP))
    with pytest.raises(MemoryNotFoundError):
        sidecar.resolve_dispute(
            pb.ResolveDisputeRequest(dispute_id=dispute.id, resolution=pb.RESOLUTION_SUPERSEDE, successor_id=NO_ONE)
        )


def test_list_disputes_names_what_is_wrong(sidecar: Sidecar) -> None:
    """A limit out of range, a memory that is not there."""
    with pytest.raises(InvalidInputError) as caught:
        sidecar.list_disputes(pb.ListDisputesRequest(limit=1001))
    assert caught.value.metadata["field"] == "limit"
    with pytest.raises(MemoryNotFoundError):
        sidecar.list_disputes(pb.ListDisputesRequest(memory_id=NO_ONE))


def test_promotion_ranks_lower_and_can_be_taken_back(sidecar: Sidecar, store: Store, namespace: str) -> None:
    """A standing rule reaches the agent anyway."""
    rule = store("Never push to main on Fridays.")
    query = memory.RecallRequest(query="push to main on Fridays", namespace=namespace)
    before = sidecar.recall(query).memories[0].score
    assert not sidecar.promote_memory(pb.PromoteMemoryRequest(memory_id=rule)).already_promoted
    assert sidecar.promote_memory(pb.PromoteMemoryRequest(memory_id=rule)).already_promoted
    assert sidecar.recall(query).memories[0].score == pytest.approx(0.6 * before, rel=1e-6)
    assert sidecar.demote_memory(pb.DemoteMemoryRequest(memory_id=rule)).was_promoted
    assert not sidecar.demote_memory(pb.DemoteMemoryRequest(memory_id=rule)).was_promoted
    assert sidecar.recall(query).memories[0].score == pytest.approx(before, rel=1e-6)
