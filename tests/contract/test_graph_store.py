"""What every graph store must do."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.domain.edge_paths import MAX_EDGES_PER_MEMORY, Direction
from sidecar.domain.edges import EdgeOfId, EdgeOrigin, EdgesOfMemory, EdgesOfPair, NewEdge
from sidecar.domain.memory import Link, MemoryState, Relation
from sidecar.domain.store_values import Edge
from sidecar.errors import EdgeNotFoundError, InvalidInputError, MemoryNotFoundError, SupersessionCircleError
from tests.store_builders import OWNER, SetClock, Store, new_memory, next_memory_id, open_store

RELATES, SUPERSEDES = Relation.RELATES_TO, Relation.SUPERSEDES


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_store(request.param, tmp_path, SetClock())
    yield opened
    await opened.close()


async def stored(store: Store, *contents: str, **fields: object) -> list[str]:
    return [(await store.add(new_memory(content, **fields))).memory_id for content in contents]  # type: ignore[arg-type]


async def states(store: Store, *memory_ids: str) -> list[tuple[MemoryState, str]]:
    memories = [await store.get(OWNER, memory_id) for memory_id in memory_ids]
    return [(memory.state, memory.superseded_by) for memory in memories]


# --- putting ---


async def test_edge_is_stored_once_and_keeps_its_id(store: Store) -> None:
    """Relating the same again sets the weight; whoever holds the id may go on using it."""
    a, b = await stored(store, "a", "b")
    first = await store.put_edge(OWNER, NewEdge(a, b, RELATES))
    again = await store.put_edge(OWNER, NewEdge(a, b, RELATES, 0.25))
    other = await store.put_edge(OWNER, NewEdge(b, a, RELATES))
    assert (first.is_created, again.is_created, other.is_created) == (True, False, True)
    assert again.edge.id == first.edge.id != other.edge.id
    assert (first.edge.weight, again.edge.weight) == (1.0, 0.25)
    assert await store.edges(OWNER, a) == (again.edge, other.edge)


async def test_found_edge_leaves_a_declared_one_alone(store: Store) -> None:
    """What a person or an agent said of two memories is not weakened by what a program computed."""
    a, b, c = await stored(store, "a", "b", "c")
    declared = await store.put_edge(OWNER, NewEdge(a, b, Relation.CONTRADICTS, 0.9))
    found = await store.put_edge(OWNER, NewEdge(a, b, Relation.CONTRADICTS, 0.7, EdgeOrigin.DETECTED))
    assert found.edge == declared.edge
    await store.put_edge(OWNER, NewEdge(a, c, Relation.CONTRADICTS, 0.7, EdgeOrigin.DETECTED))
    raised = await store.put_edge(OWNER, NewEdge(a, c, Relation.CONTRADICTS, 1.0))
    lowered = await store.put_edge(OWNER, NewEdge(a, c, Relation.CONTRADICTS, 0.7, EdgeOrigin.DETECTED))
    assert (raised.edge.weight, lowered.edge.weight) == (1.0, 1.0)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_weight_outside_its_bounds_is_refused(weight: float) -> None:
    """A relevance is a product of weights, and must stay within 0 to 1."""
    with pytest.raises(InvalidInputError, match="weight"):
        NewEdge(next_memory_id(), next_memory_id(), RELATES, weight)


def test_edge_to_itself_is_refused() -> None:
    """A memory says nothing about itself by being related to itself."""
    memory_id = next_memory_id()
    with pytest.raises(InvalidInputError, match="target_id"):
        NewEdge(memory_id, memory_id, RELATES)


async def test_edge_to_what_is_not_there_is_refused(store: Store) -> None:
    """Unknown, forgotten and other owners' memories are all not there."""
    a, forgotten = await stored(store, "a", "forgotten")
    (theirs,) = await stored(store, "theirs", owner="bob")
    await store.forget(OWNER, [forgotten], is_forced=False, is_purge=False)
    for other in (next_memory_id(), forgotten, theirs):
        for new in (NewEdge(a, other, RELATES), NewEdge(other, a, RELATES)):
            with pytest.raises(MemoryNotFoundError):
                await store.put_edge(OWNER, new)
    assert await store.edges(OWNER, a) == ()


