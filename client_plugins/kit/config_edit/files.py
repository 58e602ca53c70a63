"""Reads and replaces one configuration file of a client. Knows nothing of what is in it.

A file is written beside itself and renamed into place, keeping its mode and owner; a link to it stays a link. Just
before that it is read again: a client that is running may have written it meanwhile, and must not lose what it wrote.
"""

import contextlib
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from sidecar.errors import (
    ClientConfigChangedError,
    ClientConfigMalformedError,
    ClientConfigReadOnlyError,
    StorageError,
)

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_PRIVATE: Final = 0o600
_BY_UMASK: Final = 0o666


@dataclass(frozen=True)
class ConfigFile:
    """A configuration file as it was when it was read.

    Attributes:
        path: As it was named.
        target: What it is when all links are followed.
        content: None if there is no file.
        found: What the system says of it, None if there is no file.
        links: The links that lead from `path` to `target`, in this order, each with what is in it.
    """

    path: Path
    target: Path
    content: bytes | None
    found: os.stat_result | None
    links: tuple[tuple[Path, str], ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            ClientConfigMalformedError: It is no regular file, or a circle of links.
            ClientConfigReadOnlyError: It must not be read.
            StorageError: The disk refuses.
        """
        target = Path(os.path.realpath(path))
        links = _links_from(path)
        try:
            found = target.stat()
            if not stat.S_ISREG(found.st_mode):
                raise ClientConfigMalformedError(str(path), "it is not a regular file")
            return cls(path, target, target.read_bytes(), found, links)
        except FileNotFoundError:
            return cls(path, target, None, None, links)
        except PermissionError as error:
            raise ClientConfigReadOnlyError(str(path)) from error
        except OSError as error:
            raise _storage_error(path, error) from error

    @property
    def text(self) -> str | None:
        """What is in it, without a byte order mark; None if there is no file.

        Raises:
            ClientConfigMalformedError: It is not UTF-8.
        """
        if self.content is None:
            return None
        try:
            return self.content.removeprefix(_BYTE_ORDER_MARK).decode("utf-8")
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
            raise ClientConfigMalformedError(str(self.path), "it is not UTF-8", line=line, column=1) from error

    def encoded(self, text: str) -> bytes:
        """Return a text as this file would hold it."""
        has_mark = self.content is not None and self.content.startswith(_BYTE_ORDER_MARK)
        return (_BYTE_ORDER_MARK if has_mark else b"") + text.encode("utf-8")

    def check_writable(self) -> None:
        """See to it that the file may be replaced.

        Raises:
            ClientConfigReadOnlyError: Its mode forbids it; replacing it would disregard that.
        """
        if self.found is not None and not self.found.st_mode & stat.S_IWUSR:
            raise ClientConfigReadOnlyError(str(self.path))

    def replace(self, content: bytes, *, is_private: bool) -> list[Path]:
        """Write the file, so that a reader sees the old or the new content and nothing between.

        Args:
            content: All of it.
            is_private: Whether a new file is for the user alone; else the umask decides.

        Returns:
            The folders that had to be made, outermost first.

        Raises:
            ClientConfigChangedError: It is not as it was read any more.
            ClientConfigReadOnlyError: It must not be written.
            StorageError: The disk refuses.
        """
        self.check_writable()
        try:
            made = _make_folders(self.target.parent)
            fresh = self.target.with_name(f".{self.target.name}.{secrets.token_hex(4)}")
            try:
                # One that is there may be for its user alone: until its mode is set, so is what takes its place.
                is_guarded = is_private or self.found is not None
                self._write_fresh(fresh, content, _PRIVATE if is_guarded else _BY_UMASK)
                self._check_unchanged()
                fresh.replace(self.target)
            finally:
                with contextlib.suppress(OSError):
                    fresh.unlink(missing_ok=True)
        except PermissionError as error:
            raise ClientConfigReadOnlyError(str(self.path)) from error
        except OSError as error:
            raise _storage_error(self.path, error) from error
        return made

    def remove(self, *, is_link_kept: bool = False) -> None:
        """Delete the file, and the links that lead to it, which would lead nowhere.

        Args:
            is_link_kept: Leave them: they led nowhere before, too.

        Raises:
            ClientConfigChangedError: It is not as it was read any more.
            ClientConfigReadOnlyError: It must not be written.
            StorageError: The disk refuses.
        """
        self._check_unchanged()
        try:
            self.target.unlink(missing_ok=True)
            for link, aim in () if is_link_kept else self.links:
                if link.is_symlink() and str(link.readlink()) == aim:
                    link.unlink()
        except PermissionError as error:
            raise ClientConfigReadOnlyError(str(self.path)) from error
        except OSError as error:
            raise _storage_error(self.path, error) from error

    def restore_links(self) -> None:
        """Make those links again that are gone since the file was read; what took the place of one stays.

        Raises:
            ClientConfigReadOnlyError: It must not be written.
            StorageError: The disk refuses.
        """
        try:
            for link, aim in self.links:
                if not os.path.lexists(link):
                    link.symlink_to(aim)
        except PermissionError as error:
            raise ClientConfigReadOnlyError(str(self.path)) from error
        except OSError as error:
            raise _storage_error(self.path, error) from error

    def _write_fresh(self, fresh: Path, content: bytes, mode: int) -> None:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if self.found is None:
            return
        fresh.chmod(stat.S_IMODE(self.found.st_mode))
        if hasattr(os, "chown") and self.found.st_uid != fresh.stat().st_uid:
            os.chown(fresh, self.found.st_uid, self.found.st_gid)

    def _check_unchanged(self) -> None:
        try:
            now = self.target.read_bytes()
        except FileNotFoundError:
            now = None
        if now != self.content:
            raise ClientConfigChangedError(str(self.path))


def _links_from(path: Path) -> tuple[tuple[Path, str], ...]:
    """Return the links in the place of the file itself; folders on the way to it may be links as well, and stay."""
    links: list[tuple[Path, str]] = []
    while path.is_symlink() and all(path != link for link, _ in links):
        aim = path.readlink()
        links.append((path, str(aim)))
        path = path.parent / aim
    return tuple(links)


def remove_empty_folders(folders: list[Path]) -> None:
    """Remove those of our folders that nobody put anything into, innermost first."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _make_folders(folder: Path) -> list[Path]:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _storage_error(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path} cannot be used: {error.strerror or error}; see to the disk and try again")
