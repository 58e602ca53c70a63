"""What `sidecar serve` ends with. Documented in docs/configuration.md; scripts and clients rely on it."""

from typing import Final

from sidecar.client.launch import ALREADY_RUNNING_EXIT_CODE
from sidecar.errors import (
    AlreadyRunningError,
    InvalidInputError,
    SchemaTooNewError,
    SidecarError,
    StorageError,
    UntrustedPathError,
)

EXIT_STOPPED: Final = 0
"""Stopped in order, by a signal or on request."""
EXIT_FAILED: Final = 1
"""A fault of ours; the log has the traceback."""
EXIT_USAGE: Final = 2
"""A flag or setting is not acceptable."""
EXIT_ALREADY_RUNNING: Final = ALREADY_RUNNING_EXIT_CODE
"""Another sidecar holds the data folder; it is left alone."""
EXIT_UNTRUSTED: Final = 4
"""The data folder or something in it is not ours alone."""
EXIT_STORAGE: Final = 5
"""The disk or the database refuses."""

_BY_ERROR: Final[tuple[tuple[type[SidecarError], int], ...]] = (
    (InvalidInputError, EXIT_USAGE),
    (AlreadyRunningError, EXIT_ALREADY_RUNNING),
    (UntrustedPathError, EXIT_UNTRUSTED),
    (StorageError, EXIT_STORAGE),
    (SchemaTooNewError, EXIT_STORAGE),
)


def exit_code_of(error: SidecarError) -> int:
    """Return what the process ends with for an error that stopped it."""
    return next((code for cls, code in _BY_ERROR if isinstance(error, cls)), EXIT_FAILED)