async def test_superseding_edge_sets_state_and_pointer(store: Store) -> None:
    """Related later is as good as said at once; a second successor takes over."""
    old, new, newer = await stored(store, "old", "new", "newer")
    outcome = await store.put_edge(OWNER, NewEdge(new, old, SUPERSEDES))
    assert [(row.key, row.state) for row in outcome.changed] == [
        ((await store.get(OWNER, old)).key, MemoryState.SUPERSEDED)
    ]
    assert await states(store, old, new) == [(MemoryState.SUPERSEDED, new), (MemoryState.ACTIVE, "")]
    assert (await store.put_edge(OWNER, NewEdge(new, old, SUPERSEDES, 0.5))).changed == ()
    assert (await store.put_edge(OWNER, NewEdge(newer, old, SUPERSEDES))).changed == ()
    assert await states(store, old) == [(MemoryState.SUPERSEDED, newer)]


async def test_memories_cannot_replace_each_other(store: Store) -> None:
    """Neither directly nor round a corner: none of them would be delivered any more."""
    a, b, c = await stored(store, "a", "b", "c")
    await store.put_edge(OWNER, NewEdge(a, b, SUPERSEDES))
    await store.put_edge(OWNER, NewEdge(b, c, SUPERSEDES))
    for source, target in ((b, a), (c, a), (c, b)):
        with pytest.raises(SupersessionCircleError):
            await store.put_edge(OWNER, NewEdge(source, target, SUPERSEDES))
    await store.put_edge(OWNER, NewEdge(c, a, RELATES))
    assert await states(store, a, b, c) == [
        (MemoryState.ACTIVE, ""),
        (MemoryState.SUPERSEDED, a),
        (MemoryState.SUPERSEDED, b),
    ]


# --- deleting ---


async def test_deleting_a_superseding_edge_gives_the_target_back(store: Store) -> None:
    """Superseding is reversible, whether it was declared with the memory or afterwards."""
    (old,) = await stored(store, "old")
    new = (await store.add(new_memory("new", links=[Link(SUPERSEDES, old)]))).memory_id
    (edge,) = await store.edges(OWNER, old)
    deleted = await store.delete_edges(OWNER, EdgeOfId(edge.id))
    assert deleted.edge_ids == (edge.id,)
    assert [row.state for row in deleted.changed] == [MemoryState.ACTIVE]
    assert await states(store, old, new) == [(MemoryState.ACTIVE, ""), (MemoryState.ACTIVE, "")]


async def test_target_goes_to_the_successor_that_is_left(store: Store) -> None:
    """With one of two successors gone, the other stands."""
    old, new, newer = await stored(store, "old", "new", "newer")
    await store.put_edge(OWNER, NewEdge(new, old, SUPERSEDES))
    second = await store.put_edge(OWNER, NewEdge(newer, old, SUPERSEDES))
    await store.delete_edges(OWNER, EdgeOfId(second.edge.id))
    assert await states(store, old) == [(MemoryState.SUPERSEDED, new)]


async def test_deleting_an_edge_leaves_who_stands_aside_for_its_twin(store: Store) -> None:
    """A text that was said again stands aside for that, also once that is replaced itself: it must not come back."""
    old, replacing = await stored(store, "said twice", "replacing")
    edge = (await store.put_edge(OWNER, NewEdge(replacing, old, SUPERSEDES))).edge
    (twin,) = await stored(store, "said twice")
    await store.forget(OWNER, [replacing], is_forced=False, is_purge=False, request=None)
    (newest,) = await stored(store, "newest")
    await store.put_edge(OWNER, NewEdge(newest, twin, SUPERSEDES))
    await store.delete_edges(OWNER, EdgeOfId(edge.id))
    assert await states(store, old, twin) == [(MemoryState.SUPERSEDED, twin), (MemoryState.SUPERSEDED, newest)]


