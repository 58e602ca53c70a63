"""The GraphService over real gRPC, and what relations do to recall and remember."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from sidecar.api.v1 import graph_service_pb2 as pb
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.client import Sidecar
from sidecar.errors import (
    EdgeNotFoundError,
    InvalidInputError,
    MemoryNotFoundError,
    SupersessionCircleError,
    UnknownRelationError,
)
from tests.e2e.running import running_sidecar, wait_until_embedded

NO_ONE = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
SUPERSEDES = memory_pb2.RELATION_SUPERSEDES
RELATES_TO = memory_pb2.RELATION_RELATES_TO
CAUSED_BY = memory_pb2.RELATION_CAUSED_BY


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return f"project:{request.node.name.partition('[')[0]}"


@pytest.fixture
def store(sidecar: Sidecar, namespace: str) -> Callable[[str], str]:
    """Stores a text that nothing is related to by itself, and returns its id."""

    def remember(content: str) -> str:
        request = memory.RememberRequest(content=content, namespace=namespace, auto_link=False)
        return sidecar.remember(request).memory_id

    return remember


def relate(
    sidecar: Sidecar, source: str, target: str, relation: memory_pb2.Relation.ValueType, weight: float | None = None
) -> pb.RelateResponse:
    return sidecar.relate(pb.RelateRequest(source_id=source, target_id=target, relation=relation, weight=weight))


def state_of(sidecar: Sidecar, memory_id: str) -> memory_pb2.MemoryState.ValueType:
    return sidecar.get_memory(memory.GetMemoryRequest(memory_id=memory_id)).memory.state


def test_relate_makes_an_edge_with_its_defaults(sidecar: Sidecar, store: Callable[[str], str]) -> None:
    """The weight is 1 unless said; both ends tell of it."""
    source, target = store("The importer retries."), store("The network drops packets.")
    made = relate(sidecar, source, target, CAUSED_BY)
    assert made.created
    assert (made.edge.source_id, made.edge.target_id, made.edge.relation) == (source, target, CAUSED_BY)
    assert made.edge.weight == 1.0
    assert made.edge.HasField("create_time")
    for memory_id in (source, target):
        assert sidecar.get_memory(memory.GetMemoryRequest(memory_id=memory_id)).edges == [made.edge]


def test_relate_again_sets_the_weight_and_keeps_the_id(sidecar: Sidecar, store: Callable[[str], str]) -> None:
    """Idempotent on source, target and relation."""
    source, target = store("Alpha is fast."), store("Beta is slow.")
    first = relate(sidecar, source, target, RELATES_TO)
    again = relate(sidecar, source, target, RELATES_TO, 0.25)
    other_way = relate(sidecar, target, source, RELATES_TO)
    assert not again.created
    assert again.edge.id == first.edge.id
    assert again.edge.weight == 0.25
    assert other_way.created


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("source_id", {"source_id": ""}),
        ("target_id", {"target_id": ""}),
        ("weight", {"weight": 1.5}),
        ("weight", {"weight": float("nan")}),
    ],
)
def test_relate_names_the_bad_field(
    sidecar: Sidecar, store: Callable[[str], str], field: str, change: dict[str, object]
) -> None:
    """Nothing is stored then."""
    source, target = store("One end."), store("Another end.")
    values = {"source_id": source, "target_id": target, "relation": RELATES_TO} | change
    with pytest.raises(InvalidInputError) as caught:
        sidecar.relate(pb.RelateRequest(**values))  # type: ignore[arg-type]
    assert caught.value.metadata["field"] == field
    assert not sidecar.get_memory(memory.GetMemoryRequest(memory_id=source)).edges


def test_relate_needs_a_known_relation_and_two_memories(sidecar: Sidecar, store: Callable[[str], str]) -> None:
    """An end that is not there, a memory with itself, and no relation at all are refused."""
    source = store("Lonely.")
    with pytest.raises(MemoryNotFoundError):
        relate(sidecar, source, NO_ONE, RELATES_TO)
    with pytest.raises(MemoryNotFoundError):
        relate(sidecar, NO_ONE, source, RELATES_TO)
    with pytest.raises(InvalidInputError) as to_itself:
        relate(sidecar, source, source, RELATES_TO)
    assert to_itself.value.metadata["field"] == "target_id"
    for unknown in (0, 99):
        with pytest.raises(UnknownRelationError) as caught:
            relate(sidecar, source, source, unknown)  # type: ignore[arg-type]
        assert caught.value.metadata["field"] == "relation"
        assert "supersedes" in caught.value.message


def test_superseding_by_a_relation_is_reversible(sidecar: Sidecar, store: Callable[[str], str], namespace: str) -> None:
    """The old one leaves default answers with a pointer to the new, and comes back with the relation's end."""
    old, new = store("Deploys go out on Mondays."), store("Deploys go out on Thursdays.")
    made = relate(sidecar, new, old, SUPERSEDES)
    relate(sidecar, new, old, SUPERSEDES)
    replaced = sidecar.get_memory(memory.GetMemoryRequest(memory_id=old)).memory
    assert replaced.state == memory_pb2.MEMORY_STATE_SUPERSEDED
    assert replaced.superseded_by == new
    query = memory.RecallRequest(query="when do deploys go out", namespace=namespace)
    wait_until_embedded(sidecar)
    assert [found.memory.id for found in sidecar.recall(query).memories] == [new]
    with pytest.raises(SupersessionCircleError):
        relate(sidecar, old, new, SUPERSEDES)
    sidecar.delete_edges(pb.DeleteEdgesRequest(edge_id=made.edge.id))
    assert state_of(sidecar, old) == memory_pb2.MEMORY_STATE_ACTIVE
    assert {found.memory.id for found in sidecar.recall(query).memories} == {old, new}


