"""Takes reports on how memories did: applied, succeeded, failed; and tells what was reported."""

from dataclasses import dataclass
from typing import Final

from sidecar.domain.confidence import DEFAULT_ADJUSTMENT, RULES, ConfidenceRules, ValidationKind, ValidationSummary
from sidecar.domain.memory import Caller, parse_fraction
from sidecar.domain.validation import MAX_REPORT_CHARACTERS, Report, ValidationEvent, ValidationOutcome
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, Redactor, ValidationStore
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.clean_text import clean_and_cut
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.memory_ids import require_id

DEFAULT_EVENTS: Final = 50
MAX_EVENTS: Final = 1000


@dataclass(frozen=True, slots=True)
class ValidationPolicy:
    """What holds where the caller says nothing.

    Attributes:
        adjustment: How far a success moves the confidence, 0 to 1.
        rules: How much further a failure moves it, and what makes and unmakes golden rules.
        listed_events: Events that a history lists.
    """

    adjustment: float = DEFAULT_ADJUSTMENT
    rules: ConfidenceRules = RULES
    listed_events: int = DEFAULT_EVENTS


@dataclass(frozen=True, slots=True)
class History:
    """What was reported about a memory, newest first, and the counts over all of it."""

    events: tuple[ValidationEvent, ...]
    summary: ValidationSummary


class Validate:
    """Notes reports and moves confidence by them."""

    def __init__(
        self,
        *,
        validation: ValidationStore,
        catalog: MemoryCatalog,
        redactor: Redactor,
        completion: Completion,
        clock: Clock,
        policy: ValidationPolicy,
    ) -> None:
        self._validation = validation
        self._catalog = catalog
        self._redactor = redactor
        self._completion = completion
        self._clock = clock
        self._policy = policy

    async def apply(self, caller: Caller, memory_id: str, *, context: str) -> ValidationOutcome:
        """Note that a memory is being acted upon; `context` is cut.

        Raises:
            MemoryNotFoundError: If it is not there; every method.
        """
        return await self._record(caller, memory_id, ValidationKind.APPLIED, context=context)

    async def record_outcome(
        self, caller: Caller, memory_id: str, *, is_success: bool, error: str
    ) -> ValidationOutcome:
        """Note how acting upon it ended, and move its confidence; `error` is cut."""
        kind = ValidationKind.SUCCEEDED if is_success else ValidationKind.FAILED
        return await self._record(caller, memory_id, kind, error=error)

    async def validate(
        self, caller: Caller, memory_id: str, *, is_success: bool, adjustment: float | None
    ) -> ValidationOutcome:
        """Note that it holds, or does not, and move its confidence.

        Raises:
            InvalidInputError: If the adjustment is outside 0 to 1.
        """
        kind = ValidationKind.SUCCEEDED if is_success else ValidationKind.FAILED
        return await self._record(caller, memory_id, kind, adjustment=adjustment, is_direct=True)

    async def history(self, caller: Caller, memory_id: str, *, kind: ValidationKind | None, limit: int) -> History:
        """Return what was reported.

        Raises:
            InvalidInputError: If the limit is out of range.
        """
        limit = limit or self._policy.listed_events
        if not 1 <= limit <= MAX_EVENTS:
            raise InvalidInputError("limit", limit, f"a whole number from 1 to {MAX_EVENTS}")
        events, summary = await self._validation.validation_events(
            caller.owner, require_id(memory_id), kind=kind, limit=limit
        )
        return History(tuple(events), summary)

    async def _record(
        self,
        caller: Caller,
        memory_id: str,
        kind: ValidationKind,
        *,
        context: str = "",
        error: str = "",
        adjustment: float | None = None,
        is_direct: bool = False,
    ) -> ValidationOutcome:
        require_id(memory_id)
        step = self._policy.adjustment if adjustment is None else adjustment
        report = Report(
            memory_id=memory_id,
            kind=kind,
            at=self._clock.now(),
            adjustment=parse_fraction(step, field_name="adjustment"),
            is_direct=is_direct,
            client=caller.client,
            session=caller.session,
            context=await clean_and_cut(self._redactor, context, limit=MAX_REPORT_CHARACTERS),
            error=await clean_and_cut(self._redactor, error, limit=MAX_REPORT_CHARACTERS),
            rules=self._policy.rules,
        )
        return await self._completion.run(self._store(caller.owner, report))

    async def _store(self, owner: str, report: Report) -> ValidationOutcome:
        outcome = await self._validation.record_validation(owner, report)
        self._catalog.apply(outcome.changed)
        return outcome
