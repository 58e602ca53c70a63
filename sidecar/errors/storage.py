"""Errors of the disk and the database."""

from sidecar.errors.base import SidecarError


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
