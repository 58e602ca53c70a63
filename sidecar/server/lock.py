"""The lock that makes one sidecar per data folder. Taken before anything in the folder is opened."""

from collections.abc import Iterator
from contextlib import contextmanager

from sidecar.client.endpoint import DataFolder, Holder
from sidecar.client.folder_lock import try_lock
from sidecar.errors import AlreadyRunningError

# A client that looks whether the folder is taken holds the lock for a moment.
_WAIT_S = 1.0


class HeldLock:
    """The lock while it is held. Knows whether its file is still the one in the folder."""

    def __init__(self, folder: DataFolder) -> None:
        self._path = folder.lock_path
        self._identity = self._identity_now()

    def is_ours(self) -> bool:
        """Return whether the file in the folder is still the one that we locked.

        Whoever deletes it frees the folder for a second sidecar, although the first one lives.
        """
        return self._identity is not None and self._identity_now() == self._identity

    def _identity_now(self) -> tuple[int, int] | None:
        try:
            found = self._path.lstat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


@contextmanager
def hold_folder(folder: DataFolder, holder: Holder) -> Iterator[HeldLock]:
    """Hold the data folder for the block, and say in it who does.

    Raises:
        AlreadyRunningError: Another process holds it.
        UntrustedPathError: The lock file is not ours alone.
        StorageError: The disk refuses.
    """
    with try_lock(folder.lock_path, wait_s=_WAIT_S) as is_ours:
        if not is_ours:
            raise AlreadyRunningError(str(folder.home))
        lock = HeldLock(folder)
        holder.write(folder)
        yield lock
