"""Errors of how much at once."""

from sidecar.errors.base import SidecarError


class TooLargeMessageError(SidecarError):
    """A message is over the transport's limit."""

    reason = "MESSAGE_TOO_LARGE"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"the message is over the limit of {limit_bytes} bytes; send less at once", limit_bytes=str(limit_bytes)
        )


class TooManyRequestsError(SidecarError):
    """A queue is full; nothing of this request was taken."""

    reason = "TOO_MANY_REQUESTS"

    def __init__(self, what: str) -> None:
        super().__init__(f"too many {what} wait already; send again in a moment", what=what)
