"""What the exit code of a command says, and which error gives which. Stable: scripts branch on it."""

from enum import IntEnum
from typing import Final

from sidecar.errors import (
    AlreadyRunningError,
    InvalidInputError,
    NotFoundError,
    SchemaTooNewError,
    SidecarError,
    SidecarStartError,
    StateConflictError,
    StorageError,
    TooLargeMessageError,
    UnauthenticatedError,
    UnavailableError,
    UntrustedPathError,
)


class ExitCode(IntEnum):
    """How a command ended. Up to 5 they are those of `sidecar serve`, which ends with nothing else."""

    OK = 0
    FAILED = 1
    USAGE = 2
    ALREADY_RUNNING = 3
    NOT_ALLOWED = 4
    STORAGE = 5
    UNAVAILABLE = 6
    NOT_FOUND = 7
    CONFLICT = 8
    INTERRUPTED = 130


MEANINGS: Final = {
    ExitCode.OK: "done; also when nothing was found",
    ExitCode.FAILED: "failed, or `doctor` found something wrong; the message says what",
    ExitCode.USAGE: "the command or a value is wrong; nothing was done",
    ExitCode.ALREADY_RUNNING: "`serve`: another sidecar holds this data folder",
    ExitCode.NOT_ALLOWED: "a file, folder or token is not ours alone, so it was not used",
    ExitCode.STORAGE: "the disk or the database refused; nothing was stored",
    ExitCode.UNAVAILABLE: "no sidecar runs, it could not be started, or it gave no answer in time",
    ExitCode.NOT_FOUND: "no memory, relation, dispute or session has this id; nothing found to `forget` or `connect`",
    ExitCode.CONFLICT: "not possible as things are: forgetting a golden rule, changing a client's damaged file",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
}

# The first that fits; leaves stand before their parents.
_BY_ERROR: Final[tuple[tuple[type[SidecarError], ExitCode], ...]] = (
    (InvalidInputError, ExitCode.USAGE),
    (TooLargeMessageError, ExitCode.USAGE),
    (NotFoundError, ExitCode.NOT_FOUND),
    (SchemaTooNewError, ExitCode.STORAGE),
    (StateConflictError, ExitCode.CONFLICT),
    (UnauthenticatedError, ExitCode.NOT_ALLOWED),
    (UntrustedPathError, ExitCode.NOT_ALLOWED),
    (StorageError, ExitCode.STORAGE),
    (AlreadyRunningError, ExitCode.ALREADY_RUNNING),
    (UnavailableError, ExitCode.UNAVAILABLE),
)

# Ends of a sidecar that say why it cannot be started, and what a script may do about it.
_TELLING_ENDS: Final = frozenset({str(code.value) for code in (ExitCode.USAGE, ExitCode.NOT_ALLOWED, ExitCode.STORAGE)})


def exit_code_of(error: SidecarError) -> ExitCode:
    """Return what a command ends with that failed for this reason."""
    if isinstance(error, SidecarStartError) and error.metadata.get("exit_code") in _TELLING_ENDS:
        return ExitCode(int(error.metadata["exit_code"]))
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), ExitCode.FAILED)


def epilog() -> str:
    """Return the table of exit codes as `--help` shows it."""
    return "\n\n".join(("Exit codes:", *(f"{code.value:>3}  {meaning}" for code, meaning in MEANINGS.items())))
