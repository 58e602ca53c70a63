"""The seam of what is said about memories: outcomes, disputes, promotions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from sidecar.domain.confidence import ValidationKind, ValidationSummary
from sidecar.domain.disputes import Challenge, Dispute, ResolvedDispute, Verdict
from sidecar.domain.validation import Report, ValidationEvent, ValidationOutcome


class ValidationStore(Protocol):
    """Keeps reports and disputes, and moves confidence by them. Methods touch the owner's rows only.

    Memories are found in whatever state: an outcome may come in after its memory was replaced or forgotten.

    Raises (every method):
        StorageError: Or one of its leaves, when the disk or the database refuses; nothing was changed then.
        MemoryNotFoundError: If a memory that is named is not there.
    """

    async def record_validation(self, owner: str, report: Report) -> ValidationOutcome:
        """Store a report and move confidence and type by it, as `sidecar.domain.confidence` says, in one transaction.

        A success that is an outcome is also evidence of use: one useful event for each session.
        """
        ...

    async def validation_events(
        self, owner: str, memory_id: str, *, kind: ValidationKind | None, limit: int
    ) -> tuple[list[ValidationEvent], ValidationSummary]:
        """Return a memory's reports, of one kind or all, newest first; and the counts over all of them."""
        ...

    async def validation_summaries(self, owner: str, memory_ids: Sequence[str]) -> Mapping[str, ValidationSummary]:
        """Return the counts of those of these memories that have reports."""
        ...

    async def open_dispute(self, owner: str, challenge: Challenge) -> tuple[Dispute, bool]:
        """Store a challenge, and rank its memory lower at once; return the dispute and whether it was there already.

        If the same is said of the memory in an open dispute, that one is returned and nothing changes.
        """
        ...

    async def disputes(self, owner: str, *, memory_id: str, is_including_resolved: bool, limit: int) -> list[Dispute]:
        """Return the disputes of a memory, or of all for an empty id, newest first."""
        ...

    async def resolve_dispute(self, owner: str, dispute_id: int, verdict: Verdict, *, at: datetime) -> ResolvedDispute:
        """End a dispute: keep the memory, forget it (`restore` undoes that), or let another take its place.

        The same verdict again changes nothing. RETIRE forgets golden rules too.

        Raises:
            DisputeNotFoundError: If there is none of that id.
            DisputeResolvedError: If it ended otherwise already.
            MemoryNotFoundError: If the successor, or the memory that it replaces, is not there or forgotten.
            InvalidInputError: If the memory is to succeed itself. SupersessionCircleError: See `GraphStore.put_edge`.
        """
        ...

    async def disputed_keys(self, keys: Sequence[int]) -> frozenset[int]:
        """Return those of these memories that have an open dispute."""
        ...

    async def promote(self, owner: str, memory_id: str, *, at: datetime) -> bool:
        """Mark a memory as a standing rule, delivered elsewhere; return whether it was one already."""
        ...

    async def demote(self, owner: str, memory_id: str) -> bool:
        """Take a promotion back; return whether there was one."""
        ...

    async def standing_rule_keys(self, keys: Sequence[int]) -> frozenset[int]:
        """Return those of these memories that are promoted to standing rules."""
        ...
