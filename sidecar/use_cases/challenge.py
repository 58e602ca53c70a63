"""Opens, lists and ends disputes about memories; promotes memories to standing rules and takes that back."""

from typing import Final

from sidecar.domain.disputes import Challenge, Dispute, Resolution, ResolvedDispute, Verdict
from sidecar.domain.memory import Caller
from sidecar.domain.text import normalise
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, Redactor, ValidationStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.clean_text import clean_and_cut
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.memory_ids import require_id

MAX_REASON_CHARACTERS: Final = 1_000
MAX_EVIDENCE_CHARACTERS: Final = 4_000
DEFAULT_DISPUTES: Final = 100
MAX_DISPUTES: Final = 1000


class ChallengeMemory:
    """Keeps disputes and promotions."""

    def __init__(
        self,
        *,
        validation: ValidationStore,
        catalog: MemoryCatalog,
        redactor: Redactor,
        completion: Completion,
        clock: Clock,
        listed_disputes: int = DEFAULT_DISPUTES,
    ) -> None:
        """Take what is needed; `listed_disputes` are listed where the caller names no number."""
        self._validation = validation
        self._catalog = catalog
        self._redactor = redactor
        self._completion = completion
        self._clock = clock
        self._listed_disputes = listed_disputes

    async def run(self, caller: Caller, memory_id: str, *, reason: str, evidence: str) -> tuple[Dispute, bool]:
        """Open a dispute; return it and whether it was there already.

        Raises:
            InvalidInputError: If the reason is blank or too long.
            MemoryNotFoundError: If the memory is not there.
        """
        require_id(memory_id)
        if not 1 <= len(normalise(reason)) <= MAX_REASON_CHARACTERS:
            raise InvalidInputError("reason", reason, f"1 to {MAX_REASON_CHARACTERS} characters that are not all blank")
        challenge = Challenge(
            memory_id=memory_id,
            reason=await clean_and_cut(self._redactor, reason, limit=MAX_REASON_CHARACTERS),
            evidence=await clean_and_cut(self._redactor, evidence, limit=MAX_EVIDENCE_CHARACTERS),
            at=self._clock.now(),
            client=caller.client,
            session=caller.session,
        )
        return await self._completion.run(self._validation.open_dispute(caller.owner, challenge))

    async def disputes(
        self, caller: Caller, *, memory_id: str, is_including_resolved: bool, limit: int
    ) -> list[Dispute]:
        """Return disputes, newest first, of one memory or of all for an empty id.

        Raises:
            InvalidInputError: If the limit is out of range.
            MemoryNotFoundError: If a memory is named that is not there.
        """
        limit = limit or self._listed_disputes
        if not 1 <= limit <= MAX_DISPUTES:
            raise InvalidInputError("limit", limit, f"a whole number from 1 to {MAX_DISPUTES}")
        return await self._validation.disputes(
            caller.owner, memory_id=memory_id, is_including_resolved=is_including_resolved, limit=limit
        )

    async def resolve(self, caller: Caller, dispute_id: int, *, resolution: Resolution, successor_id: str) -> Dispute:
        """End a dispute.

        Raises:
            InvalidInputError: If no dispute is named, or a successor is missing or not wanted.
            DisputeNotFoundError: If there is none of that id.
            DisputeResolvedError: If it ended otherwise already.
            MemoryNotFoundError: If the successor is not there.
        """
        if dispute_id <= 0:
            raise InvalidInputError("dispute_id", dispute_id, "the number of a dispute; list them to see it")
        verdict = Verdict(resolution, successor_id)
        return (await self._completion.run(self._resolve(caller.owner, dispute_id, verdict))).dispute

    async def promote(self, caller: Caller, memory_id: str) -> bool:
        """Mark a memory as a standing rule; return whether it was one already.

        Raises:
            MemoryNotFoundError: If it is not there.
        """
        return await self._validation.promote(caller.owner, require_id(memory_id), at=self._clock.now())

    async def demote(self, caller: Caller, memory_id: str) -> bool:
        """Take a promotion back; return whether there was one.

        Raises:
            MemoryNotFoundError: If it is not there.
        """
        return await self._validation.demote(caller.owner, require_id(memory_id))

    async def _resolve(self, owner: str, dispute_id: int, verdict: Verdict) -> ResolvedDispute:
        resolved = await self._validation.resolve_dispute(owner, dispute_id, verdict, at=self._clock.now())
        self._catalog.apply(resolved.changed)
        return resolved