async def test_forgotten_memory_still_stands_aside_for_its_twin(store: Store) -> None:
    """What is forgotten comes back as it was, whatever edges went meanwhile."""
    old, replacing = await stored(store, "said twice", "replacing")
    edge = (await store.put_edge(OWNER, NewEdge(replacing, old, SUPERSEDES))).edge
    (twin,) = await stored(store, "said twice")
    await store.forget(OWNER, [replacing, old], is_forced=False, is_purge=False, request=None)
    await store.delete_edges(OWNER, EdgeOfId(edge.id))
    await store.restore(OWNER, old)
    assert await states(store, old, twin) == [(MemoryState.SUPERSEDED, twin), (MemoryState.ACTIVE, "")]


async def test_edges_of_a_memory_are_deleted_by_direction_and_relation(store: Store) -> None:
    """Each selector deletes what it names and no more; ids come in ascending order."""
    a, b, c = await stored(store, "a", "b", "c")

    async def edge(source: str, target: str, relation: Relation) -> int:
        return (await store.put_edge(OWNER, NewEdge(source, target, relation))).edge.id

    out = [await edge(a, b, RELATES), await edge(a, c, Relation.CAUSED_BY)]
    into = [await edge(b, a, RELATES), await edge(c, a, RELATES)]
    beside = await edge(b, c, RELATES)
    only_caused = EdgesOfMemory(a, Direction.BOTH, frozenset((Relation.CAUSED_BY,)))
    assert (await store.delete_edges(OWNER, only_caused)).edge_ids == (out[1],)
    assert (await store.delete_edges(OWNER, EdgesOfMemory(a, Direction.IN))).edge_ids == tuple(into)
    assert (await store.delete_edges(OWNER, EdgesOfMemory(a, Direction.IN))).edge_ids == ()
    assert (await store.delete_edges(OWNER, EdgesOfMemory(a))).edge_ids == (out[0],)
    assert [left.id for left in await store.edges(OWNER, b)] == [beside]


async def test_edges_of_a_pair_are_deleted_one_way(store: Store) -> None:
    """From one to the other is not from the other to the one."""
    a, b = await stored(store, "a", "b")
    there = [
        (await store.put_edge(OWNER, NewEdge(a, b, relation))).edge.id for relation in (RELATES, Relation.CAUSED_BY)
    ]
    back = (await store.put_edge(OWNER, NewEdge(b, a, RELATES))).edge.id
    assert (await store.delete_edges(OWNER, EdgesOfPair(a, b, frozenset((RELATES,))))).edge_ids == (there[0],)
    assert (await store.delete_edges(OWNER, EdgesOfPair(a, b))).edge_ids == (there[1],)
    assert [edge.id for edge in await store.edges(OWNER, a)] == [back]


async def test_deleting_what_is_not_there_is_told(store: Store) -> None:
    """A wrong id is a slip, and others' edges are not there."""
    a, b = await stored(store, "a", "b")
    edge = (await store.put_edge(OWNER, NewEdge(a, b, RELATES))).edge
    for owner, edge_id in ((OWNER, edge.id + 1), ("bob", edge.id)):
        with pytest.raises(EdgeNotFoundError):
            await store.delete_edges(owner, EdgeOfId(edge_id))
    for owner, memory_id in ((OWNER, next_memory_id()), ("bob", a)):
        with pytest.raises(MemoryNotFoundError):
            await store.delete_edges(owner, EdgesOfMemory(memory_id))
        with pytest.raises(MemoryNotFoundError):
            await store.delete_edges(owner, EdgesOfPair(b, memory_id))
    assert await store.edges(OWNER, a) == (edge,)


# --- reading ---


