"""Tells for a document's URI which file it is, whose project, and where memories about it go. Opens no document."""

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pygls.uris import to_fs_path

from client_plugins.kit.project import find_repository, project_name
from sidecar.domain.namespace import GLOBAL, PROJECT_PREFIX, parse_namespace, project_namespace

_MAX_PATH_CHARACTERS: Final = 4_096
_CACHE_ENTRIES: Final = 1_024
# A repository may be made, or a folder removed, while the editor runs.
_CACHE_S: Final = 60.0
_NETWORK_PATH: Final = re.compile(r"[\\/]{2}")


@dataclass(frozen=True, slots=True)
class Place:
    """A file of this machine.

    Attributes:
        path: Absolute, as the system writes it.
        root: Folder of its project, absolute, links resolved; empty if it belongs to none.
        relative: Its path below that folder, `/` between the parts; empty if it belongs to none.
        project: Without the `project:` prefix; empty for none.
    """

    path: str
    root: str
    relative: str
    project: str

    @property
    def absolute(self) -> str:
        """The whole path, `/` between its parts."""
        return Path(self.path).as_posix()


class Places:
    """Finds the places of documents in one editor's workspace."""

    def __init__(
        self,
        folders: Callable[[], Sequence[str]],
        *,
        namespace: str | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the workspace.

        Args:
            folders: Gives the paths of the folders that are open now.
            namespace: In place of what the folders tell.

        Raises:
            InvalidNamespaceError: If there is no such namespace.
        """
        self._folders = folders
        self._told = None if namespace is None else _project_of(namespace)
        self._now = now
        self._known: dict[str, tuple[float, _Home]] = {}

    def place(self, uri: str) -> Place | None:
        """Return the place of a document; None if it is no file of this machine, such as one that was never saved."""
        path = file_path(uri)
        if path is None:
            return None
        home, name = self._home_of(str(Path(path).parent)), Path(path).name
        project = home.project if self._told is None else self._told
        return Place(path, home.root, f"{home.below}{name}" if home.root else "", project)

    def project(self, uri: str | None) -> str:
        """Return the project of a document, else of the workspace; empty for none."""
        if self._told is not None:
            return self._told
        place = self.place(uri) if uri else None
        if place is not None:
            return place.project
        folders = self._folders()
        return project_name(folders[0]) if folders else ""

    def namespace(self, asked: str | None, uri: str | None) -> str:
        """Return where a new memory goes.

        Raises:
            InvalidNamespaceError: If that was asked for and there is no such namespace.
        """
        return full_namespace(asked) if asked else project_namespace(self.project(uri))

    def _home_of(self, folder: str) -> "_Home":
        known = self._known.get(folder)
        if known is not None and known[0] > self._now():
            return known[1]
        if len(self._known) >= _CACHE_ENTRIES:
            self._known.clear()
        found = self._look(folder)
        self._known[folder] = (self._now() + _CACHE_S, found)
        return found

    def _look(self, folder: str) -> "_Home":
        real = Path(os.path.realpath(folder))
        repository = find_repository(folder)
        if repository is not None and real.is_relative_to(repository.root):
            return _Home(repository.root, _below(real, repository.root), repository.project)
        opened = [os.path.realpath(each) for each in self._folders()]
        root = max((each for each in opened if real.is_relative_to(each)), key=len, default="")
        return _Home(root, _below(real, root), project_name(root)) if root else _Home("", "", "")


@dataclass(frozen=True, slots=True)
class _Home:
    """The project of a folder. `below`: the folder's path in it, with `/` at its end, empty for the root itself."""

    root: str
    below: str
    project: str


def file_path(uri: str) -> str | None:
    """Return the path of a `file:` URI; None for others, for paths of a network, and for what can be no path."""
    try:
        path = to_fs_path(uri)
    except ValueError:
        return None
    # To open one would make Windows send the user's credentials to the host in it.
    if not path or _NETWORK_PATH.match(path) or "\0" in path or len(path) > _MAX_PATH_CHARACTERS:
        return None
    return path if Path(path).is_absolute() else None


def full_namespace(text: str) -> str:
    """Return a namespace as it is stored; a bare name is that of a project.

    Raises:
        InvalidNamespaceError: If there is none of this name.
    """
    name = text.strip()
    return parse_namespace(name if name == GLOBAL or ":" in name else f"{PROJECT_PREFIX}{name}")


def _project_of(namespace: str) -> str:
    whole = full_namespace(namespace)
    return "" if whole == GLOBAL else whole.removeprefix(PROJECT_PREFIX)


def _below(folder: Path, root: str) -> str:
    relative = folder.relative_to(root).as_posix()
    return "" if relative == "." else f"{relative}/"
