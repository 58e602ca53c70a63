"""Turns a failed call back into the error that the sidecar raised. The way there is `sidecar.rpc.status`."""

import re
from collections.abc import Mapping
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from sidecar.errors import (
    DOMAIN,
    CallFailedError,
    DeadlineError,
    InvalidInputError,
    NotFoundError,
    SidecarError,
    SidecarNotRunningError,
    StateConflictError,
    StorageCorruptError,
    TooLargeMessageError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
    UntrustedPathError,
    all_errors,
)

_DETAILS_KEY: Final = "grpc-status-details-bin"
_BY_REASON: Final[Mapping[str, type[SidecarError]]] = {error.reason: error for error in all_errors()}
# For reasons that a newer sidecar may send; the code says enough to choose how to go on.
_NEAREST: Final[Mapping[grpc.StatusCode, type[SidecarError]]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInputError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidInputError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: StateConflictError,
    grpc.StatusCode.FAILED_PRECONDITION: StateConflictError,
    grpc.StatusCode.ABORTED: StateConflictError,
    grpc.StatusCode.PERMISSION_DENIED: UntrustedPathError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: TooManyRequestsError,
    grpc.StatusCode.DATA_LOSS: StorageCorruptError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
}
# gRPC's own words; both sizes are in them, the second is the limit.
_TOO_LARGE: Final = re.compile(r"larger than max \(\d+ vs\. (\d+)\)")

_OVERLOADED: Final = "Concurrent RPC limit exceeded"
_DEFAULT_PAUSE_S: Final = 0.5


def error_of(failure: grpc.RpcError, *, operation: str, home: str, deadline_s: float) -> SidecarError:
    """Return the error that a failed call stands for.

    Args:
        failure: As a stub raised it, synchronous or not.
        operation: Name of the method.
        home: The data folder, for the message if no sidecar runs.
        deadline_s: How long the call could take, seconds.
    """
    code, text = _code(failure), _details(failure)
    status = _status(failure)
    info = _error_info(status)
    if info is not None:
        known = _BY_REASON.get(info.reason)
        if known is not None:
            return known.from_wire(status.message, info.metadata)
        nearest = _NEAREST.get(code, SidecarError) if code is not None else SidecarError
        return nearest.from_wire(status.message, {**info.metadata, "reason": info.reason})
    return _untold_error(code, text, operation=operation, home=home, deadline_s=deadline_s)


def _untold_error(
    code: grpc.StatusCode | None, text: str, *, operation: str, home: str, deadline_s: float
) -> SidecarError:
    """Return the error of a failure that gRPC itself tells of."""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return DeadlineError(operation, deadline_s)
    if code is grpc.StatusCode.UNAVAILABLE:
        return SidecarNotRunningError(home)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _OVERLOADED in text:
        return TooManyRequestsError("calls")
    too_large = _TOO_LARGE.search(text)
    if too_large is not None:
        return TooLargeMessageError(int(too_large.group(1)))
    name = code.name if code is not None else "no status"
    return CallFailedError(f"{operation} failed with {name}: {text[:200]}; the sidecar's log may say more")


def is_missing_sidecar(failure: grpc.RpcError) -> bool:
    """Return whether the call reached no sidecar, or one that told it to go elsewhere; it was not carried out then.

    UNAVAILABLE without details also comes from a connection that broke midway, so a call that is not safe to repeat
    must not be repeated for it; see `was_refused`.
    """
    return _code(failure) is grpc.StatusCode.UNAVAILABLE and (
        _error_info(_status(failure)) is None or was_refused(failure)
    )


def was_refused(failure: grpc.RpcError) -> bool:
    """Return whether the sidecar said that it did not begin: it is stopping, or it is another one than was meant."""
    info = _error_info(_status(failure))
    return info is not None and info.reason in {"SHUTTING_DOWN", UnauthenticatedError.reason}


def overload_pause_s(failure: grpc.RpcError) -> float | None:
    """Return how long to wait before a call is made again that was not begun for too many others; None for no such."""
    if _code(failure) is not grpc.StatusCode.RESOURCE_EXHAUSTED:
        return None
    status = _status(failure)
    info = _error_info(status)
    if info is None:
        return _DEFAULT_PAUSE_S if _OVERLOADED in _details(failure) else None
    if info.reason != TooManyRequestsError.reason:
        return None
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Is(retry.DESCRIPTOR) and detail.Unpack(retry):
            return float(retry.retry_delay.ToTimedelta().total_seconds())
    return _DEFAULT_PAUSE_S


def _code(failure: grpc.RpcError) -> grpc.StatusCode | None:
    # A failed call is an RpcError and a Call at once, which the types do not say.
    code = failure.code() if isinstance(failure, grpc.Call | grpc.aio.AioRpcError) else None
    return code if isinstance(code, grpc.StatusCode) else None


def _details(failure: grpc.RpcError) -> str:
    details = failure.details() if isinstance(failure, grpc.Call | grpc.aio.AioRpcError) else None
    return details or ""


def _status(failure: grpc.RpcError) -> status_pb2.Status:
    """Return the rich status; an empty one if there is none that can be read."""
    status = status_pb2.Status()
    if isinstance(failure, grpc.Call | grpc.aio.AioRpcError):
        for key, value in failure.trailing_metadata() or ():
            if key == _DETAILS_KEY and isinstance(value, bytes):
                try:
                    status.ParseFromString(value)
                except DecodeError:
                    status.Clear()
    return status


def _error_info(status: status_pb2.Status) -> error_details_pb2.ErrorInfo | None:
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Is(info.DESCRIPTOR) and detail.Unpack(info) and info.domain == DOMAIN:
            return info
    return None
