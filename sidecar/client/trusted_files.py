"""Makes, reads and replaces files and folders that must be ours alone. Follows no link; knows nothing of their content.

Windows has no owner and mode bits of this kind; there the profile folder's own access list is what protects.
"""

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

from sidecar.errors import StorageError, StorageFullError, StorageReadOnlyError, UntrustedPathError

PRIVATE_UMASK: Final = 0o077
_PRIVATE_FOLDER: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_OTHERS: Final = 0o077
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_MAX_SMALL_FILE_BYTES: Final = 16 * 1024
_OTHER_FOLDER: Final = "choose an empty folder with SIDECAR_HOME"


def ensure_private_folder(path: Path, *, signs: Collection[str] | None = None) -> None:
    """Make the folder, mode 0700, or see to it that the one that is there is ours and closed to others.

    Args:
        path: The folder.
        signs: Names of files, any of which tells that a folder with files in it is one of ours and may be closed to
            others; None if its place tells already.

    Raises:
        UntrustedPathError: It is a link, no folder, belongs to another user, or serves another purpose.
        StorageError: It cannot be made.
    """
    try:
        path.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        found = path.lstat()
    except (FileExistsError, NotADirectoryError) as error:
        raise UntrustedPathError(str(path), "is not a folder") from error
    except OSError as error:
        raise storage_error(path, error) from error
    _require(path, found, is_folder=True)
    _require_own_purpose(path, found, signs)
    if _is_open_to_others(found):
        # A folder that the user made by hand has the usual 0755; what we put into it must still be private.
        try:
            path.chmod(_PRIVATE_FOLDER)
        except OSError as error:
            raise storage_error(path, error) from error


def check_private_folder(path: Path) -> bool:
    """Return whether the folder is there; nothing is made or changed.

    Raises:
        UntrustedPathError: It is a link, no folder, or belongs to another user.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    except NotADirectoryError as error:
        raise UntrustedPathError(str(path), "lies below something that is not a folder") from error
    _require(path, found, is_folder=True)
    return True


def check_own_purpose(path: Path, *, signs: Collection[str] | None) -> None:
    """See to it that an existing folder may be made ours alone; nothing is changed.

    Args:
        path: The folder.
        signs: See `ensure_private_folder`.

    Raises:
        UntrustedPathError: Others rely on it: it is shared, the user's home, or open and holds none of these files.
        StorageError: It cannot be read.
    """
    try:
        _require_own_purpose(path, path.lstat(), signs)
    except OSError as error:
        raise storage_error(path, error) from error


def check_own_socket(path: Path) -> bool:
    """Return whether a socket of ours is there.

    Raises:
        UntrustedPathError: Something else is there, or it belongs to another user.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise UntrustedPathError(str(path), "is not a socket")
    _require_owner(path, found)
    return True


def read_private_file(path: Path) -> bytes | None:
    """Return the content of a small file of ours, or nothing if it is not there.

    Raises:
        UntrustedPathError: It is a link or no regular file, belongs to another user, or others may read or change it.
    """
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    _require(path, found, is_folder=False)
    if _is_open_to_others(found):
        raise UntrustedPathError(str(path), "can be read or changed by other users")
    try:
        descriptor = os.open(path, os.O_RDONLY | _no_follow())
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MAX_SMALL_FILE_BYTES)


def replace_private_file(path: Path, content: bytes) -> None:
    """Write the file, mode 0600, so that a reader sees the old or the new content and nothing between.

    Raises:
        StorageError: The disk refuses.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _no_follow(), _PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        fresh.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise storage_error(path, error) from error


def open_private_log(path: Path, *, truncate: bool = False) -> int:
    """Return a descriptor that appends to a log of ours, mode 0600.

    Raises:
        UntrustedPathError: Something else than a regular file of ours is there.
        StorageError: The disk refuses.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _no_follow() | (os.O_TRUNC if truncate else 0)
    try:
        # Non-blocking, or else a pipe that somebody put there would stop us here for ever.
        descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), _PRIVATE_FILE)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO, errno.EISDIR}:
            raise UntrustedPathError(str(path), "is not a regular file") from error
        raise storage_error(path, error) from error
    try:
        _require(path, os.fstat(descriptor), is_folder=False)
    except UntrustedPathError:
        os.close(descriptor)
        raise
    return descriptor


def storage_error(path: Path, error: OSError) -> StorageError:
    """Name what the disk said about this path."""
    if error.errno in _FULL:
        return StorageFullError(str(path))
    if error.errno in _REFUSED:
        return StorageReadOnlyError(str(path))
    return StorageError(f"{path} cannot be used: {error.strerror or error}; see to the disk and try again")


def _require(path: Path, found: os.stat_result, *, is_folder: bool) -> None:
    """Refuse what is of another kind or another user's."""
    if stat.S_ISLNK(found.st_mode):
        raise UntrustedPathError(str(path), "is a symbolic link")
    if is_folder and not stat.S_ISDIR(found.st_mode):
        raise UntrustedPathError(str(path), "is not a folder")
    if not is_folder and not stat.S_ISREG(found.st_mode):
        raise UntrustedPathError(str(path), "is not a regular file")
    _require_owner(path, found)


def _require_owner(path: Path, found: os.stat_result) -> None:
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise UntrustedPathError(str(path), "belongs to another user")


def _require_own_purpose(path: Path, found: os.stat_result, signs: Collection[str] | None) -> None:
    """Refuse a folder that others rely on: closing /tmp or somebody's home would lock out whatever uses it."""
    if found.st_mode & stat.S_ISVTX:
        raise UntrustedPathError(str(path), "is a folder that users share", remedy=_OTHER_FOLDER)
    if signs is None:
        return
    if _is_users_home(path):
        raise UntrustedPathError(str(path), "is your home folder", remedy=_OTHER_FOLDER)
    if not _is_open_to_others(found):
        return
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise storage_error(path, error) from error
    if names and names.isdisjoint(signs):
        raise UntrustedPathError(str(path), "holds files that are not ours", remedy=_OTHER_FOLDER)


def _is_users_home(path: Path) -> bool:
    try:
        return path.samefile(Path.home())
    except (OSError, RuntimeError):
        # No home is known, or it is not there; then this is not it.
        return False


def _is_open_to_others(found: os.stat_result) -> bool:
    return sys.platform != "win32" and bool(found.st_mode & _OTHERS)


def _no_follow() -> int:
    # Windows has no such flag, and no links that a plain user could plant either.
    return getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
