"""Errors of who may: a call without our token, a file that is not ours."""

from sidecar.errors.base import SidecarError


class UnauthenticatedError(SidecarError):
    """The call carries no token, or not this sidecar's."""

    reason = "UNAUTHENTICATED"

    def __init__(self) -> None:
        super().__init__(
            "the call carries no valid token; read it from the endpoint file in the data folder, or use sidecar.client"
        )


class UntrustedPathError(SidecarError):
    """A file or folder of ours belongs to someone else, or is not what it should be; it was not used."""

    reason = "UNTRUSTED_PATH"

    def __init__(
        self, path: str, problem: str, *, remedy: str = "remove it or choose another data folder with SIDECAR_HOME"
    ) -> None:
        super().__init__(f"{path} {problem}; {remedy}", path=path)
