"""Errors of what does not work now and may work later."""

from sidecar.errors.base import SidecarError


class UnavailableError(SidecarError):
    """It does not work now; the same call may work later."""

    reason = "UNAVAILABLE"


class SidecarNotRunningError(UnavailableError):
    """No sidecar runs for this data folder and none was started."""

    reason = "SIDECAR_NOT_RUNNING"

    def __init__(self, home: str) -> None:
        super().__init__(f"no sidecar runs for {home}; start it with `sidecar start`", home=home)


class SidecarStartError(UnavailableError):
    """A sidecar was started but ended or stayed silent."""

    reason = "SIDECAR_START_FAILED"

    def __init__(self, home: str, problem: str, *, exit_code: int | None = None) -> None:
        ended = {} if exit_code is None else {"exit_code": str(exit_code)}
        super().__init__(f"the sidecar for {home} did not start: {problem}; its log is {home}/logs", home=home, **ended)


class SidecarHungError(UnavailableError):
    """A sidecar holds the data folder but does not answer."""

    reason = "SIDECAR_HUNG"

    def __init__(self, home: str, waited_s: float) -> None:
        super().__init__(
            f"a sidecar holds {home} but did not answer within {waited_s:.0f} s; `sidecar restart` replaces it",
            home=home,
        )


class AlreadyRunningError(UnavailableError):
    """Another sidecar holds this data folder."""

    reason = "ALREADY_RUNNING"

    def __init__(self, home: str) -> None:
        super().__init__(f"a sidecar already runs for {home}; there is one for each data folder", home=home)


class ShuttingDownError(UnavailableError):
    """The sidecar is about to stop and takes no new work."""

    reason = "SHUTTING_DOWN"

    def __init__(self) -> None:
        super().__init__("the sidecar is shutting down; call again in a moment")


class EmbedderUnavailableError(UnavailableError):
    """No embedding model can be used; recall by words goes on."""

    reason = "EMBEDDER_UNAVAILABLE"

    def __init__(self, problem: str) -> None:
        # A reason that was told before, such as when the model was loaded, begins like this already.
        opening = "the embedding model cannot be used: "
        super().__init__(opening + problem.removeprefix(opening))


class DeadlineError(UnavailableError):
    """The answer did not come in time; a write may still have happened, and a retry with the same key is safe."""

    reason = "DEADLINE"

    def __init__(self, operation: str, deadline_s: float) -> None:
        super().__init__(
            f"{operation} got no answer within {deadline_s:g} s; the same call may be made again", operation=operation
        )
