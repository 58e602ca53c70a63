"""Relates a new memory to those near it, once it is embedded. Belongs to the event loop.

What a caller wished is stored with the memory, so that a restart before it is embedded, or before it is related, loses
none of it. A memory that was related and is embedded anew, by another model, gets no more relations.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.memory import parse_fraction
from sidecar.domain.namespace import GLOBAL, NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import CatalogRow, Edge, LinkWish
from sidecar.errors import EmbedderUnavailableError, InvalidInputError, StorageError
from sidecar.ports import Embedding, GraphStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.semantic_index import SemanticIndex

DEFAULT_THRESHOLD: Final = 0.6
DEFAULT_MAX_LINKS: Final = 5
MAX_AUTO_LINKS: Final = 20
# The memory itself is among the nearest.
_ITSELF: Final = 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AutoLinkPolicy:
    """What holds where the caller says nothing; see `AutoLinkWish`."""

    is_on: bool = True
    threshold: float = DEFAULT_THRESHOLD
    max_links: int = DEFAULT_MAX_LINKS
    is_refined: bool = True


@dataclass(frozen=True, slots=True)
class AutoLinkWish:
    """What a caller wants for a memory. None stands for the default.

    Attributes:
        threshold: Lowest raw cosine, 0 to 1.
        max_links: Most relations, 0 to 20.
        is_refined: Whether a language model, if there is one, may say more of them afterwards.
    """

    is_wanted: bool | None = None
    threshold: float | None = None
    max_links: int | None = None
    is_refined: bool | None = None


BY_DEFAULT: Final = AutoLinkWish()


Refiner = Callable[[str, Sequence[Edge]], None]
"""Takes an owner and edges from one new memory to see to later; see `RefineLinks.expect`."""


class AutoLink:
    """Makes relations by itself. What it cannot do is counted, and never fails what was stored."""

    def __init__(
        self,
        *,
        graph: GraphStore,
        semantic: SemanticIndex,
        catalog: MemoryCatalog,
        policy: AutoLinkPolicy,
        refine: Refiner | None = None,
    ) -> None:
        """Take what is needed; without `refine` relations stay as they are made."""
        self._refine = refine
        self._graph = graph
        self._semantic = semantic
        self._catalog = catalog
        self._policy = policy
        self.failures = 0

    def settle(self, wish: AutoLinkWish) -> LinkWish | None:
        """Return what is to be done for a caller who wishes this; None for nothing.

        Raises:
            InvalidInputError: If one is outside its bounds.
        """
        if wish.threshold is not None:
            parse_fraction(wish.threshold, field_name="similarity_threshold")
        if wish.max_links is not None and not 0 <= wish.max_links <= MAX_AUTO_LINKS:
            raise InvalidInputError("max_auto_links", wish.max_links, f"a whole number from 0 to {MAX_AUTO_LINKS}")
        max_links = self._policy.max_links if wish.max_links is None else wish.max_links
        is_wanted = self._policy.is_on if wish.is_wanted is None else wish.is_wanted
        if not is_wanted or not max_links:
            return None
        return LinkWish(
            max_links,
            self._policy.threshold if wish.threshold is None else wish.threshold,
            is_refined=self._policy.is_refined if wish.is_refined is None else wish.is_refined,
        )

    async def run(self, key: int, embedding: Embedding) -> tuple[Edge, ...]:
        """Relate a memory that was just embedded, if that is wanted; return what was made.

        Args:
            embedding: Its `(windows, dim)` vectors.
        """
        try:
            wished = await self._graph.link_wish(key)
            return await self._link(key, embedding, *wished) if wished is not None else ()
        except (EmbedderUnavailableError, StorageError) as error:
            # The memory is stored and found; its wish stays, and the next start tries again.
            self.failures += 1
            log.warning("not linked", extra={"reason": error.reason})
            return ()

    async def _link(self, key: int, embedding: Embedding, row: CatalogRow, wish: LinkWish) -> tuple[Edge, ...]:
        scope = NamespaceScope(tuple(dict.fromkeys((row.namespace, GLOBAL))))
        allowed = self._catalog.mask(MemoryFilter(owner=row.owner, scope=scope))
        hits = await self._semantic.nearest_to(embedding, limit=wish.max_links + _ITSELF, allowed=allowed)
        near = [(other, cosine) for other, cosine in hits if other != key and cosine >= wish.threshold]
        if not near:
            await self._graph.end_link_wish(key)
            return ()
        made = await self._graph.auto_link(key, near[: wish.max_links])
        if made and wish.is_refined and self._refine is not None:
            self._refine(row.owner, made)
        return made
