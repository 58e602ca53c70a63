"""Gives each error its status on the wire. The way back is `sidecar.client.wire`."""

from collections.abc import Mapping
from typing import Final

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from sidecar import errors

DETAILS_KEY: Final = "grpc-status-details-bin"
# All metadata of a status must fit into 8 KiB; a message is cut long before.
_MAX_MESSAGE_CHARACTERS: Final = 1000

# The class itself, or else its nearest base, decides; so a new leaf needs a line only where it differs from its base.
CODES: Final[Mapping[type[errors.SidecarError], grpc.StatusCode]] = {
    errors.SidecarError: grpc.StatusCode.UNKNOWN,
    errors.InvalidInputError: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFoundError: grpc.StatusCode.NOT_FOUND,
    errors.StateConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.DuplicateMemoryError: grpc.StatusCode.ALREADY_EXISTS,
    errors.UnauthenticatedError: grpc.StatusCode.UNAUTHENTICATED,
    errors.UntrustedPathError: grpc.StatusCode.PERMISSION_DENIED,
    errors.StorageError: grpc.StatusCode.INTERNAL,
    errors.StorageFullError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StorageReadOnlyError: grpc.StatusCode.FAILED_PRECONDITION,
    errors.StorageCorruptError: grpc.StatusCode.DATA_LOSS,
    errors.UnavailableError: grpc.StatusCode.UNAVAILABLE,
    errors.DeadlineError: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.TooLargeMessageError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.TooManyRequestsError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.InternalError: grpc.StatusCode.INTERNAL,
}

_RETRY_AFTER_MS: Final[Mapping[type[errors.SidecarError], int]] = {
    errors.UnavailableError: 200,
    errors.TooManyRequestsError: 500,
}


def code_of(error: errors.SidecarError) -> grpc.StatusCode:
    """Return the status code of an error."""
    return next(CODES[cls] for cls in type(error).__mro__ if cls in CODES)


def to_status(error: errors.SidecarError) -> status_pb2.Status:
    """Return the status of an error: its message, an ErrorInfo, and where they apply a field or a delay."""
    code: int = code_of(error).value[0]
    status = status_pb2.Status(code=code, message=_travelling(error.message)[:_MAX_MESSAGE_CHARACTERS])
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(
            reason=error.reason,
            domain=errors.DOMAIN,
            metadata={key: _travelling(value) for key, value in error.metadata.items()},
        )
    )
    field = error.metadata.get("field")
    if isinstance(error, errors.InvalidInputError) and field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=_travelling(field), description=status.message)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    retry_after_ms = next((_RETRY_AFTER_MS[cls] for cls in type(error).__mro__ if cls in _RETRY_AFTER_MS), None)
    if retry_after_ms is not None:
        delay = Duration(nanos=retry_after_ms * 1_000_000)
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def _travelling(text: str) -> str:
    """Return the text without lone surrogates, which protobuf refuses; an error must not fail on its way out."""
    return text.encode("utf-8", "replace").decode()
