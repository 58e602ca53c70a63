"""The exclusive locks on a data folder. Held by a process for as long as it lives; the kernel frees them at its end."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sidecar.client.trusted_files import read_private_file, storage_error

if TYPE_CHECKING:
    import filelock

_MODE = 0o600


def make_lock(path: Path) -> "filelock.BaseFileLock":
    """Return the lock of this file, not acquired.

    Raises:
        UntrustedPathError: Something else than a regular file of ours alone is there.
    """
    # 40 ms to import, and most clients find a sidecar that runs and need no lock.
    import filelock  # noqa: PLC0415

    read_private_file(path)
    # A lock that only marks a file would outlive a killed process, so where the real kind is missing we fail instead.
    return filelock.FileLock(path, mode=_MODE, thread_local=False, fallback_to_soft=False, preserve_lock_file=True)


@contextlib.contextmanager
def try_lock(path: Path, *, wait_s: float = 0.0) -> Iterator[bool]:
    """Hold the lock for the block, if it is free or becomes so in time; the value says whether.

    Raises:
        UntrustedPathError: Something else than a regular file of ours alone is there.
        StorageError: The file cannot be made.
    """
    import filelock  # noqa: PLC0415

    lock = make_lock(path)
    try:
        lock.acquire(timeout=wait_s)
    except filelock.Timeout:
        yield False
        return
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        yield True
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Return whether some process holds the lock. Takes a free lock for a moment, which whoever wants it must bear.

    Raises:
        UntrustedPathError: Something else than a regular file of ours alone is there.
        StorageError: The file cannot be opened.
    """
    if not path.exists():
        return False
    with try_lock(path) as is_ours:
        return not is_ours
