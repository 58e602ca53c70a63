"""Forgets memories, or shows which ones it would forget; and brings them back."""

import hashlib
from dataclasses import astuple, dataclass
from functools import partial
from typing import Final

from sidecar.domain.ids import is_memory_id
from sidecar.domain.memory import GOLDEN_CONFIDENCE, Caller, Memory, parse_fraction
from sidecar.domain.recall import RecallLeg
from sidecar.domain.store_values import Forgetting, RequestKey, skip_reason
from sidecar.errors import EmbedderUnavailableError, InvalidInputError
from sidecar.ports import MemoryStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.recall import Recall, RecallQuery
from sidecar.use_cases.request_keys import check_request_key
from sidecar.use_cases.semantic_index import SemanticIndex

DEFAULT_SIMILARITY_FLOOR: Final = 0.5


@dataclass(frozen=True, slots=True)
class ForgetQuery:
    """Which memories to forget: exactly one of `memory_id`, `query` and `input`.

    Attributes:
        input: An id if it has the shape of one, else a query.
        is_confirmed: False shows what would happen.
        is_forced: Golden rules too.
        is_purge: Every byte is removed; cannot be undone.
        similarity_floor: Lowest raw cosine of what a query selects, 0 to 1; None for the default.
    """

    memory_id: str = ""
    query: str = ""
    input: str = ""
    namespace: str = ""
    limit: int = 0
    similarity_floor: float | None = None
    is_confirmed: bool = True
    is_forced: bool = False
    is_purge: bool = False
    request_key: str = ""


class Forget:
    """Forgets and restores memories."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        catalog: MemoryCatalog,
        semantic: SemanticIndex,
        recall: Recall,
        completion: Completion,
        similarity_floor: float = DEFAULT_SIMILARITY_FLOOR,
        golden_from: float = GOLDEN_CONFIDENCE,
    ) -> None:
        """Take what is needed.

        Args:
            similarity_floor: Holds where the caller names none.
            golden_from: From this confidence on a memory is a golden rule.
        """
        self._golden_from = golden_from
        self._similarity_floor = similarity_floor
        self._store = store
        self._catalog = catalog
        self._semantic = semantic
        self._recall = recall
        self._completion = completion

    async def run(self, caller: Caller, query: ForgetQuery) -> Forgetting:
        """Forget, or show what would be forgotten.

        Raises:
            InvalidInputError: If not exactly one selector is given, or a figure is wrong.
            RequestKeyReusedError: If the request key came before with another request.
            MemoryNotFoundError: If a memory named by its id is not there.
            EmbedderUnavailableError: If a query is given and meaning cannot be searched: words alone are no ground for
                deleting.
            StorageError: If a query is given and words cannot be searched, or the disk refuses.
        """
        request = _request_key(caller, query)
        if request is not None:
            # Before anything is selected: a query would select the next memories.
            kept = await self._store.kept_forgetting(caller.owner, request)
            if kept is not None:
                return kept
        memory_ids = await self._selected(caller, query)
        if not query.is_confirmed:
            return await self._preview(caller, memory_ids, query)
        return await self._completion.run(self._forget(caller, memory_ids, query, request))

    async def restore(self, caller: Caller, memory_id: str) -> Memory:
        """Bring a forgotten memory back.

        Raises:
            MemoryNotFoundError: If it is not there, or was purged.
            MemoryNotForgottenError: If it is not forgotten.
            DuplicateMemoryError: If an active memory says the same by now.
        """
        return await self._completion.run(self._restore(caller, memory_id))

    async def _forget(
        self, caller: Caller, memory_ids: list[str], query: ForgetQuery, request: RequestKey | None
    ) -> Forgetting:
        outcome = await self._store.forget(
            caller.owner,
            memory_ids,
            is_forced=query.is_forced,
            is_purge=query.is_purge,
            request=request,
            golden_from=self._golden_from,
        )
        self._catalog.apply(outcome.changed)
        if outcome.purged_keys:
            self._catalog.remove(outcome.purged_keys)
            await self._semantic.purge(outcome.purged_keys)
        return outcome

    async def _restore(self, caller: Caller, memory_id: str) -> Memory:
        memory, rows = await self._store.restore(caller.owner, memory_id)
        self._catalog.apply(rows)
        return memory

    async def _selected(self, caller: Caller, query: ForgetQuery) -> list[str]:
        given = [name for name in ("memory_id", "query", "input") if getattr(query, name)]
        if len(given) != 1:
            raise InvalidInputError("selector", given, "exactly one of memory_id, query and input")
        memory_id = query.memory_id or (query.input if is_memory_id(query.input) else "")
        if memory_id:
            await self._store.get(caller.owner, memory_id)
            return [memory_id]
        asked = self._similarity_floor if query.similarity_floor is None else query.similarity_floor
        floor = parse_fraction(asked, field_name="similarity_floor")
        answer = await self._recall.run(
            caller,
            RecallQuery(query.query or query.input, limit=query.limit, namespace=query.namespace, is_internal=True),
        )
        if any(part.leg is RecallLeg.MEANING for part in answer.degraded):
            raise EmbedderUnavailableError(f"{answer.degraded[0].reason}; forget by id instead of by query")
        return [r.memory.id for r in answer.memories if (r.parts.similarity or 0.0) >= floor]

    async def _preview(self, caller: Caller, memory_ids: list[str], query: ForgetQuery) -> Forgetting:
        memories = [await self._store.get(caller.owner, memory_id) for memory_id in memory_ids]
        reason_of = partial(
            skip_reason, is_forced=query.is_forced, is_purge=query.is_purge, golden_from=self._golden_from
        )
        reasons = [(memory, reason_of(memory)) for memory in memories]
        taken = tuple(memory for memory, reason in reasons if reason is None)
        skipped = tuple((memory.id, reason) for memory, reason in reasons if reason is not None)
        return Forgetting(tuple(memory.id for memory in taken), taken, skipped)


def _request_key(caller: Caller, query: ForgetQuery) -> RequestKey | None:
    if not query.request_key or not query.is_confirmed:
        return None
    check_request_key(query.request_key)
    parts = (caller.project, *(str(part) for part in astuple(query)))
    return RequestKey(query.request_key, hashlib.sha256("\x1f".join(parts).encode()).hexdigest())
