"""Expansion: best-first, bounded, the same however it is fed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.domain.edge_paths import (
    Direction,
    EdgePath,
    RelationChoice,
    followed_steps,
    parse_relation_choice,
)
from sidecar.domain.expansion import Expansion, ExpansionQuery, Reached
from sidecar.domain.memory import Relation
from sidecar.domain.store_values import Edge
from sidecar.errors import InvalidInputError, UnknownRelationError

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = "abcdefgh"

Graph = tuple[Edge, ...]
Seeds = list[tuple[str, float]]


def edge(edge_id: int, source: str, relation: Relation, target: str, weight: float = 1.0) -> Edge:
    return Edge(edge_id, source, target, relation, weight, NOW)


def edges_of(graph: Iterable[Edge], memory_ids: Iterable[str]) -> dict[str, list[Edge]]:
    return {name: [e for e in graph if name in (e.source_id, e.target_id)] for name in memory_ids}


def expand(graph: Graph, seeds: Seeds, query: ExpansionQuery) -> tuple[Reached, ...]:
    expansion = Expansion(seeds, query)
    while wanted := expansion.wanted():
        expansion.feed(edges_of(graph, wanted))
    return expansion.reached()


@st.composite
def graphs(draw: st.DrawFn, relations: Sequence[Relation] = tuple(Relation)) -> Graph:
    names = st.sampled_from(NAMES)
    rows = draw(
        st.lists(st.tuples(names, st.sampled_from(list(relations)), names, st.floats(0, 1)), max_size=16),
    )
    return tuple(edge(number, *row) for number, row in enumerate(rows, start=1))


seed_lists = st.lists(st.tuples(st.sampled_from(NAMES), st.floats(-1, 1)), max_size=3)
depths = st.integers(1, 5)
decays = st.floats(0, 1)
relation_sets = st.frozensets(st.sampled_from(list(Relation)), max_size=3)


def walks(graph: Graph, start: str, query: ExpansionQuery) -> Iterator[EdgePath]:
    """Yield every path without repeats from a memory: the slow and certain way."""
    open_paths = [EdgePath(start)]
    while open_paths:
        path = open_paths.pop()
        yield path
        if path.hops < query.max_depth:
            steps = followed_steps(path.end_id, graph, relations=query.relations, direction=query.direction)
            open_paths += [path.then(step) for step in steps if step.end_id not in path.memory_ids]


def best_by_brute_force(graph: Graph, seeds: Seeds, query: ExpansionQuery) -> dict[str, float]:
    best: dict[str, float] = {}
    for start, similarity in seeds:
        for path in walks(graph, start, query):
            relevance = path.relevance(similarity, decay=query.decay)
            best[path.end_id] = max(best.get(path.end_id, 0.0), relevance)
    return {name: relevance for name, relevance in best.items() if name not in dict(seeds)}


def test_known_case() -> None:
    """Two hops, weights 1.0 and 0.8, supersedes then relates_to: 0.7^2 x 0.8 x sqrt(0.7)."""
    graph = (edge(1, "a", Relation.SUPERSEDES, "b"), edge(2, "b", Relation.RELATES_TO, "c", 0.8))
    nearer, farther = expand(graph, [("a", 1.0)], ExpansionQuery(max_depth=2))
    assert nearer.memory_id == "b"
    assert nearer.relevance == pytest.approx(0.7)
    assert farther.relevance == pytest.approx(0.328, abs=5e-4)
    assert (farther.path.memory_ids, farther.path.hops, farther.distance) == (("a", "b", "c"), 2, 2)
    assert farther.explanation == "a supersedes b, which relates to c"


def test_weights_of_relations_are_the_querys() -> None:
    """Whoever finds contradictions more telling than we do may say so; above 1 an end could outrank its seed."""
    graph = (edge(1, "a", Relation.CONTRADICTS, "b"),)
    weights = dict.fromkeys(Relation, 0.25)
    (reached,) = expand(graph, [("a", 1.0)], ExpansionQuery(relation_weights=weights, decay=1.0))
    assert reached.relevance == pytest.approx(0.25)
    with pytest.raises(InvalidInputError, match="contradicts"):
        ExpansionQuery(relation_weights=weights | {Relation.CONTRADICTS: 1.1})


def test_edges_are_followed_backwards_and_said_so() -> None:
    """What supersedes a memory matters as much as what it supersedes."""
    graph = (edge(1, "new", Relation.SUPERSEDES, "old"), edge(2, "new", Relation.CAUSED_BY, "bug"))
    reached = {r.memory_id: r.explanation for r in expand(graph, [("old", 0.9)], ExpansionQuery(max_depth=2))}
    assert reached == {
        "new": "old is superseded by new",
        "bug": "old is superseded by new, which was caused by bug",
    }


@settings(max_examples=300)
@given(graphs(), seed_lists, depths, decays, relation_sets, relation_sets)
def test_relevance_is_bounded_by_one_and_by_the_seed(
    graph: Graph, seeds: Seeds, depth: int, decay: float, included: frozenset[Relation], excluded: frozenset[Relation]
) -> None:
    """Nothing is more relevant than the seed that leads to it; both relation filters hold on each step."""
    query = ExpansionQuery(
        max_depth=depth, decay=decay, relations=RelationChoice(included, excluded), min_relevance=0.0
    )
    reached = expand(graph, seeds, query)
    best_similarity: dict[str, float] = {}
    for name, similarity in seeds:
        best_similarity[name] = max(best_similarity.get(name, 0.0), similarity)
    assert len({r.memory_id for r in reached}) == len(reached)
    assert not {r.memory_id for r in reached} & best_similarity.keys()
    for r in reached:
        assert 0.0 <= r.relevance <= best_similarity[r.path.start_id] <= 1.0
        assert r.relevance == r.path.relevance(best_similarity[r.path.start_id], decay=decay)
        assert 1 <= r.distance <= r.path.hops <= depth
        assert len(set(r.path.memory_ids)) == r.path.hops + 1
        for relation in r.path.relations:
            assert not included or relation in included
            assert relation not in excluded
    assert [r.relevance for r in reached] == sorted((r.relevance for r in reached), reverse=True)


@settings(max_examples=200)
@given(graphs(), seed_lists, depths, decays, st.sampled_from(list(Direction)))
def test_everything_within_reach_is_reached(
    graph: Graph, seeds: Seeds, depth: int, decay: float, direction: Direction
) -> None:
    """Trying every path finds the same memories, and none of them more relevant than the best of all paths."""
    query = ExpansionQuery(max_depth=depth, decay=decay, direction=direction, min_relevance=0.0)
    best = best_by_brute_force(graph, seeds, query)
    reached = {r.memory_id: r.relevance for r in expand(graph, seeds, query)}
    assert reached.keys() == best.keys()
    assert all(relevance <= best[name] for name, relevance in reached.items())


@settings(max_examples=200)
@given(st.sampled_from(list(Relation)).flatmap(lambda one: graphs([one])), seed_lists, depths, decays)
def test_best_path_is_found_where_relations_weigh_the_same(
    graph: Graph, seeds: Seeds, depth: int, decay: float
) -> None:
    """With one relation a path only loses by growing, so best-first finds the very best one."""
    query = ExpansionQuery(max_depth=depth, decay=decay, min_relevance=0.0)
    reached = {r.memory_id: r.relevance for r in expand(graph, seeds, query)}
    assert reached == pytest.approx(best_by_brute_force(graph, seeds, query))


@given(graphs(), seed_lists, depths, st.integers(1, 8), st.randoms(use_true_random=False))
def test_outcome_does_not_hang_on_how_it_is_fed(
    graph: Graph, seeds: Seeds, depth: int, max_visited: int, chance: object
) -> None:
    """A store may answer in any order and with more than was asked for."""
    query = ExpansionQuery(max_depth=depth, max_visited=max_visited, min_relevance=0.0)
    shuffled = list(graph)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    everything = Expansion(list(reversed(seeds)), query)
    while everything.wanted():
        everything.feed(edges_of(shuffled, NAMES))
    assert everything.reached() == expand(graph, seeds, query)


@given(graphs(), seed_lists, depths, st.integers(1, 8))
def test_visits_are_capped_and_rounds_are_few(graph: Graph, seeds: Seeds, depth: int, max_visited: int) -> None:
    """A store is asked at most once a depth, once for each memory, and for no more than may be visited."""
    expansion = Expansion(seeds, ExpansionQuery(max_depth=depth, max_visited=max_visited, min_relevance=0.0))
    asked: list[tuple[str, ...]] = []
    while wanted := expansion.wanted():
        asked.append(wanted)
        expansion.feed(edges_of(graph, wanted))
    flat = [name for wanted in asked for name in wanted]
    assert len(flat) == len(set(flat))
    assert all(len(wanted) <= max_visited for wanted in asked)
    assert len(expansion.reached()) <= max_visited


def test_rounds_stay_at_the_depth() -> None:
    """Seven memories a level over five levels take five questions, not thousands."""
    graph = tuple(
        edge(100 * level + 10 * i + j, f"{level}.{i}", Relation.RELATES_TO, f"{level + 1}.{j}", 0.5 + j / 20)
        for level in range(5)
        for i in range(7)
        for j in range(7)
    )
    expansion = Expansion([("0.0", 1.0)], ExpansionQuery(max_depth=5, min_relevance=0.0))
    rounds = 0
    while wanted := expansion.wanted():
        rounds += 1
        expansion.feed(edges_of(graph, wanted))
    assert rounds == 5
    assert len([r for r in expansion.reached() if r.memory_id.startswith("5.")]) == 7


def test_hub_is_cut_at_its_heaviest_edges() -> None:
    """Of a thousand neighbours the 199 nearest are looked at beside the seed, and it is said that there were more."""
    graph = tuple(edge(n, "hub", Relation.RELATES_TO, f"m{n:04}", n / 1000) for n in range(1, 1001))
    expansion = Expansion([("hub", 1.0)], ExpansionQuery())
    expansion.feed(edges_of(graph, expansion.wanted()))
    assert expansion.wanted() == ()
    assert expansion.is_capped
    assert [r.memory_id for r in expansion.reached()] == [f"m{n:04}" for n in range(1000, 801, -1)]


def test_longer_path_wins_when_it_is_more_relevant() -> None:
    """A direct but faint edge does not hide a strong way round."""
    graph = (
        edge(1, "a", Relation.CONTRADICTS, "c", 0.1),
        edge(2, "a", Relation.SUPERSEDES, "b"),
        edge(3, "b", Relation.SUPERSEDES, "c"),
    )
    found = {r.memory_id: r for r in expand(graph, [("a", 1.0)], ExpansionQuery(max_depth=2))}
    assert found["c"].path.memory_ids == ("a", "b", "c")
    assert found["c"].relevance == pytest.approx(0.49)
    assert found["c"].distance == 1


def test_faint_paths_are_left_out() -> None:
    """An edge without weight carries no relevance, and what is below the floor is not returned."""
    graph = (edge(1, "a", Relation.RELATES_TO, "b", 0.0), edge(2, "a", Relation.RELATES_TO, "c"))
    assert [r.memory_id for r in expand(graph, [("a", 0.5)], ExpansionQuery())] == ["c"]


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -3.0, 7.5])
def test_weights_outside_their_bounds_do_no_harm(weight: float) -> None:
    """A row from elsewhere must not lift a memory above its seed or stop the search."""
    graph = (edge(1, "a", Relation.SUPERSEDES, "b", weight), edge(2, "a", Relation.SUPERSEDES, "c", 0.5))
    query = ExpansionQuery(min_relevance=0.0)
    assert all(0.0 <= r.relevance <= 0.7 for r in expand(graph, [("a", 1.0)], query))


@pytest.mark.parametrize(
    "values",
    [{"max_depth": 0}, {"max_depth": 6}, {"decay": -0.1}, {"decay": 1.01}, {"decay": float("nan")}, {"max_visited": 0}],
)
def test_values_out_of_bounds_are_refused(values: Mapping[str, float]) -> None:
    """A depth or decay that makes no sense is named, not bent."""
    with pytest.raises(InvalidInputError):
        ExpansionQuery(**values)  # type: ignore[arg-type]


def test_exclude_wins_over_include() -> None:
    """A relation that is in both lists is not followed; an unknown one is an error that names its list."""
    choice = parse_relation_choice(["supersedes", "relates_to"], ["supersedes"])
    assert choice.covers(Relation.RELATES_TO)
    assert not choice.covers(Relation.SUPERSEDES)
    assert not choice.covers(Relation.CAUSED_BY)
    with pytest.raises(UnknownRelationError) as caught:
        parse_relation_choice([], ["replaces"])
    assert caught.value.metadata["field"] == "exclude_edge_types"
