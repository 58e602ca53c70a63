"""Every failure a caller can be told of, by subject. Knows no gRPC; `sidecar.rpc.status` gives each a status code."""

from sidecar.errors.access import UnauthenticatedError, UntrustedPathError
from sidecar.errors.availability import (
    AlreadyRunningError,
    DeadlineError,
    EmbedderUnavailableError,
    ShuttingDownError,
    SidecarHungError,
    SidecarNotRunningError,
    SidecarStartError,
    UnavailableError,
)
from sidecar.errors.base import DOMAIN, SidecarError
from sidecar.errors.client_config import (
    ClientConfigChangedError,
    ClientConfigError,
    ClientConfigMalformedError,
    ClientConfigOccupiedError,
    ClientConfigReadOnlyError,
    ClientConfigUneditableError,
    ClientNotFoundError,
)
from sidecar.errors.faults import CallFailedError, EmbeddingFailedError, IndexRowError, InternalError
from sidecar.errors.input import (
    BadLabelledLineError,
    ContentTooLargeError,
    EmptyQueryError,
    InvalidInputError,
    InvalidNamespaceError,
    RequestKeyReusedError,
    UnknownMemoryTypeError,
    UnknownRelationError,
)
from sidecar.errors.limits import TooLargeMessageError, TooManyRequestsError
from sidecar.errors.llm import (
    JudgeUnavailableError,
    LlmAnswerMalformedError,
    LlmBudgetSpentError,
    LlmUnavailableError,
    LlmUnreachableError,
)
from sidecar.errors.state import (
    DisputeNotFoundError,
    DisputeResolvedError,
    DuplicateMemoryError,
    EdgeNotFoundError,
    MemoryNotForgottenError,
    MemoryNotFoundError,
    NotFoundError,
    ProtocolMismatchError,
    RedactionUnavailableError,
    SchemaTooNewError,
    StateConflictError,
    SupersessionCircleError,
)
from sidecar.errors.storage import StorageCorruptError, StorageError, StorageFullError, StorageReadOnlyError

__all__ = [
    "DOMAIN",
    "AlreadyRunningError",
    "BadLabelledLineError",
    "CallFailedError",
    "ClientConfigChangedError",
    "ClientConfigError",
    "ClientConfigMalformedError",
    "ClientConfigOccupiedError",
    "ClientConfigReadOnlyError",
    "ClientConfigUneditableError",
    "ClientNotFoundError",
    "ContentTooLargeError",
    "DeadlineError",
    "DisputeNotFoundError",
    "DisputeResolvedError",
    "DuplicateMemoryError",
    "EdgeNotFoundError",
    "EmbedderUnavailableError",
    "EmbeddingFailedError",
    "EmptyQueryError",
    "IndexRowError",
    "InternalError",
    "InvalidInputError",
    "InvalidNamespaceError",
    "JudgeUnavailableError",
    "LlmAnswerMalformedError",
    "LlmBudgetSpentError",
    "LlmUnavailableError",
    "LlmUnreachableError",
    "MemoryNotForgottenError",
    "MemoryNotFoundError",
    "NotFoundError",
    "ProtocolMismatchError",
    "RedactionUnavailableError",
    "RequestKeyReusedError",
    "SchemaTooNewError",
    "ShuttingDownError",
    "SidecarError",
    "SidecarHungError",
    "SidecarNotRunningError",
    "SidecarStartError",
    "StateConflictError",
    "StorageCorruptError",
    "StorageError",
    "StorageFullError",
    "StorageReadOnlyError",
    "SupersessionCircleError",
    "TooLargeMessageError",
    "TooManyRequestsError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnknownMemoryTypeError",
    "UnknownRelationError",
    "UntrustedPathError",
    "all_errors",
]


def all_errors() -> tuple[type[SidecarError], ...]:
    """Return every error class of this package, parents before their children.

    Others' subclasses are left out: they travel under their parent's reason, and which are there depends on imports.
    """
    found: list[type[SidecarError]] = []

    def visit(cls: type[SidecarError]) -> None:
        found.append(cls)
        for child in cls.__subclasses__():
            if child.__module__.partition(".errors")[0] == "sidecar":
                visit(child)

    visit(SidecarError)
    return tuple(found)
