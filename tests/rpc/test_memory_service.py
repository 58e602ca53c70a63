"""The MemoryService over real gRPC: every operation, its defaults, its errors."""

import contextlib
from collections.abc import Iterator

import grpc
import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.client import Sidecar
from sidecar.client.channel import bearer, open_channel
from sidecar.domain.ids import is_memory_id
from sidecar.errors import (
    ContentTooLargeError,
    DuplicateMemoryError,
    EmptyQueryError,
    InvalidInputError,
    InvalidNamespaceError,
    MemoryNotForgottenError,
    MemoryNotFoundError,
    RequestKeyReusedError,
    UnknownMemoryTypeError,
)
from tests.e2e.running import running_sidecar, wait_until_embedded

NO_ONE = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return f"project:{request.node.name}"


def remember(sidecar: Sidecar, content: str, namespace: str, **fields: object) -> pb.RememberResponse:
    return sidecar.remember(pb.RememberRequest(content=content, namespace=namespace, **fields))  # type: ignore[arg-type]


def test_remember_gives_id_hash_and_defaults(sidecar: Sidecar, namespace: str) -> None:
    """What is not said has its documented default."""
    stored = remember(sidecar, "  Tests need Postgres.\r\n", namespace)
    memory = sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id)).memory
    assert is_memory_id(stored.memory_id)
    assert not stored.deduplicated
    assert memory.content == "Tests need Postgres."
    assert memory.content_hash == stored.content_hash
    assert memory.type == memory_pb2.MEMORY_TYPE_SESSION
    assert (memory.importance, memory.confidence) == (0.5, 0.3)
    assert memory.provenance == memory_pb2.PROVENANCE_AGENT
    assert (memory.client, memory.session) == ("test", "s-test")


def test_namespace_defaults_to_the_callers_project(sidecar: Sidecar) -> None:
    """A memory belongs to where it was made."""
    stored = sidecar.remember(pb.RememberRequest(content="Where am I stored?"))
    assert sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id)).memory.namespace == "project:tested"


def test_metadata_comes_back_as_it_went_in(sidecar: Sidecar, namespace: str) -> None:
    """Nested objects, lists, whole numbers and other scripts."""
    request = pb.RememberRequest(content="With metadata.", namespace=namespace)
    request.metadata.update({"ticket": 42, "tags": ["a", "ü"], "nested": {"deep": None, "yes": True}})
    stored = sidecar.remember(request)
    found = sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id)).memory.metadata
    assert found == request.metadata


def test_exact_duplicate_is_the_same_memory(sidecar: Sidecar, namespace: str) -> None:
    """Saying it twice stores it once, and changes nothing of it; elsewhere it is another memory."""
    first = remember(sidecar, "Ships on Tuesday.", namespace, importance=0.9)
    again = remember(sidecar, "Ships on Tuesday. \n", namespace, importance=0.1)
    elsewhere = remember(sidecar, "Ships on Tuesday.", f"{namespace}-2")
    assert again.deduplicated
    assert again.memory_id == first.memory_id
    assert elsewhere.memory_id != first.memory_id
    assert sidecar.get_memory(pb.GetMemoryRequest(memory_id=first.memory_id)).memory.importance == 0.9