def test_delete_edges_in_each_mode(sidecar: Sidecar, store: Callable[[str], str]) -> None:
    """By id, by memory and direction, by pair, and only some relations."""
    a, b, c = store("Node a."), store("Node b."), store("Node c.")
    first = relate(sidecar, a, b, RELATES_TO).edge.id
    out = relate(sidecar, a, b, CAUSED_BY).edge.id
    back = relate(sidecar, b, a, CAUSED_BY).edge.id
    away = relate(sidecar, c, a, RELATES_TO).edge.id

    by_id = sidecar.delete_edges(pb.DeleteEdgesRequest(edge_id=first))
    assert (list(by_id.deleted_edge_ids), by_id.count) == ([first], 1)
    [gone] = by_id.deleted_edges
    assert (gone.edge.source_id, gone.edge.target_id, gone.edge.relation, gone.edge.weight) == (a, b, RELATES_TO, 1)
    assert gone.origin == pb.EDGE_ORIGIN_DECLARED
    pair = pb.EdgesOfPair(source_id=a, target_id=b)
    filtered = sidecar.delete_edges(pb.DeleteEdgesRequest(pair=pair, relations=[RELATES_TO]))
    assert filtered.count == 0
    assert list(sidecar.delete_edges(pb.DeleteEdgesRequest(pair=pair)).deleted_edge_ids) == [out]
    none_out = pb.EdgesOfMemory(memory_id=a, direction=pb.DIRECTION_OUT)
    assert sidecar.delete_edges(pb.DeleteEdgesRequest(memory=none_out)).count == 0
    everything = pb.EdgesOfMemory(memory_id=a)
    assert list(sidecar.delete_edges(pb.DeleteEdgesRequest(memory=everything)).deleted_edge_ids) == [back, away]


@pytest.mark.parametrize(
    ("field", "selector"),
    [
        ("selector", {}),
        ("memory.memory_id", {"memory": pb.EdgesOfMemory()}),
        ("pair.source_id", {"pair": pb.EdgesOfPair(target_id=NO_ONE)}),
        ("pair.target_id", {"pair": pb.EdgesOfPair(source_id=NO_ONE)}),
        ("relations", {"edge_id": 1, "relations": [RELATES_TO]}),
        ("relations", {"memory": pb.EdgesOfMemory(memory_id=NO_ONE), "relations": [99]}),
        ("direction", {"memory": pb.EdgesOfMemory(memory_id=NO_ONE, direction=9)}),  # type: ignore[arg-type]
    ],
)
def test_delete_edges_names_the_bad_field(sidecar: Sidecar, field: str, selector: dict[str, object]) -> None:
    """A half-given selector must not delete more than was meant."""
    with pytest.raises(InvalidInputError) as caught:
        sidecar.delete_edges(pb.DeleteEdgesRequest(**selector))  # type: ignore[arg-type]
    assert caught.value.metadata["field"] == field


def test_delete_edges_of_nothing_is_an_error(sidecar: Sidecar) -> None:
    """Whoever names what is not there should know."""
    with pytest.raises(EdgeNotFoundError):
        sidecar.delete_edges(pb.DeleteEdgesRequest(edge_id=999_999))
    with pytest.raises(MemoryNotFoundError):
        sidecar.delete_edges(pb.DeleteEdgesRequest(memory=pb.EdgesOfMemory(memory_id=NO_ONE)))


