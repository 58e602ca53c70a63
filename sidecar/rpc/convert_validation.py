"""Messages of the ValidationService and what they stand for."""

from typing import Final

from sidecar.api.v1 import validation_service_pb2 as pb
from sidecar.domain.confidence import ConfidenceChange, ValidationKind, ValidationSummary
from sidecar.domain.disputes import Dispute, Resolution
from sidecar.domain.llm_supersession import VetoReason
from sidecar.domain.validation import ValidationEvent
from sidecar.errors import InvalidInputError
from sidecar.rpc import enums
from sidecar.rpc.convert import timestamp
from sidecar.use_cases.contradictions import Contradictions
from sidecar.use_cases.supersession import Supersession

_KIND_NUMBERS: Final[dict[ValidationKind, pb.ValidationKind.ValueType]] = {
    value: pb.ValidationKind.Value(f"VALIDATION_KIND_{value.name}") for value in ValidationKind
}
_RESOLUTION_NUMBERS: Final[dict[Resolution, pb.Resolution.ValueType]] = {
    value: pb.Resolution.Value(f"RESOLUTION_{value.name}") for value in Resolution
}
_VETO_NUMBERS: Final[dict[VetoReason, pb.VetoReason.ValueType]] = {
    value: pb.VetoReason.Value(f"VETO_REASON_{value.name}") for value in VetoReason
}
_KINDS: Final = {int(number): value for value, number in _KIND_NUMBERS.items()}
_RESOLUTIONS: Final = {int(number): value for value, number in _RESOLUTION_NUMBERS.items()}


def kind(number: int) -> ValidationKind | None:
    """Return the kind, None for unspecified."""
    return enums.looked_up("kind", number, _KINDS)


def resolution(number: int) -> Resolution:
    """Return how a dispute ends, which must be said."""
    found = enums.looked_up("resolution", number, _RESOLUTIONS)
    if found is None:
        raise InvalidInputError("resolution", number, f"one of {', '.join(Resolution)}")
    return found


def event_message(event: ValidationEvent) -> pb.ValidationEvent:
    """Return a report as a message."""
    return pb.ValidationEvent(
        id=event.id,
        memory_id=event.memory_id,
        kind=_KIND_NUMBERS[event.kind],
        session=event.session,
        context=event.context,
        error=event.error,
        direct=event.is_direct,
        create_time=timestamp(event.at),
    )


def change_message(change: ConfidenceChange | None) -> pb.ConfidenceChange | None:
    """Return what a report did as a message."""
    if change is None:
        return None
    return pb.ConfidenceChange(
        old_confidence=change.old.confidence,
        new_confidence=change.new.confidence,
        promoted=change.is_promoted,
        demoted=change.is_demoted,
        type=enums.TYPE_NUMBERS[change.new.type],
    )


def summary_message(summary: ValidationSummary) -> pb.ValidationSummary:
    """Return counts as a message."""
    return pb.ValidationSummary(
        total=summary.total,
        applied=summary.applied,
        succeeded=summary.succeeded,
        failed=summary.failed,
        success_rate=summary.success_rate,
    )


def dispute_message(dispute: Dispute) -> pb.Dispute:
    """Return a dispute as a message."""
    return pb.Dispute(
        id=dispute.id,
        memory_id=dispute.memory_id,
        reason=dispute.reason,
        evidence=dispute.evidence,
        session=dispute.session,
        create_time=timestamp(dispute.at),
        resolution=_RESOLUTION_NUMBERS[dispute.resolution] if dispute.resolution else pb.RESOLUTION_UNSPECIFIED,
        resolve_time=timestamp(dispute.resolved_at) if dispute.resolved_at else None,
    )


def contradictions_response(answer: Contradictions) -> pb.DetectContradictionsResponse:
    """Return what contradicts a memory."""
    return pb.DetectContradictionsResponse(
        contradictions=[
            pb.Contradiction(
                memory_id=found.memory_id,
                similarity=found.similarity,
                method=found.method,
                own_part=found.own_part,
                other_part=found.other_part,
                edge_id=found.edge_id,
            )
            for found in answer.found
        ],
        compared=answer.compared,
        not_checked=answer.not_checked,
    )


def supersession_response(found: Supersession) -> pb.CheckSupersedesResponse:
    """Return which memory one replaces, and what spoke against others."""
    return pb.CheckSupersedesResponse(
        superseded_id=found.superseded_id,
        reason=found.reason,
        edge_id=found.edge_id,
        vetoes=[
            pb.SupersessionVeto(memory_id=memory_id, reason=_VETO_NUMBERS[reason]) for memory_id, reason in found.vetoes
        ],
        not_checked=found.not_checked,
    )