def test_secrets_never_reach_the_store_and_the_caller_is_told(sidecar: Sidecar, namespace: str) -> None:
    """Also those in metadata."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    request = pb.RememberRequest(content=f"The CI token is {secret} for now.", namespace=namespace)
    request.metadata.update({"token": secret})
    stored = sidecar.remember(request)
    memory = sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id)).memory
    assert secret not in str(memory)
    assert "[redacted:" in memory.content
    assert sum(redaction.count for redaction in stored.redactions) >= 1


def test_repeated_request_key_stores_once(sidecar: Sidecar, namespace: str) -> None:
    """A retry after a lost answer gets the first answer; another text under the key is refused."""
    key = f"{namespace}-key"
    first = remember(sidecar, "Once.", namespace, request_key=key)
    again = remember(sidecar, "Once.", namespace, request_key=key)
    assert first.memory_id == again.memory_id
    assert not again.deduplicated
    with pytest.raises(RequestKeyReusedError):
        remember(sidecar, "Another.", namespace, request_key=key)


def test_supersedes_takes_the_old_one_out_of_default_answers(sidecar: Sidecar, namespace: str) -> None:
    """And points from it to the new one."""
    old = remember(sidecar, "The cache lives in memcached.", namespace)
    link = memory_pb2.Link(relation=memory_pb2.RELATION_SUPERSEDES, memory_id=old.memory_id)
    new = remember(sidecar, "The cache lives in Redis.", namespace, links=[link])
    wait_until_embedded(sidecar)
    default = sidecar.recall(pb.RecallRequest(query="where does the cache live", namespace=namespace))
    everything = sidecar.recall(
        pb.RecallRequest(query="where does the cache live", namespace=namespace, include_superseded=True)
    )
    assert [r.memory.id for r in default.memories] == [new.memory_id]
    assert {r.memory.id for r in everything.memories} == {old.memory_id, new.memory_id}
    detail = sidecar.get_memory(pb.GetMemoryRequest(memory_id=old.memory_id))
    assert detail.memory.state == memory_pb2.MEMORY_STATE_SUPERSEDED
    assert detail.memory.superseded_by == new.memory_id
    assert [edge.relation for edge in detail.edges] == [memory_pb2.RELATION_SUPERSEDES]


def test_link_to_an_unknown_memory_stores_nothing(sidecar: Sidecar, namespace: str) -> None:
    """All or nothing."""
    link = memory_pb2.Link(relation=memory_pb2.RELATION_RELATES_TO, memory_id=NO_ONE)
    with pytest.raises(MemoryNotFoundError):
        remember(sidecar, "Linked to nobody.", namespace, links=[link])
    counted = sidecar.count_memories(pb.CountMemoriesRequest(filter=pb.MemoryFilter(namespace=namespace)))
    assert counted.total == 0


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"content": ""}, InvalidInputError, "content"),
        ({"content": " \n\t"}, InvalidInputError, "content"),
        ({"content": "é" * 40_000}, ContentTooLargeError, "content"),
        ({"namespace": "project:a b"}, InvalidNamespaceError, "namespace"),
        ({"namespace": "*"}, InvalidNamespaceError, "namespace"),
        ({"importance": 1.01}, InvalidInputError, "importance"),
        ({"importance": float("nan")}, InvalidInputError, "importance"),
        ({"confidence": -0.1}, InvalidInputError, "confidence"),
        ({"memory_type": 99}, UnknownMemoryTypeError, "memory_type"),
        ({"provenance": 99}, InvalidInputError, "provenance"),
        ({"request_key": "k" * 65}, InvalidInputError, "request_key"),
        ({"links": [memory_pb2.Link(memory_id=NO_ONE)]}, InvalidInputError, "links.relation"),
        ({"metadata": {"much": "x" * 20_000}}, ContentTooLargeError, "metadata"),
        ({"metadata": {"nan": float("nan")}}, InvalidInputError, "metadata"),
    ],
)
def test_wrong_input_names_its_field(
    sidecar: Sidecar, fields: dict[str, object], error: type[InvalidInputError], field: str
) -> None:
    """Nothing half-done stays behind."""
    before = sidecar.count_memories(pb.CountMemoriesRequest(filter=pb.MemoryFilter(namespace="*"))).total
    with pytest.raises(error) as refused:
        sidecar.remember(pb.RememberRequest(**({"content": "fine"} | fields)))  # type: ignore[arg-type]
    assert refused.value.metadata["field"] == field
    after = sidecar.count_memories(pb.CountMemoriesRequest(filter=pb.MemoryFilter(namespace="*"))).total
    assert after == before


def test_recall_filters_before_the_cut(sidecar: Sidecar, namespace: str) -> None:
    """A rare type is found although a hundred others match better."""
    for number in range(60):
        remember(sidecar, f"The build uses make target number {number}.", namespace)
    rare = remember(
        sidecar,
        "Somebody may want to look at the build.",
        namespace,
        memory_type=memory_pb2.MEMORY_TYPE_TASK,
        importance=0.9,
    )
    wait_until_embedded(sidecar)
    request = pb.RecallRequest(query="which make target does the build use", namespace=namespace, n_results=1)
    request.memory_types.append(memory_pb2.MEMORY_TYPE_TASK)
    assert [r.memory.id for r in sidecar.recall(request).memories] == [rare.memory_id]
    important = pb.RecallRequest(query=request.query, namespace=namespace, n_results=1, min_importance=0.8)
    assert [r.memory.id for r in sidecar.recall(important).memories] == [rare.memory_id]


def test_recall_explains_its_scores(sidecar: Sidecar, namespace: str) -> None:
    """The score is the product of its parts, and only on demand are they sent."""
    remember(sidecar, "Invoices are numbered per tenant.", namespace)
    wait_until_embedded(sidecar)
    answer = sidecar.recall(pb.RecallRequest(query="invoice numbers", namespace=namespace, explain=True))
    found = answer.memories[0]
    parts = found.score_parts
    product = parts.relevance * parts.type_weight * parts.age_factor * parts.provenance_factor * parts.reinforcement
    assert found.score == pytest.approx(product)
    assert answer.recall_id.startswith("rec_")
    assert (answer.total, answer.total_matched) == (1, 1)
    plain = sidecar.recall(pb.RecallRequest(query="invoice numbers", namespace=namespace))
    assert not plain.memories[0].HasField("score_parts")


def test_nothing_relevant_is_an_empty_answer(sidecar: Sidecar, namespace: str) -> None:
    """Not the least bad memories."""
    remember(sidecar, "The dashboard uses a dark theme.", namespace)
    wait_until_embedded(sidecar)
    answer = sidecar.recall(pb.RecallRequest(query="sourdough fermentation temperature", namespace=namespace))
    assert (list(answer.memories), answer.total, answer.HasField("mean_similarity")) == ([], 0, False)


@pytest.mark.parametrize("query", ["", "  ", "\x00", "\n"])
def test_blank_query_is_an_error(sidecar: Sidecar, query: str) -> None:
    """A blank query is a mistake, not a wish for everything."""
    with pytest.raises(EmptyQueryError):
        sidecar.recall(pb.RecallRequest(query=query))


def test_access_moves_only_for_what_was_delivered(sidecar: Sidecar, namespace: str) -> None:
    """Looking is not delivering."""
    stored = remember(sidecar, "Feature flags are read at start.", namespace)
    wait_until_embedded(sidecar)
    query = pb.RecallRequest(query="feature flags", namespace=namespace)
    internal = pb.RecallRequest(query="feature flags", namespace=namespace, internal=True)
    assert sidecar.recall(internal).recall_id == ""
    assert sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id)).memory.access_count == 0
    recall_id = sidecar.recall(query).recall_id
    # Storing waits behind the note of the recall, so that it is there afterwards.
    remember(sidecar, "Something else.", namespace)
    detail = sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id))
    assert detail.memory.access_count == 1
    assert [event.recall_id for event in detail.usage_events] == [recall_id]


def test_being_shown_a_thousand_times_changes_nothing(sidecar: Sidecar, namespace: str) -> None:
    """Returned is not useful."""
    remember(sidecar, "Queries live in SQL files.", namespace)
    remember(sidecar, "Queries are reviewed by two people.", namespace)
    wait_until_embedded(sidecar)
    request = pb.RecallRequest(query="where do queries live", namespace=namespace, explain=True)
    before = [(r.memory.id, r.score_parts.reinforcement) for r in sidecar.recall(request).memories]
    for _ in range(1000):
        sidecar.recall(request)
    assert [(r.memory.id, r.score_parts.reinforcement) for r in sidecar.recall(request).memories] == before


def test_forget_and_restore(sidecar: Sidecar, namespace: str) -> None:
    """Gone from every search at once, and back as it was."""
    stored = remember(sidecar, "The office plant is called Fern.", namespace)
    wait_until_embedded(sidecar)
    query = pb.RecallRequest(query="office plant", namespace=namespace)
    forgotten = sidecar.forget_memories(pb.ForgetMemoriesRequest(memory_id=stored.memory_id))
    assert list(forgotten.deleted_ids) == [stored.memory_id]
    assert not sidecar.recall(query).memories
    restored = sidecar.restore_memory(pb.RestoreMemoryRequest(memory_id=stored.memory_id))
    assert restored.memory.state == memory_pb2.MEMORY_STATE_ACTIVE
    assert [r.memory.id for r in sidecar.recall(query).memories] == [stored.memory_id]
    with pytest.raises(MemoryNotForgottenError):
        sidecar.restore_memory(pb.RestoreMemoryRequest(memory_id=stored.memory_id))


def test_restoring_what_is_said_again_is_refused(sidecar: Sidecar, namespace: str) -> None:
    """Two active memories never say the same."""
    old = remember(sidecar, "Twice said.", namespace)
    sidecar.forget_memories(pb.ForgetMemoriesRequest(memory_id=old.memory_id))
    new = remember(sidecar, "Twice said.", namespace)
    assert new.memory_id != old.memory_id
    with pytest.raises(DuplicateMemoryError):
        sidecar.restore_memory(pb.RestoreMemoryRequest(memory_id=old.memory_id))


def test_preview_forgets_nothing(sidecar: Sidecar, namespace: str) -> None:
    """A query shows first what it would take."""
    stored = remember(sidecar, "The staging password rotates monthly.", namespace)
    wait_until_embedded(sidecar)
    request = pb.ForgetMemoriesRequest(query="rotation of the staging password", namespace=namespace, confirm=False)
    preview = sidecar.forget_memories(request)
    assert preview.preview
    assert [memory.id for memory in preview.memories] == [stored.memory_id]
    assert sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id)).memory.state == (
        memory_pb2.MEMORY_STATE_ACTIVE
    )


def test_golden_rules_are_skipped_unless_forced(sidecar: Sidecar, namespace: str) -> None:
    """And the answer says so."""
    rule = remember(sidecar, "Never log names.", namespace, memory_type=memory_pb2.MEMORY_TYPE_GOLDEN_RULE)
    sure = remember(sidecar, "Surely true.", namespace, confidence=0.1 + 0.2 + 0.6)
    for stored in (rule, sure):
        skipped = sidecar.forget_memories(pb.ForgetMemoriesRequest(input=stored.memory_id)).skipped
        assert [(item.memory_id, item.reason) for item in skipped] == [(stored.memory_id, "golden_rule")]
    assert sidecar.forget_memories(pb.ForgetMemoriesRequest(input=rule.memory_id, force=True)).count == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (pb.ForgetMemoriesRequest(), InvalidInputError),
        (pb.ForgetMemoriesRequest(query=""), InvalidInputError),
        (pb.ForgetMemoriesRequest(memory_id=NO_ONE), MemoryNotFoundError),
        (pb.ForgetMemoriesRequest(query="x", similarity_floor=2), InvalidInputError),
        (pb.ForgetMemoriesRequest(query="x", n_results=101), InvalidInputError),
    ],
)
def test_wrong_forget_is_an_error(sidecar: Sidecar, request_: pb.ForgetMemoriesRequest, error: type[Exception]) -> None:
    """Deleting is never guessed."""
    with pytest.raises(error):
        sidecar.forget_memories(request_)


def test_list_pages_hold_everything_once(sidecar: Sidecar, namespace: str) -> None:
    """Newest first by default; a page token goes on where the page ended."""
    ids = [remember(sidecar, f"Listed {number}.", namespace).memory_id for number in range(7)]
    seen: list[str] = []
    token = ""
    while True:
        request = pb.ListMemoriesRequest(filter=pb.MemoryFilter(namespace=namespace), page_size=3, page_token=token)
        page = sidecar.list_memories(request)
        seen += [memory.id for memory in page.memories]
        token = page.next_page_token
        if not token:
            break
    assert seen == ids[::-1]
    with pytest.raises(InvalidInputError):
        sidecar.list_memories(pb.ListMemoriesRequest(page_token="nonsense"))
    with pytest.raises(InvalidInputError):
        sidecar.list_memories(pb.ListMemoriesRequest(page_size=1001))


def test_count_by_namespace_type_and_state(sidecar: Sidecar, namespace: str) -> None:
    """Only what the filter covers."""
    remember(sidecar, "One.", namespace)
    remember(sidecar, "Two.", namespace, memory_type=memory_pb2.MEMORY_TYPE_FACT)
    gone = remember(sidecar, "Three.", namespace)
    sidecar.forget_memories(pb.ForgetMemoriesRequest(memory_id=gone.memory_id))
    states = [memory_pb2.MEMORY_STATE_ACTIVE, memory_pb2.MEMORY_STATE_FORGOTTEN]
    counted = sidecar.count_memories(
        pb.CountMemoriesRequest(filter=pb.MemoryFilter(namespace=namespace, states=states))
    )
    assert counted.total == 3
    assert dict(counted.by_namespace) == {namespace: 3}
    assert dict(counted.by_type) == {"session": 2, "fact": 1}
    assert dict(counted.by_state) == {"active": 2, "forgotten": 1}


def test_waiting_for_the_index_gives_hints(sidecar: Sidecar, namespace: str) -> None:
    """Near memories are named, nearest first, so that the caller may link instead of repeating."""
    near = remember(sidecar, "Backups run at two in the morning.", namespace)
    wait_until_embedded(sidecar)
    stored = remember(sidecar, "The backup starts at 02:00.", namespace, wait_for_index=True)
    assert stored.indexed
    assert [hint.memory_id for hint in stored.similar_existing][:1] == [near.memory_id]


def test_status_tells_versions_and_parts(sidecar: Sidecar, namespace: str) -> None:
    """A person sees at once what answers."""
    # The model loads behind the first calls, and may be late on a busy machine.
    remember(sidecar, "What is stored waits for the model.", namespace)
    wait_until_embedded(sidecar)
    status = sidecar.get_status(admin.GetStatusRequest())
    assert status.embedder.model == "all-MiniLM-L6-v2"
    assert status.index.state == admin.PART_STATE_READY
    assert status.storage.engine.startswith("SQLite")
    assert status.protocol >= 1
    assert list(status.problems) == []


def test_cancelled_writes_are_found_as_others_are(sidecar: Sidecar, namespace: str) -> None:
    """Whoever gave up waiting may have stored something; it must not be missing from half of the searches."""
    token = bearer(sidecar.endpoint.token)
    with open_channel(sidecar.endpoint) as channel:
        call = channel.unary_unary(
            "/sidecar.api.v1.MemoryService/Remember",
            request_serializer=pb.RememberRequest.SerializeToString,
            response_deserializer=pb.RememberResponse.FromString,
        )
        for number in range(60):
            request = pb.RememberRequest(content=f"Abandoned wish number {number}.", namespace=namespace)
            with contextlib.suppress(grpc.RpcError):
                call(request, timeout=0.0005 + 0.0001 * number, metadata=token)
    wait_until_embedded(sidecar)
    stored = sidecar.list_memories(pb.ListMemoriesRequest(filter=pb.MemoryFilter(namespace=namespace), page_size=1000))
    by_meaning = sidecar.recall(
        pb.RecallRequest(query="abandoned wish", namespace=namespace, n_results=100, internal=True)
    )
    found = {recalled.memory.id for recalled in by_meaning.memories if recalled.HasField("similarity")}
    assert found == {memory.id for memory in stored.memories}


def test_repeated_forget_gives_the_first_answer(sidecar: Sidecar, namespace: str) -> None:
    """A retry whose first answer was lost must not take the next memories."""
    for number in range(8):
        remember(sidecar, f"Disposable remark number {number}.", namespace)
    wait_until_embedded(sidecar)
    request = pb.ForgetMemoriesRequest(
        query="disposable remark", namespace=namespace, n_results=3, purge=True, request_key=f"{namespace}-forget"
    )
    first = sidecar.forget_memories(request)
    again = sidecar.forget_memories(request)
    assert first.count == 3
    assert list(again.deleted_ids) == list(first.deleted_ids)
    counted = sidecar.count_memories(pb.CountMemoriesRequest(filter=pb.MemoryFilter(namespace=namespace)))
    assert counted.total == 5
    request.n_results = 4
    with pytest.raises(RequestKeyReusedError):
        sidecar.forget_memories(request)


def test_links_of_a_duplicate_are_taken(sidecar: Sidecar, namespace: str) -> None:
    """Saying again what is known, and what it replaces, replaces that; an unknown target is still an error."""
    known = remember(sidecar, "The queue is Redis.", namespace)
    old = remember(sidecar, "The queue is RabbitMQ.", namespace)
    link = memory_pb2.Link(relation=memory_pb2.RELATION_SUPERSEDES, memory_id=old.memory_id)
    again = remember(sidecar, "The queue is Redis.", namespace, links=[link])
    assert again.deduplicated
    assert again.memory_id == known.memory_id
    assert sidecar.get_memory(pb.GetMemoryRequest(memory_id=old.memory_id)).memory.superseded_by == known.memory_id
    with pytest.raises(MemoryNotFoundError):
        remember(
            sidecar,
            "The queue is Redis.",
            namespace,
            links=[memory_pb2.Link(relation=memory_pb2.RELATION_RELATES_TO, memory_id=NO_ONE)],
        )


def test_waiting_for_a_duplicate_waits_too(sidecar: Sidecar, namespace: str) -> None:
    """The second of two that say the same may be the one that waits."""
    remember(sidecar, "Said twice in a hurry.", namespace)
    again = remember(sidecar, "Said twice in a hurry.", namespace, wait_for_index=True)
    assert again.deduplicated
    assert again.indexed
