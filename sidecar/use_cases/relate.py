"""Makes and deletes relations between memories."""

from dataclasses import dataclass
from typing import Final

from sidecar.domain.edges import DeletedEdges, EdgeSelector, NewEdge, StoredEdge
from sidecar.domain.memory import Caller, Relation
from sidecar.ports import GraphStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.memory_ids import require_id

DEFAULT_WEIGHT: Final = 1.0


@dataclass(frozen=True, slots=True)
class RelateQuery:
    """A relation to make. `weight` is 0 to 1; None for the default."""

    source_id: str
    target_id: str
    relation: Relation
    weight: float | None = None


class Relate:
    """Writes edges. What superseding does to states reaches the catalog, although the caller stops waiting."""

    def __init__(
        self, *, graph: GraphStore, catalog: MemoryCatalog, completion: Completion, weight: float = DEFAULT_WEIGHT
    ) -> None:
        """Take what is needed; `weight` holds where the caller names none."""
        self._weight = weight
        self._graph = graph
        self._catalog = catalog
        self._completion = completion

    async def run(self, caller: Caller, query: RelateQuery) -> StoredEdge:
        """Make a relation, or set the weight of the one that is there.

        Raises:
            InvalidInputError: If an id is missing, both are the same, or the weight is outside 0 to 1.
            MemoryNotFoundError: If one of the two is not there or forgotten.
            SupersessionCircleError: If the target replaces the source already.
        """
        new = NewEdge(
            require_id(query.source_id, field_name="source_id"),
            require_id(query.target_id, field_name="target_id"),
            query.relation,
            self._weight if query.weight is None else query.weight,
        )
        return await self._completion.run(self._put(caller.owner, new))

    async def delete(self, caller: Caller, selector: EdgeSelector) -> DeletedEdges:
        """Delete relations; what was superseded by one of them is given back.

        Raises:
            EdgeNotFoundError: If no edge has the id that is named.
            MemoryNotFoundError: If a memory that is named is not there.
        """
        return await self._completion.run(self._delete(caller.owner, selector))

    async def _put(self, owner: str, new: NewEdge) -> StoredEdge:
        stored = await self._graph.put_edge(owner, new)
        self._catalog.apply(stored.changed)
        return stored

    async def _delete(self, owner: str, selector: EdgeSelector) -> DeletedEdges:
        deleted = await self._graph.delete_edges(owner, selector)
        self._catalog.apply(deleted.changed)
        return deleted
