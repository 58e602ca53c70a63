"""Finds the memories near a stored one, by its own vectors, and says so where they cannot be found."""

from dataclasses import dataclass

from sidecar.domain.memory import Memory
from sidecar.domain.namespace import GLOBAL, NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.errors import EmbedderUnavailableError
from sidecar.ports import MemoryStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.semantic_index import SemanticIndex


@dataclass(frozen=True, slots=True)
class NearMemory:
    """An active memory and its raw cosine with the one that was asked about."""

    memory: Memory
    similarity: float


@dataclass(frozen=True, slots=True)
class Nearby:
    """What is near, nearest first.

    Attributes:
        not_checked: What was not looked at and why, for a person; empty if everything was.
    """

    memories: tuple[NearMemory, ...]
    not_checked: tuple[str, ...] = ()


class NearMemories:
    """Looks in the memory's own namespace and in `global`."""

    def __init__(self, *, store: MemoryStore, catalog: MemoryCatalog, semantic: SemanticIndex, limit: int) -> None:
        """Take what is needed; `limit` is how many are looked at."""
        self._store = store
        self._catalog = catalog
        self._semantic = semantic
        self._limit = limit

    async def find(self, memory: Memory, *, threshold: float) -> Nearby:
        """Return the nearest active memories of at least this raw cosine."""
        try:
            stored = await self._store.embeddings(self._semantic.model_id, [memory.key])
            if not stored:
                return Nearby((), (self._without_vector(),))
            scope = NamespaceScope(tuple(dict.fromkeys((memory.namespace, GLOBAL))))
            selection = MemoryFilter(owner=memory.owner, scope=scope)
            # One more than is looked at tells whether there are more, and the memory itself is among them.
            hits = await self._semantic.nearest_to(
                stored[0][1], limit=self._limit + 2, allowed=self._catalog.mask(selection)
            )
        except EmbedderUnavailableError as error:
            return Nearby((), (f"nothing was compared: {error.message}",))
        near = {key: cosine for key, cosine in hits if key != memory.key and cosine >= threshold}
        looked_at = list(near)[: self._limit]
        found = await self._store.fetch(looked_at, selection)
        memories = tuple(NearMemory(other, near[other.key]) for other in found)
        beyond = (f"memories beyond the {self._limit} nearest",) if len(near) > self._limit else ()
        return Nearby(memories, beyond)

    def _without_vector(self) -> str:
        if not self._semantic.model_id:
            problem = self._semantic.status.problem or "the embedding model is still being loaded"
            return f"nothing was compared: {problem}"
        return "nothing was compared: the memory is not embedded yet; `sidecar status` shows the backlog"
