"""Remembers what was done to clients' configuration files, so that it can be undone exactly. Lies in the data folder.

Every file is backed up before it is changed, readable for the user alone: such files can hold keys. Losing the journal
loses nothing but exactness: what is ours is still known by its looks.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from client_plugins.kit.config_edit.files import ConfigFile
from sidecar.client import DataFolder
from sidecar.client.trusted_files import ensure_private_folder, read_private_file, replace_private_file

_FOLDER: Final = "connections"
_BACKUPS: Final = "backups"
_KEPT_BACKUPS: Final = 50


@dataclass(frozen=True)
class FileRecord:
    """What was done to one file.

    Attributes:
        backup: Name of the copy of what it was before all we did; empty if there was no file.
        after: SHA-256 of what we wrote.
        is_exact: Whether the backup has nothing of ours in it, so that putting it back undoes everything.
        created: See `Edited.created`.
        folders: Those that were made for it, outermost first.
        was_link: Whether a link was in its place before all we did, though it may have led nowhere.
    """

    backup: str
    after: str
    is_exact: bool
    created: tuple[tuple[str, ...], ...] = ()
    folders: tuple[str, ...] = ()
    was_link: bool = False

    @classmethod
    def parse(cls, value: Mapping[str, object]) -> Self:
        """Return the record that a JSON object says; raises `KeyError`, `TypeError` or `ValueError` for nonsense."""
        created, folders = value["created"], value["folders"]
        if not isinstance(created, list) or not isinstance(folders, list):
            raise TypeError
        return cls(
            backup=_named(value["backup"]),
            after=str(value["after"]),
            is_exact=value["is_exact"] is True,
            created=tuple(tuple(map(str, path)) for path in created),
            folders=tuple(map(str, folders)),
            # Records of earlier versions do not say.
            was_link=value.get("was_link") is True,
        )


@dataclass(frozen=True)
class Connection:
    """What was done to connect one client in one scope.

    Attributes:
        client: Its name.
        scope: `user` or `project`.
        project: The project's folder; empty for the scope `user`.
        files: By path.
    """

    client: str
    scope: str
    project: str = ""
    files: Mapping[str, FileRecord] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What its record is called."""
        place = f"-{hashlib.sha256(self.project.encode()).hexdigest()[:12]}" if self.project else ""
        return f"{self.client}-{self.scope}{place}"


class Journal:
    """The records and backups of one data folder. Nothing is made in it until something is kept."""

    def __init__(self, folder: DataFolder) -> None:
        self._data_folder = folder
        self._folder = folder.home / _FOLDER

    def find(self, wanted: Connection) -> Connection:
        """Return what is remembered of a connection; one without files if nothing is, or if it makes no sense.

        Raises:
            UntrustedPathError: The record is not ours alone.
        """
        content = read_private_file(self._path(wanted))
        if content is None:
            return wanted
        try:
            value = json.loads(content)
            files = {str(path): FileRecord.parse(each) for path, each in value["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return wanted
        return Connection(wanted.client, wanted.scope, wanted.project, files)

    def keep(self, connection: Connection) -> None:
        """Remember what was done, or forget a connection that has no files any more.

        Raises:
            StorageError: The disk refuses.
            UntrustedPathError: The data folder is not ours alone.
        """
        self._prepare()
        if connection.files:
            replace_private_file(self._path(connection), json.dumps(asdict(connection), indent=1).encode())
        else:
            self._path(connection).unlink(missing_ok=True)

    def back_up(self, file: ConfigFile) -> str:
        """Copy what a file is now, and return the name of the copy; empty if there is no file.

        Raises:
            StorageError: The disk refuses.
            UntrustedPathError: The data folder is not ours alone.
        """
        if file.content is None:
            return ""
        self._prepare()
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        name = f"{time}-{secrets.token_hex(3)}-{file.path.name.lstrip('.')}"
        replace_private_file(self._folder / _BACKUPS / name, file.content)
        self._prune()
        return name

    def backup_path(self, name: str) -> Path:
        """Return where a backup lies."""
        return self._folder / _BACKUPS / name

    def backup_content(self, name: str) -> bytes | None:
        """Return what a backup holds; None if it is gone."""
        try:
            return self.backup_path(name).read_bytes()
        except OSError:
            return None

    def _path(self, connection: Connection) -> Path:
        return self._folder / f"{connection.name}.json"

    def _prepare(self) -> None:
        self._data_folder.prepare()
        ensure_private_folder(self._folder)
        ensure_private_folder(self._folder / _BACKUPS)

    def _prune(self) -> None:
        used = b"".join(path.read_bytes() for path in self._folder.glob("*.json"))
        # The time is the beginning of the name.
        for path in sorted((self._folder / _BACKUPS).iterdir())[:-_KEPT_BACKUPS]:
            if os.fsencode(path.name) not in used:
                path.unlink(missing_ok=True)


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _named(value: object) -> str:
    """Return the name of a backup; one that leads elsewhere is none of ours."""
    name = str(value)
    if Path(name).name != name:
        raise ValueError(name)
    return name
