"""The seam of the relations between memories."""

from collections.abc import Sequence
from typing import Protocol

from sidecar.domain.edge_paths import EdgesById
from sidecar.domain.edges import DeletedEdges, EdgeSelector, NewEdge, StoredEdge
from sidecar.domain.memory import Relation
from sidecar.domain.store_values import Edge


class GraphStore(Protocol):
    """Keeps edges. Every write is one transaction; methods touch the owner's rows only.

    A `supersedes` edge sets its target to superseded with a pointer to the source; deleting it gives the target back.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses; nothing was changed then.
    """

    async def put_edge(self, owner: str, new: NewEdge) -> StoredEdge:
        """Store an edge, or set weight and origin of the one with the same ends and relation, which keeps its id.

        What a caller declared is left as it is by what was found.

        Raises:
            MemoryNotFoundError: If one of its ends is not there or forgotten.
            SupersessionCircleError: If the target replaces the source already, directly or through others.
        """
        ...

    async def delete_edges(self, owner: str, selector: EdgeSelector) -> DeletedEdges:
        """Delete the edges that the selector names, and return their ids, ascending.

        Raises:
            EdgeNotFoundError: If no edge has the id that it names.
            MemoryNotFoundError: If a memory that it names is not there.
        """
        ...

    async def neighbours(
        self, owner: str, memory_ids: Sequence[str], *, relations: frozenset[Relation] = frozenset()
    ) -> EdgesById:
        """Return the edges that start or end at each of these memories, the heaviest first, equal ones by id.

        Of a memory with more than `MAX_EDGES_PER_MEMORY` edges, the heaviest. Edges of other relations are left out
        (none, if it is empty), and so are those with a forgotten end, and ids without any edge.
        """
        ...

    async def auto_link(self, key: int, near: Sequence[tuple[int, float]]) -> tuple[Edge, ...]:
        """Relate a memory to those near it, and return the edges that are new, in the order given.

        Args:
            key: Of the memory; nothing is stored if it is gone or not active.
            near: (key, cosine) pairs, best first; the cosine becomes the weight, within 0 to 1.

        A pair that is related already, either way, is left as it is; so is one whose other memory is not active, is
        another owner's, or lies neither in the same namespace nor in `global`.
        """
        ...

    async def refine_edge(self, owner: str, edge_id: int, relation: Relation) -> Edge | None:
        """Give an edge that `auto_link` made another relation, and return it as it is now; its id and weight stay.

        None, and nothing changes, if the edge is gone, if somebody else made or changed it, if one of its memories is
        not active, or if the two have an edge of that relation already, either way.

        Raises:
            InvalidInputError: If the relation is `supersedes`: that changes what is returned, and takes a reason.
        """
        ...