async def test_neighbours_come_heaviest_first_for_many_memories(store: Store) -> None:
    """One call serves a whole round of expansion, in an order that does not depend on chance."""
    a, b, c, alone = await stored(store, "a", "b", "c", "alone")
    light = (await store.put_edge(OWNER, NewEdge(a, b, RELATES, 0.5))).edge
    heavy = (await store.put_edge(OWNER, NewEdge(c, a, RELATES, 0.75))).edge
    equal = (await store.put_edge(OWNER, NewEdge(a, b, Relation.CAUSED_BY, 0.5))).edge
    found = await store.neighbours(OWNER, [a, b, alone, a, next_memory_id()])
    assert {memory_id: list(edges) for memory_id, edges in found.items()} == {
        a: [heavy, light, equal],
        b: [light, equal],
    }
    only = await store.neighbours(OWNER, [a, c], relations=frozenset((Relation.CAUSED_BY, SUPERSEDES)))
    assert {memory_id: list(edges) for memory_id, edges in only.items()} == {a: [equal]}
    assert await store.neighbours("bob", [a]) == {}
    assert await store.neighbours(OWNER, []) == {}


async def test_forgotten_memories_are_nobodys_neighbours(store: Store) -> None:
    """What is forgotten is gone from the graph at once, and comes back when it is restored."""
    a, b = await stored(store, "a", "b")
    edge = (await store.put_edge(OWNER, NewEdge(a, b, RELATES))).edge
    await store.forget(OWNER, [b], is_forced=False, is_purge=False)
    assert await store.neighbours(OWNER, [a, b]) == {}
    await store.restore(OWNER, b)
    assert await store.neighbours(OWNER, [a]) == {a: (edge,)}


async def test_hub_shows_its_heaviest_edges(store: Store) -> None:
    """A memory that everything is related to must not flood an expansion."""
    (hub,) = await stored(store, "hub")
    leaves = await stored(store, *(f"leaf {number}" for number in range(MAX_EDGES_PER_MEMORY + 5)))
    for number, leaf in enumerate(leaves):
        await store.put_edge(OWNER, NewEdge(leaf, hub, RELATES, number / 1000))
    edges = (await store.neighbours(OWNER, [hub]))[hub]
    assert len(edges) == MAX_EDGES_PER_MEMORY
    assert [edge.source_id for edge in edges[:2]] == [leaves[-1], leaves[-2]]


# --- linking by itself ---


async def test_auto_link_relates_to_what_may_be_related(store: Store) -> None:
    """Active memories of the same namespace or global, best first, the cosine as weight."""
    (a,) = await stored(store, "a")
    near, old, gone = await stored(store, "near", "old", "gone")
    (everywhere,) = await stored(store, "everywhere", namespace="global")
    (elsewhere,) = await stored(store, "elsewhere", namespace="project:other")
    (theirs,) = await stored(store, "theirs", owner="bob")
    await store.add(new_memory("successor", links=[Link(SUPERSEDES, old)]))
    await store.forget(OWNER, [gone], is_forced=False, is_purge=False)
    keys = {
        memory_id: (await store.get(owner, memory_id)).key
        for memory_id, owner in [(i, OWNER) for i in (a, near, everywhere, old, gone, elsewhere)] + [(theirs, "bob")]
    }
    asked = [(everywhere, 1.0 + 1e-6), (a, 1.0), (elsewhere, 0.9), (theirs, 0.9), (old, 0.8), (gone, 0.8), (near, 0.7)]
    pairs = [(keys[memory_id], cosine) for memory_id, cosine in asked] + [(10_000, 0.9)]
    edges = await store.auto_link(keys[a], pairs)
    assert [(edge.source_id, edge.target_id, edge.relation, edge.weight) for edge in edges] == [
        (a, everywhere, RELATES, 1.0),
        (a, near, RELATES, 0.7),
    ]
    assert await store.edges(OWNER, a) == edges
    assert await store.auto_link(keys[a], pairs) == ()
    assert await store.auto_link(keys[gone], [(keys[near], 0.9)]) == ()
    assert await store.auto_link(10_000, [(keys[near], 0.9)]) == ()


