"""Relates a new memory to those near it, once it is embedded. Belongs to the event loop.

What a caller wished is kept in memory only: a memory that a restart overtakes before it is embedded is stored and found
like any other, but gets no relations by itself. One that is embedded anew, by another model, gets none either.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.memory import parse_fraction
from sidecar.domain.namespace import GLOBAL, NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import CatalogRow, Edge
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


@dataclass(frozen=True, slots=True)
class _Expected:
    selection: MemoryFilter
    threshold: float
    max_links: int
    is_refined: bool


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
        self._expected: dict[int, _Expected] = {}
        self.failures = 0

    def check(self, wish: AutoLinkWish) -> None:
        """Let a wish pass whose figures are right.

        Raises:
            InvalidInputError: If one is outside its bounds.
        """
        if wish.threshold is not None:
            parse_fraction(wish.threshold, field_name="similarity_threshold")
        if wish.max_links is not None and not 0 <= wish.max_links <= MAX_AUTO_LINKS:
            raise InvalidInputError("max_auto_links", wish.max_links, f"a whole number from 0 to {MAX_AUTO_LINKS}")

    def expect(self, row: CatalogRow, wish: AutoLinkWish) -> None:
        """Note that a memory was just stored and is to be related once it is embedded."""
        max_links = self._policy.max_links if wish.max_links is None else wish.max_links
        is_wanted = self._policy.is_on if wish.is_wanted is None else wish.is_wanted
        if not is_wanted or not max_links:
            return
        scope = NamespaceScope(tuple(dict.fromkeys((row.namespace, GLOBAL))))
        threshold = self._policy.threshold if wish.threshold is None else wish.threshold
        is_refined = self._policy.is_refined if wish.is_refined is None else wish.is_refined
        selection = MemoryFilter(owner=row.owner, scope=scope)
        self._expected[row.key] = _Expected(selection, threshold, max_links, is_refined)

    async def run(self, key: int, embedding: Embedding) -> tuple[Edge, ...]:
        """Relate a memory that was just embedded, if that is wanted; return what was made.

        Args:
            embedding: Its `(windows, dim)` vectors.
        """
        expected = self._expected.pop(key, None)
        if expected is None:
            return ()
        try:
            hits = await self._semantic.nearest_to(
                embedding, limit=expected.max_links + _ITSELF, allowed=self._catalog.mask(expected.selection)
            )
            near = [(other, cosine) for other, cosine in hits if other != key and cosine >= expected.threshold]
            made = await self._graph.auto_link(key, near[: expected.max_links]) if near else ()
        except (EmbedderUnavailableError, StorageError) as error:
            # The memory is stored and found; a relation can still be made by hand.
            self.failures += 1
            log.warning("not linked", extra={"reason": error.reason})
            return ()
        if made and expected.is_refined and self._refine is not None:
            self._refine(expected.selection.owner, made)
        return made
