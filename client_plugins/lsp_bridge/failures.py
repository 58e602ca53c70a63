"""Makes of a failure what an editor is told: a code, what is wrong, and what to do. Never a traceback or a text."""

from typing import Final

from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams

from sidecar.errors import (
    DeadlineError,
    InternalError,
    InvalidInputError,
    SidecarError,
    StateConflictError,
    UnavailableError,
)

REQUEST_FAILED: Final = -32803
AWAY_REASON: Final = "sidecar_away"

_REMEDIES: Final = (
    (DeadlineError, "Ask again in a moment; `sidecar doctor` finds out what keeps it."),
    (UnavailableError, "`sidecar doctor` finds out what is wrong."),
    (InternalError, "`sidecar doctor` finds out more."),
)


class SidecarAwayError(UnavailableError):
    """There is no sidecar to ask."""

    reason = AWAY_REASON

    def __init__(self, cause: SidecarError) -> None:
        super().__init__(cause.message)


class NotForgottenError(StateConflictError):
    """The sidecar left a memory as it is, and said why."""

    reason = "NOT_FORGOTTEN"

    def __init__(self, memory_id: str, why: str) -> None:
        super().__init__(f"{memory_id} was not forgotten: {why}", memory_id=memory_id)


def as_response(error: SidecarError) -> JsonRpcException:
    """Return what a request is answered with that failed so."""
    problem, remedy = problem_and_remedy(error)
    data = {"reason": error.reason, "remedy": remedy}
    if isinstance(error, InvalidInputError):
        # Its message says what would be right.
        return JsonRpcInvalidParams(error.message, data={"reason": error.reason})
    return JsonRpcException(problem, code=REQUEST_FAILED, data=data)


def unforeseen() -> JsonRpcException:
    """Return what a request is answered with that failed by a fault of ours."""
    return JsonRpcInternalError("the language server of memory-sidecar failed on this request; its log says where")


def bad_parameters(problem: str) -> JsonRpcException:
    """Return what a request is answered with whose parameters are not as they should be."""
    return JsonRpcInvalidParams(problem)


def problem_and_remedy(error: SidecarError) -> tuple[str, str]:
    """Return what is wrong and what to do; messages of ours say both, in this order."""
    problem, separator, remedy = error.message.partition("; ")
    if separator:
        return problem, remedy[:1].upper() + remedy[1:]
    return problem, next((told for kind, told in _REMEDIES if isinstance(error, kind)), "")
