"""DetectContradictions and CheckSupersedes over real gRPC, on the default model."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as pb
from sidecar.client import Sidecar
from sidecar.errors import InvalidInputError, MemoryNotFoundError
from tests.e2e.running import running_sidecar, wait_until_embedded

NO_ONE = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"

Store = Callable[..., str]


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def store(sidecar: Sidecar, request: pytest.FixtureRequest) -> Store:
    """Stores a text in a namespace of the test's own, embedded, and returns its id."""
    namespace = f"project:{request.node.name.partition('[')[0]}"

    def remember(content: str, **fields: object) -> str:
        wanted = memory.RememberRequest(content=content, namespace=namespace, auto_link=False, **fields)  # type: ignore[arg-type]
        memory_id = sidecar.remember(wanted).memory_id
        wait_until_embedded(sidecar)
        return memory_id

    return remember


def edges_of(sidecar: Sidecar, memory_id: str) -> list[memory_pb2.Edge]:
    return list(sidecar.get_memory(memory.GetMemoryRequest(memory_id=memory_id)).edges)


def test_changed_number_is_found_and_related(sidecar: Sidecar, store: Store) -> None:
    """With what differs in each, how it was found, and what was not looked at."""
    old = store("The API gateway listens on port 8080.")
    new = store("The API gateway listens on port 9090.")
    store("Lunch is served at noon.")
    answer = sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=new))
    [found] = answer.contradictions
    assert found.memory_id == old
    assert found.method == "changed_number"
    assert found.similarity >= 0.7
    assert ("9090" in found.own_part, "8080" in found.other_part) == (True, True)
    assert answer.compared == 1
    assert any("language model" in reason for reason in answer.not_checked)
    [edge] = edges_of(sidecar, old)
    assert (edge.id, edge.relation) == (found.edge_id, memory_pb2.RELATION_CONTRADICTS)
    assert edge.weight == pytest.approx(found.similarity)


def test_asked_from_either_side_it_is_one_relation(sidecar: Sidecar, store: Store) -> None:
    """The parts change sides with the question."""
    old = store("Retries are enabled for the mailer.")
    new = store("Retries are not enabled for the mailer.")
    from_new = sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=new)).contradictions[0]
    from_old = sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=old)).contradictions[0]
    assert from_new.edge_id == from_old.edge_id
    assert (from_new.own_part, from_new.other_part) == (from_old.other_part, from_old.own_part)
    assert len(edges_of(sidecar, old)) == 1


def test_nothing_is_related_unless_wanted(sidecar: Sidecar, store: Store) -> None:
    """A higher threshold compares less."""
    store("The queue keeps messages for 7 days.")
    new = store("The queue keeps messages for 14 days.")
    answer = sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=new, create_edges=False))
    assert len(answer.contradictions) == 1
    assert answer.contradictions[0].edge_id == 0
    assert not edges_of(sidecar, new)
    strict = sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=new, similarity_threshold=1.0))
    assert (len(strict.contradictions), strict.compared) == (0, 0)


def test_compatible_memories_are_no_contradiction(sidecar: Sidecar, store: Store) -> None:
    """Precision before recall; a replaced memory is not asked any more."""
    store("The billing service is written in Go.")
    new = store("The billing service is deployed with Helm.")
    answer = sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=new, similarity_threshold=0.0))
    assert not answer.contradictions
    assert answer.compared == 1


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("memory_id", {"memory_id": ""}),
        ("similarity_threshold", {"memory_id": NO_ONE, "similarity_threshold": 1.1}),
        ("similarity_threshold", {"memory_id": NO_ONE, "similarity_threshold": -0.1}),
    ],
)
def test_detect_names_the_bad_field(sidecar: Sidecar, field: str, change: dict[str, object]) -> None:
    """Before anything is compared."""
    with pytest.raises(InvalidInputError) as caught:
        sidecar.detect_contradictions(pb.DetectContradictionsRequest(**change))  # type: ignore[arg-type]
    assert caught.value.metadata["field"] == field


def test_forgotten_and_unknown_memories_are_not_found(sidecar: Sidecar, store: Store) -> None:
    """Neither can contradict nor replace anything."""
    gone = store("Forgotten soon.")
    sidecar.forget_memories(memory.ForgetMemoriesRequest(memory_id=gone))
    for memory_id in (gone, NO_ONE):
        with pytest.raises(MemoryNotFoundError):
            sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=memory_id))
        with pytest.raises(MemoryNotFoundError):
            sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=memory_id))
    with pytest.raises(InvalidInputError) as caught:
        sidecar.check_supersedes(pb.CheckSupersedesRequest())
    assert caught.value.metadata["field"] == "memory_id"


def test_without_a_model_it_says_that_nothing_was_compared(tmp_path: Path) -> None:
    """Never an empty answer that looks like a clean bill."""
    with running_sidecar(tmp_path / "home", embedder="none") as sidecar:
        lonely = sidecar.remember(memory.RememberRequest(content="Alone.")).memory_id
        answer = sidecar.detect_contradictions(pb.DetectContradictionsRequest(memory_id=lonely))
    assert answer.compared == 0
    assert answer.not_checked[0].startswith("nothing was compared: ")


def report(sidecar: Sidecar, memory_id: str, *successes: bool) -> None:
    for is_success in successes:
        sidecar.record_outcome(pb.RecordOutcomeRequest(memory_id=memory_id, success=is_success))


def test_the_better_of_two_replaces_the_older(sidecar: Sidecar, store: Store) -> None:
    """It says why, and the older one points to it."""
    old = store("Clear the build cache with make clean before a release.")
    new = store("Clear the build cache with make distclean before a release.")
    report(sidecar, old, False)
    report(sidecar, new, True, True)
    shown = sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=new, create_edge=False))
    assert (shown.superseded_id, shown.edge_id) == (old, 0)
    assert not edges_of(sidecar, old)
    done = sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=new))
    assert done.superseded_id == old
    assert "2 successes" in done.reason
    replaced = sidecar.get_memory(memory.GetMemoryRequest(memory_id=old))
    assert (replaced.memory.superseded_by, replaced.edges[0].id) == (new, done.edge_id)
    assert not sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=new)).superseded_id
    assert new in sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=old)).reason


def test_what_has_not_proved_better_replaces_nothing(sidecar: Sidecar, store: Store) -> None:
    """Too few successes, then no failure of the older one."""
    store("Run the smoke tests with nox before merging.")
    new = store("Run the smoke tests with tox before merging.")
    report(sidecar, new, True)
    few = sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=new))
    assert (few.superseded_id, "fewer than 2 successes" in few.reason) == ("", True)
    report(sidecar, new, True)
    no_failure = sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=new))
    assert (no_failure.superseded_id, "too few failures" in no_failure.reason) == ("", True)


def test_golden_rules_are_replaced_only_by_force(sidecar: Sidecar, store: Store) -> None:
    """What a person set up stays unless somebody insists."""
    rule = store("Always rebase before you merge.", memory_type=memory_pb2.MEMORY_TYPE_GOLDEN_RULE)
    new = store("Always rebase and sign before you merge.")
    report(sidecar, rule, False)
    report(sidecar, new, True, True)
    kept = sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=new))
    assert (kept.superseded_id, "golden rule" in kept.reason) == ("", True)
    assert sidecar.check_supersedes(pb.CheckSupersedesRequest(memory_id=new, force=True)).superseded_id == rule
