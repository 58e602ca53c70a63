"""The graph and validation stores on SQLite: each method an operation of the writer, or a read."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from sidecar.adapters.sqlite import disputes, graph, validation
from sidecar.adapters.sqlite.forgetting import ForgetMemories
from sidecar.adapters.sqlite.readers import Readers
from sidecar.adapters.sqlite.term_statistics import TermStatistics
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.writer import Writer
from sidecar.domain.confidence import ValidationKind, ValidationSummary
from sidecar.domain.disputes import Challenge, Dispute, ResolvedDispute, Verdict
from sidecar.domain.edges import DeletedEdges, EdgeSelector, NewEdge, StoredEdge
from sidecar.domain.memory import Relation
from sidecar.domain.store_values import Edge, Forgetting
from sidecar.domain.validation import Report, ValidationEvent, ValidationOutcome
from sidecar.ports import Clock

UID_BYTES: Final = 16


class SqliteReports:
    """Implements `GraphStore` and `ValidationStore`; a part of `SqliteStore`, which opens what it works with."""

    _clock: Clock
    _writer: Writer
    _readers: Readers
    _statistics: TermStatistics

    # --- graph ---

    async def put_edge(self, owner: str, new: NewEdge) -> StoredEdge:
        """See `GraphStore.put_edge`."""
        return await self._writer.run(partial(graph.put_edge, owner=owner, new=new, now=self._clock.now()))

    async def delete_edges(self, owner: str, selector: EdgeSelector) -> DeletedEdges:
        """See `GraphStore.delete_edges`."""
        return await self._writer.run(partial(graph.delete_edges, owner=owner, selector=selector))

    async def neighbours(
        self, owner: str, memory_ids: Sequence[str], *, relations: frozenset[Relation] = frozenset()
    ) -> dict[str, tuple[Edge, ...]]:
        """See `GraphStore.neighbours`."""
        return await self._readers.run(
            partial(graph.neighbours, owner=owner, memory_ids=memory_ids, relations=relations)
        )

    async def auto_link(self, key: int, near: Sequence[tuple[int, float]]) -> tuple[Edge, ...]:
        """See `GraphStore.auto_link`."""
        return await self._writer.run(partial(graph.auto_link, key=key, near=near, now=self._clock.now()))

    async def refine_edge(self, owner: str, edge_id: int, relation: Relation) -> Edge | None:
        """See `GraphStore.refine_edge`."""
        return await self._writer.run(partial(graph.refine_edge, owner=owner, edge_id=edge_id, relation=relation))

    # --- validation ---

    async def record_validation(self, owner: str, report: Report) -> ValidationOutcome:
        """See `ValidationStore.record_validation`."""
        return await self._writer.run(
            partial(validation.record_validation, owner=owner, report=report, uid=self._new_uid())
        )

    async def validation_events(
        self, owner: str, memory_id: str, *, kind: ValidationKind | None, limit: int
    ) -> tuple[list[ValidationEvent], ValidationSummary]:
        """See `ValidationStore.validation_events`."""
        return await self._readers.run(
            partial(validation.validation_events, owner=owner, memory_id=memory_id, kind=kind, limit=limit)
        )

    async def validation_summaries(self, owner: str, memory_ids: Sequence[str]) -> dict[str, ValidationSummary]:
        """See `ValidationStore.validation_summaries`."""
        return await self._readers.run(partial(validation.validation_summaries, owner=owner, memory_ids=memory_ids))

    async def open_dispute(self, owner: str, challenge: Challenge) -> tuple[Dispute, bool]:
        """See `ValidationStore.open_dispute`."""
        return await self._writer.run(
            partial(disputes.open_dispute, owner=owner, challenge=challenge, uid=self._new_uid())
        )

    async def disputes(self, owner: str, *, memory_id: str, is_including_resolved: bool, limit: int) -> list[Dispute]:
        """See `ValidationStore.disputes`."""
        return await self._readers.run(
            partial(
                disputes.disputes,
                owner=owner,
                memory_id=memory_id,
                is_including_resolved=is_including_resolved,
                limit=limit,
            )
        )

    async def resolve_dispute(self, owner: str, dispute_id: int, verdict: Verdict, *, at: datetime) -> ResolvedDispute:
        """See `ValidationStore.resolve_dispute`."""

        def forget(transaction: Transaction, memory_id: str) -> Forgetting:
            return ForgetMemories(
                owner=owner,
                memory_ids=(memory_id,),
                is_forced=True,
                is_purge=False,
                request=None,
                now=at,
                statistics=self._statistics,
                empty_journal=self._writer.empty_journal,
            )(transaction)

        return await self._writer.run(disputes.ResolveDispute(owner, dispute_id, verdict, at, forget))

    async def disputed_keys(self, keys: Sequence[int]) -> frozenset[int]:
        """See `ValidationStore.disputed_keys`."""
        return await self._readers.run(partial(disputes.disputed_keys, keys=keys))

    async def promote(self, owner: str, memory_id: str, *, at: datetime) -> bool:
        """See `ValidationStore.promote`."""
        return await self._writer.run(partial(disputes.promote, owner=owner, memory_id=memory_id, at=at))

    async def demote(self, owner: str, memory_id: str) -> bool:
        """See `ValidationStore.demote`."""
        return await self._writer.run(partial(disputes.demote, owner=owner, memory_id=memory_id))

    async def standing_rule_keys(self, keys: Sequence[int]) -> frozenset[int]:
        """See `ValidationStore.standing_rule_keys`."""
        return await self._readers.run(partial(disputes.standing_rule_keys, keys=keys))

    def _new_uid(self) -> str:
        return self._clock.random_bytes(UID_BYTES).hex()