def test_inspect_graph_shows_the_surroundings(sidecar: Sidecar, store: Callable[[str], str]) -> None:
    """Two relations away by default, with scores, and nothing counts as delivered."""
    ids = [store(f"Station {number} of the line.") for number in range(4)]
    edges = [relate(sidecar, a, b, RELATES_TO, 0.5).edge for a, b in pairwise(ids)]
    seen = sidecar.inspect_graph(pb.InspectGraphRequest(memory_id=ids[0]))
    assert seen.origin_id == ids[0]
    assert [(node.id, node.depth) for node in seen.nodes] == [(ids[0], 0), (ids[1], 1), (ids[2], 2)]
    assert seen.nodes[1].preview == "Station 1 of the line."
    assert [edge.id for edge in seen.edges] == [edges[0].id, edges[1].id]
    assert [list(path.node_ids) for path in seen.paths] == [ids[:2], ids[:3]]
    assert seen.paths[0].relevance == pytest.approx(0.7 * 0.5 * 0.7)
    assert seen.paths[1].total_weight == 0.25
    assert list(seen.paths[1].edge_ids) == [edges[0].id, edges[1].id]
    stats = seen.stats
    assert (stats.node_count, stats.edge_count, stats.path_count, stats.deepest) == (3, 2, 2, 2)
    assert not seen.truncated
    assert not seen.mermaid
    assert sidecar.get_memory(memory.GetMemoryRequest(memory_id=ids[1])).memory.access_count == 0


def test_inspect_graph_follows_what_it_is_told(sidecar: Sidecar, store: Callable[[str], str]) -> None:
    """Depth, direction, relations, scores and drawing."""
    a, b, c = store('The "quoted" [one].'), store("Two."), store("Three.")
    relate(sidecar, a, b, RELATES_TO)
    relate(sidecar, c, a, CAUSED_BY)

    def ids(**fields: object) -> set[str]:
        view = sidecar.inspect_graph(pb.InspectGraphRequest(memory_id=a, **fields))  # type: ignore[arg-type]
        return {node.id for node in view.nodes} - {a}

    assert ids() == {b, c}
    assert ids(direction=pb.DIRECTION_OUT) == {b}
    assert ids(direction=pb.DIRECTION_IN) == {c}
    assert ids(relations=[CAUSED_BY]) == {c}
    drawn = sidecar.inspect_graph(pb.InspectGraphRequest(memory_id=a, include_scores=False, include_mermaid=True))
    assert not any(path.HasField("relevance") for path in drawn.paths)
    assert drawn.mermaid.startswith("flowchart LR")
    assert '"quoted"' not in drawn.mermaid


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("memory_id", {"memory_id": ""}),
        ("max_depth", {"max_depth": 6}),
        ("max_depth", {"max_depth": -1}),
        ("decay_factor", {"decay_factor": 1.1}),
        ("relations", {"relations": [77]}),
        ("direction", {"direction": 9}),
    ],
)
def test_inspect_graph_names_the_bad_field(sidecar: Sidecar, field: str, change: dict[str, object]) -> None:
    """Before anything is looked at."""
    with pytest.raises(InvalidInputError) as caught:
        sidecar.inspect_graph(pb.InspectGraphRequest(**({"memory_id": NO_ONE} | change)))  # type: ignore[arg-type]
    assert caught.value.metadata["field"] == field


def test_inspect_graph_of_no_memory(sidecar: Sidecar) -> None:
    """An unknown origin is an error, never an empty graph."""
    with pytest.raises(MemoryNotFoundError):
        sidecar.inspect_graph(pb.InspectGraphRequest(memory_id=NO_ONE))