async def test_auto_link_leaves_related_pairs_alone(store: Store) -> None:
    """Whatever was said of two memories, in whichever direction, says more than that they are near."""
    a, b, c = await stored(store, "a", "b", "c")
    await store.put_edge(OWNER, NewEdge(a, b, Relation.CAUSED_BY, 0.25))
    await store.put_edge(OWNER, NewEdge(c, a, RELATES, 0.25))
    before = await store.edges(OWNER, a)
    keys = [(await store.get(OWNER, memory_id)).key for memory_id in (a, b, c)]
    assert await store.auto_link(keys[0], [(keys[1], 0.9), (keys[2], 0.9)]) == ()
    assert await store.edges(OWNER, a) == before


# --- refining what was linked by itself ---


async def auto_linked(store: Store, *contents: str) -> tuple[list[str], Edge]:
    """Store memories and relate the first two as `auto_link` does; return their ids and the edge."""
    ids = await stored(store, *contents)
    keys = [(await store.get(OWNER, memory_id)).key for memory_id in ids]
    (edge,) = await store.auto_link(keys[0], [(keys[1], 0.75)])
    return ids, edge


async def test_refined_edge_keeps_id_and_weight(store: Store) -> None:
    """It is the same edge, which says more; it is refined once."""
    (a, b), edge = await auto_linked(store, "a", "b")
    refined = await store.refine_edge(OWNER, edge.id, Relation.CAUSED_BY)
    assert refined == replace(edge, relation=Relation.CAUSED_BY)
    assert await store.edges(OWNER, a) == (refined,)
    assert await store.refine_edge(OWNER, edge.id, Relation.CONTRADICTS) is None
    assert await store.edges(OWNER, b) == (refined,)


async def test_what_a_caller_declared_is_not_refined(store: Store) -> None:
    """Nor what another owner has, nor what is gone."""
    (a, b), edge = await auto_linked(store, "a", "b")
    assert await store.refine_edge("bob", edge.id, Relation.CAUSED_BY) is None
    await store.put_edge(OWNER, NewEdge(a, b, RELATES, 0.5))
    assert await store.refine_edge(OWNER, edge.id, Relation.CAUSED_BY) is None
    assert (await store.edges(OWNER, a))[0].relation is RELATES
    await store.delete_edges(OWNER, EdgeOfId(edge.id))
    assert await store.refine_edge(OWNER, edge.id, Relation.CAUSED_BY) is None


async def test_edge_of_a_memory_that_stands_aside_is_not_refined(store: Store) -> None:
    """The answer came too late: one of the two is no longer what was asked about."""
    (a, b), edge = await auto_linked(store, "a", "b")
    await store.forget(OWNER, [b], is_forced=False, is_purge=False)
    assert await store.refine_edge(OWNER, edge.id, Relation.CAUSED_BY) is None
    await store.restore(OWNER, b)
    await store.add(new_memory("successor", links=[Link(SUPERSEDES, a)]))
    assert await store.refine_edge(OWNER, edge.id, Relation.CAUSED_BY) is None


async def test_no_second_edge_of_a_relation_comes_about(store: Store) -> None:
    """Whoever said it first, in whichever direction, has said it."""
    (a, b), edge = await auto_linked(store, "a", "b")
    await store.put_edge(OWNER, NewEdge(b, a, Relation.CONTRADICTS, 0.5))
    assert await store.refine_edge(OWNER, edge.id, Relation.CONTRADICTS) is None
    refined = await store.refine_edge(OWNER, edge.id, Relation.DERIVED_FROM)
    assert refined is not None
    assert {each.relation for each in await store.edges(OWNER, a)} == {Relation.CONTRADICTS, Relation.DERIVED_FROM}


async def test_nothing_is_refined_into_superseding(store: Store) -> None:
    """That would take a memory out of every answer on a guess."""
    (_, b), edge = await auto_linked(store, "a", "b")
    with pytest.raises(InvalidInputError, match="supersedes"):
        await store.refine_edge(OWNER, edge.id, SUPERSEDES)
    assert (await store.get(OWNER, b)).state is MemoryState.ACTIVE
