"""Finds what is related to memories: best-first over edges. Asks for edges and is given them; reads no store.

A use case runs it in rounds, and may wait for a store between them:

    expansion = Expansion(seeds, query)
    while wanted := expansion.wanted():
        expansion.feed(await store.neighbours(wanted))
    related = expansion.reached()

There are at most as many rounds as `max_depth`, and the outcome is the same however the edges are asked for.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.domain.edge_paths import (
    ANY_RELATION,
    RELATION_WEIGHTS,
    Direction,
    EdgePath,
    EdgesById,
    RelationChoice,
    RelationWeights,
    Step,
    clamp_fraction,
    followed_steps,
)
from sidecar.domain.memory import parse_fraction
from sidecar.errors import InvalidInputError

MAX_DEPTH: Final = 5
MAX_VISITED: Final = 200
DEFAULT_DEPTH: Final = 1
DEFAULT_DECAY: Final = 0.7
DEFAULT_MIN_RELEVANCE: Final = 0.01
"""Less relevant than that is noise beside any memory that was found by itself."""


@dataclass(frozen=True, slots=True)
class ExpansionQuery:
    """How far to look, and where.

    Attributes:
        max_depth: Most edges on a path, 1 to 5.
        decay: What is left of the relevance after each edge, 0 to 1.
        max_visited: Most memories looked at, seeds included.
        min_relevance: Paths less relevant lead no further, 0 to 1.
        relation_weights: How much of a memory's relevance each relation passes on, 0 to 1.

    Raises:
        InvalidInputError: If a value is outside its bounds.
    """

    max_depth: int = DEFAULT_DEPTH
    decay: float = DEFAULT_DECAY
    relations: RelationChoice = ANY_RELATION
    direction: Direction = Direction.BOTH
    max_visited: int = MAX_VISITED
    min_relevance: float = DEFAULT_MIN_RELEVANCE
    relation_weights: RelationWeights = field(default_factory=lambda: RELATION_WEIGHTS)

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= MAX_DEPTH:
            raise InvalidInputError("max_depth", self.max_depth, f"a number from 1 to {MAX_DEPTH}")
        if not 1 <= self.max_visited <= MAX_VISITED:
            raise InvalidInputError("max_visited", self.max_visited, f"a number from 1 to {MAX_VISITED}")
        parse_fraction(self.decay, field_name="decay_factor")
        parse_fraction(self.min_relevance, field_name="min_relevance")
        for relation, weight in self.relation_weights.items():
            # Above 1 a memory could be more relevant than the one that leads to it.
            parse_fraction(weight, field_name=f"weight of {relation}")


@dataclass(frozen=True, slots=True)
class Reached:
    """A memory that edges lead to, by the most relevant path found.

    Attributes:
        relevance: 0 to 1, never above the similarity of the seed that the path starts at.
        distance: Edges on the shortest path found; the path itself may be longer and more relevant.
    """

    memory_id: str
    relevance: float
    path: EdgePath
    distance: int

    @property
    def explanation(self) -> str:
        """The path in words."""
        return self.path.in_words()


@dataclass(frozen=True, slots=True, order=True)
class _Lead:
    """A path that may be followed. Ordered so that the best comes first and equals always come in the same order."""

    negative_relevance: float
    hops: int
    memory_id: str
    edge_ids: tuple[int, ...]


class Expansion:
    """One search from some memories over the edges around them.

    The geometric mean lets a longer path be more relevant than its beginning, so a memory is looked at once for each
    length of path, and the best path of all counts.
    """

    def __init__(self, seeds: Iterable[tuple[str, float]], query: ExpansionQuery) -> None:
        """Start from (memory id, similarity) pairs; of a repeated id the best counts."""
        self._query = query
        self._similarities: dict[str, float] = {}
        self._steps: dict[str, tuple[Step, ...]] = {}
        self._leads: list[_Lead] = []
        self._paths: dict[_Lead, EdgePath] = {}
        self._best_by_hops: dict[str, list[float]] = {}
        self._followed: set[tuple[str, int]] = set()
        self._visited: dict[str, Reached] = {}
        self._wanted: tuple[str, ...] = ()
        self._is_capped = False
        for memory_id, similarity in seeds:
            known = self._similarities.get(memory_id, 0.0)
            self._similarities[memory_id] = max(known, clamp_fraction(similarity))
        for memory_id in self._similarities:
            self._add_lead(EdgePath(memory_id))
        self._advance()

    @property
    def is_capped(self) -> bool:
        """Whether there was more than may be visited; final once nothing is wanted."""
        return self._is_capped

    def wanted(self) -> tuple[str, ...]:
        """Return the memories whose edges must be fed next, the most promising first; empty when it is finished."""
        return self._wanted

    def feed(self, edges: EdgesById) -> None:
        """Take the edges of the wanted memories, and go on as far as they lead; others' are ignored."""
        for memory_id in self._wanted:
            self._steps[memory_id] = followed_steps(
                memory_id,
                edges.get(memory_id, ()),
                relations=self._query.relations,
                direction=self._query.direction,
            )
        self._advance()

    def reached(self) -> tuple[Reached, ...]:
        """Return what was found, seeds left out, the most relevant first; equal ones the nearest first, then by id."""
        found = (reached for memory_id, reached in self._visited.items() if memory_id not in self._similarities)
        return tuple(sorted(found, key=lambda reached: (-reached.relevance, reached.distance, reached.memory_id)))

    def _advance(self) -> None:
        self._wanted = ()
        while self._leads:
            lead = self._leads[0]
            if (lead.memory_id, lead.hops) in self._followed:
                del self._paths[heapq.heappop(self._leads)]
                continue
            if lead.memory_id not in self._visited and len(self._visited) >= self._query.max_visited:
                self._is_capped = True
                return
            if self._is_unknown(lead):
                self._wanted = self._look_ahead()
                return
            heapq.heappop(self._leads)
            self._follow(lead)

    def _look_ahead(self) -> tuple[str, ...]:
        """Return the unknown memories that may be visited yet: asking for all of them now saves rounds."""
        unknown = dict.fromkeys(lead.memory_id for lead in sorted(self._leads) if self._is_unknown(lead))
        left = self._query.max_visited - len(self._visited)
        return tuple(unknown)[: max(left, 1)]

    def _is_unknown(self, lead: _Lead) -> bool:
        return lead.hops < self._query.max_depth and lead.memory_id not in self._steps

    def _follow(self, lead: _Lead) -> None:
        self._followed.add((lead.memory_id, lead.hops))
        path = self._paths.pop(lead)
        self._visit(path, -lead.negative_relevance)
        if lead.hops == self._query.max_depth:
            return
        on_path = frozenset(path.memory_ids)
        for step in self._steps[lead.memory_id]:
            if step.end_id not in on_path:
                self._add_lead(path.then(step))

    def _visit(self, path: EdgePath, relevance: float) -> None:
        best = Reached(path.end_id, relevance, path, distance=path.hops)
        known = self._visited.get(path.end_id)
        if known is not None:
            better = best if relevance > known.relevance else known
            best = replace(better, distance=min(known.distance, path.hops))
        self._visited[path.end_id] = best

    def _add_lead(self, path: EdgePath) -> None:
        """Note a path unless a known one that is no longer is as relevant.

        A seed itself does not count as such: its next step costs the relation's weight, which the path has paid.
        """
        relevance = path.relevance(
            self._similarities[path.start_id],
            decay=self._query.decay,
            relation_weights=self._query.relation_weights,
        )
        best = self._best_by_hops.setdefault(path.end_id, [-1.0] * (self._query.max_depth + 1))
        if relevance < self._query.min_relevance or max(best[min(path.hops, 1) : path.hops + 1]) >= relevance:
            return
        best[path.hops] = relevance
        if (path.end_id, path.hops) in self._followed:
            self._visit(path, relevance)
            return
        lead = _Lead(-relevance, path.hops, path.end_id, tuple(step.edge_id for step in path.steps))
        self._paths[lead] = path
        heapq.heappush(self._leads, lead)