def test_recall_adds_related_memories(sidecar: Sidecar, store: Callable[[str], str], namespace: str) -> None:
    """Only when asked, one relation away, with the way there in words; they count as delivered."""
    found = store("The ledger job runs at midnight.")
    near, far = store("Zebra stripes."), store("Yellow submarine.")
    relate(sidecar, found, near, CAUSED_BY, 0.8)
    relate(sidecar, near, far, RELATES_TO)
    wait_until_embedded(sidecar)

    def recall(**fields: object) -> memory.RecallResponse:
        request = memory.RecallRequest(query="when does the ledger job run", n_results=1, namespace=namespace, **fields)  # type: ignore[arg-type]
        return sidecar.recall(request)

    assert not recall().expanded
    answer = recall(include_related=True)
    [expanded] = answer.expanded
    assert expanded.memory.id == near
    assert expanded.relevance_score == pytest.approx(answer.memories[0].similarity * 0.7 * 0.8 * 0.9, rel=1e-6)
    assert expanded.hop_distance == 1
    assert list(expanded.path) == [found, near]
    assert expanded.explanation == f"{found} was caused by {near}"
    assert [e.memory.id for e in recall(include_related=True, max_depth=2).expanded] == [near, far]
    assert [e.memory.id for e in recall(include_related=True, max_depth=2, max_expanded=1).expanded] == [near]
    excluded = recall(include_related=True, include_edge_types=[CAUSED_BY], exclude_edge_types=[CAUSED_BY])
    assert not excluded.expanded
    # Deliveries are written behind, but before whatever is written next.
    store("Something else.")
    assert sidecar.get_memory(memory.GetMemoryRequest(memory_id=near)).memory.access_count == 3


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("max_depth", {"max_depth": 6}),
        ("max_expanded", {"max_expanded": 101}),
        ("decay_factor", {"decay_factor": -0.1}),
        ("include_edge_types", {"include_edge_types": [0]}),
        ("exclude_edge_types", {"exclude_edge_types": [66]}),
    ],
)
def test_recall_names_the_bad_field_of_expansion(sidecar: Sidecar, field: str, change: dict[str, object]) -> None:
    """Also where nothing is found."""
    with pytest.raises(InvalidInputError) as caught:
        sidecar.recall(memory.RecallRequest(query="anything", include_related=True, **change))  # type: ignore[arg-type]
    assert caught.value.metadata["field"] == field


def near_texts(sidecar: Sidecar, namespace: str, **fields: object) -> tuple[str, memory.RememberResponse]:
    """Store two near texts, the second waiting for its embedding."""
    first = sidecar.remember(
        memory.RememberRequest(content="The staging database is Postgres 14.", namespace=namespace)
    )
    wait_until_embedded(sidecar)
    second = sidecar.remember(
        memory.RememberRequest(
            content="Our staging database runs Postgres 14 today.",
            namespace=namespace,
            wait_for_index=True,
            **fields,  # type: ignore[arg-type]
        )
    )
    return first.memory_id, second


def test_remember_relates_near_memories(sidecar: Sidecar, namespace: str) -> None:
    """Whoever waits is told what was made: `relates_to`, weighed by the cosine."""
    first, second = near_texts(sidecar, namespace)
    [edge] = second.auto_relationships
    assert second.indexed
    assert (edge.source_id, edge.target_id, edge.relation) == (second.memory_id, first, RELATES_TO)
    assert edge.weight == pytest.approx(second.similar_existing[0].similarity, abs=1e-3)
    assert edge.weight >= 0.6


@pytest.mark.parametrize(
    "fields",
    [{"auto_link": False}, {"max_auto_links": 0}, {"similarity_threshold": 0.999}],
    ids=lambda f: next(iter(f)),
)
def test_remember_relates_nothing_where_it_is_told_so(
    sidecar: Sidecar, namespace: str, fields: dict[str, object]
) -> None:
    """The hint at the near memory stays."""
    first, second = near_texts(sidecar, f"{namespace}-{next(iter(fields))}", **fields)
    assert not second.auto_relationships
    assert second.similar_existing[0].memory_id == first


def test_remember_never_relates_to_what_is_gone(sidecar: Sidecar, namespace: str) -> None:
    """Neither a forgotten memory nor one of another project is related by itself."""
    elsewhere, _ = near_texts(sidecar, f"{namespace}-elsewhere", auto_link=False)
    text = memory.RememberRequest(content="The staging database is Postgres 14.", namespace=namespace)
    forgotten = sidecar.remember(text).memory_id
    wait_until_embedded(sidecar)
    sidecar.forget_memories(memory.ForgetMemoriesRequest(memory_id=forgotten))
    second = sidecar.remember(
        memory.RememberRequest(content="Staging runs on Postgres 14.", namespace=namespace, wait_for_index=True)
    )
    assert second.indexed
    assert elsewhere != forgotten
    assert not second.auto_relationships


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("similarity_threshold", {"similarity_threshold": 1.2}),
        ("max_auto_links", {"max_auto_links": 21}),
        ("max_auto_links", {"max_auto_links": -1}),
    ],
)
def test_remember_names_the_bad_field_of_linking(sidecar: Sidecar, field: str, change: dict[str, object]) -> None:
    """And stores nothing."""
    with pytest.raises(InvalidInputError) as caught:
        sidecar.remember(memory.RememberRequest(content="Not stored.", namespace="project:bad-link", **change))  # type: ignore[arg-type]
    assert caught.value.metadata["field"] == field
    filter_ = memory.MemoryFilter(namespace="project:bad-link")
    assert sidecar.count_memories(memory.CountMemoriesRequest(filter=filter_)).total == 0
