"""Errors of a client's configuration files, which are the user's: none of them was changed."""

from sidecar.errors.state import NotFoundError, StateConflictError


class ClientNotFoundError(NotFoundError):
    """None of the clients seems to be installed."""

    reason = "CLIENT_NOT_FOUND"

    def __init__(self) -> None:
        super().__init__("no client was found; name one, such as `sidecar connect claude-code`, to connect it anyway")


class ClientConfigError(StateConflictError):
    """A configuration file of a client cannot be changed as it is; it was left as it was."""

    reason = "CLIENT_CONFIG"


class ClientConfigMalformedError(ClientConfigError):
    """The file is not what its client reads."""

    reason = "CLIENT_CONFIG_MALFORMED"

    def __init__(self, path: str, problem: str, *, line: int = 0, column: int = 0) -> None:
        place = f", line {line}, column {column}" if line else ""
        super().__init__(
            f"{path}{place}: {problem}; its client cannot read this either. Nothing was changed: mend it and try again",
            path=path,
            line=str(line),
            column=str(column),
        )


class ClientConfigOccupiedError(ClientConfigError):
    """Something that is not ours has the name that ours needs."""

    reason = "CLIENT_CONFIG_OCCUPIED"

    def __init__(self, path: str, what: str) -> None:
        super().__init__(
            f"{path} has {what} already, which is not ours. Nothing was changed: rename or remove it and try again",
            path=path,
        )


class ClientConfigUneditableError(ClientConfigError):
    """The file is valid, but laid out so that no change of it is safe."""

    reason = "CLIENT_CONFIG_UNEDITABLE"

    def __init__(self, path: str, wanted: str) -> None:
        super().__init__(
            f"{path} is laid out in a way that cannot be changed safely. Nothing was changed: {wanted} by hand",
            path=path,
        )


class ClientConfigChangedError(ClientConfigError):
    """Somebody else wrote the file while we did."""

    reason = "CLIENT_CONFIG_CHANGED"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} was changed by another program at the same moment; close its client and try again", path=path
        )


class ClientConfigReadOnlyError(ClientConfigError):
    """The file or its folder must not be written."""

    reason = "CLIENT_CONFIG_READ_ONLY"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is read-only. Nothing was changed: make it writable and try again", path=path)
