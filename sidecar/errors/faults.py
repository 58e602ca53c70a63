"""Errors that are nobody's request: faults of ours, and what only gRPC itself says."""

from sidecar.errors.base import SidecarError


class InternalError(SidecarError):
    """A fault of ours; the log has the details under the same id."""

    reason = "INTERNAL"

    def __init__(self, incident: str) -> None:
        super().__init__(
            f"the sidecar failed on this call (incident {incident}); its log says why. Please report it",
            incident=incident,
        )


class IndexRowError(InternalError):
    """Vectors handed to an index are not what it takes: shape, dtype, finiteness, norm or key."""

    reason = "INDEX_ROW_INVALID"

    def __init__(self, problem: str) -> None:
        SidecarError.__init__(self, f"these vectors cannot be indexed: {problem}", problem=problem)


class EmbeddingFailedError(InternalError):
    """The embedding model failed on this text, while it works on others."""

    reason = "EMBEDDING_FAILED"

    def __init__(self, problem: str) -> None:
        SidecarError.__init__(self, f"the embedding model failed on this text: {problem}", problem=problem)


class CallFailedError(SidecarError):
    """The call failed with a status that no sidecar sends on purpose, such as one of gRPC's own."""

    reason = "CALL_FAILED"
