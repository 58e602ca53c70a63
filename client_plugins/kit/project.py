"""Names the project that a working directory belongs to, by reading `.git` files and folders. Never runs git.

The rule: the name of the folder that holds the repository's common `.git`, so that all worktrees of a repository are
one project. A submodule is a project of its own. Outside of a repository it is the folder's own name. The home
directory and the root of the disk are no project. A folder that is not on this machine (a container's, a deleted one)
goes by its name. Characters that a namespace cannot hold become `-`; where letters were lost, a short hash keeps names
apart.

Everything read here may have been put there by someone else, so nothing is executed and nothing outside is followed.
"""

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Final

ProjectFinder = Callable[[str], str]
"""Gives the project's name for a working directory; empty for none."""

_MAX_DEPTH: Final = 64
_MAX_GIT_FILE_BYTES: Final = 4_096
_MAX_PATH_CHARACTERS: Final = 4_096
_MAX_NAME_CHARACTERS: Final = 200
_CACHE_ENTRIES: Final = 1_024
# A repository may be made, or a folder removed, while the watcher runs.
_CACHE_SECONDS: Final = 300.0
_WINDOWS_PATH: Final = re.compile(r"[A-Za-z]:[\\/]")
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9._-]+")


def project_name(cwd: str, *, home: Path | None = None) -> str:
    """Return the project's name for an absolute working directory; empty for none, or if it is not absolute.

    Args:
        cwd: As a client wrote it; may be hostile, or a path of another system.
        home: The user's home directory; the real one if not given.
    """
    if not cwd or len(cwd) > _MAX_PATH_CHARACTERS or "\0" in cwd:
        return ""
    # A network path would make Windows send the user's credentials to whoever wrote the transcript.
    if cwd.startswith(("\\\\", "//")):
        return _clean_name(_foreign_path(cwd).name)
    path = Path(cwd)
    if not path.is_absolute():
        return _clean_name(PureWindowsPath(cwd).name) if _WINDOWS_PATH.match(cwd) else ""
    return _local_project(path, home or Path.home())


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository's work tree, and the project that it is.

    Attributes:
        root: Absolute path of the folder where the work tree begins.
        project: See `project_name`.
    """

    root: str
    project: str


def find_repository(path: str, *, home: Path | None = None) -> Repository | None:
    """Return the repository that an absolute path of this machine lies in, or is.

    Args:
        path: Of a folder; it need not be there.
        home: The user's home directory; the real one if not given.
    """
    if not path or len(path) > _MAX_PATH_CHARACTERS or "\0" in path or path.startswith(("\\\\", "//")):
        return None
    if not Path(path).is_absolute():
        return None
    try:
        folder, home = Path(os.path.realpath(path)), Path(os.path.realpath(home or Path.home()))
    except (OSError, ValueError):
        return None
    return _repository_above(folder, home)


class CachedProjects:
    """Remembers names of projects for a few minutes. Not safe to call from several threads at once."""

    def __init__(self, *, home: Path | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._home = home
        self._now = now
        self._names: dict[str, tuple[float, str]] = {}

    def __call__(self, cwd: str) -> str:
        """See `project_name`."""
        known = self._names.get(cwd)
        if known is not None and known[0] > self._now():
            return known[1]
        if len(self._names) >= _CACHE_ENTRIES:
            self._names.clear()
        name = project_name(cwd, home=self._home)
        self._names[cwd] = (self._now() + _CACHE_SECONDS, name)
        return name


def _local_project(path: Path, home: Path) -> str:
    try:
        folder = Path(os.path.realpath(path))
        home = Path(os.path.realpath(home))
    except (OSError, ValueError):
        return _clean_name(path.name)
    if folder in (home, Path(folder.anchor)):
        return ""
    repository = _repository_above(folder, home)
    return repository.project if repository else _clean_name(folder.name.removesuffix(".git"))


def _repository_above(folder: Path, home: Path) -> Repository | None:
    for candidate in (folder, *folder.parents)[:_MAX_DEPTH]:
        # A repository of dot files must not make one project of everything below it.
        if candidate in (home, Path(candidate.anchor)):
            break
        name = _repository_name(candidate)
        if name:
            return Repository(str(candidate), _clean_name(name))
    return None


def _repository_name(folder: Path) -> str:
    """Return the name of the repository whose work tree begins here; empty if none does."""
    git = folder / ".git"
    try:
        mode = git.lstat().st_mode
        if stat.S_ISDIR(mode):
            return folder.name if (git / "HEAD").exists() else ""
        if not stat.S_ISREG(mode) or git.stat().st_size > _MAX_GIT_FILE_BYTES:
            return ""
        text = git.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    target = text.removeprefix("gitdir:").strip()
    if target == text.strip() or not target or "\n" in target or "\0" in target:
        return ""
    return _main_work_tree(_foreign_path(target)) or folder.name


def _main_work_tree(git_folder: PurePath) -> str:
    """Return the name of a worktree's repository from `<repository>/.git/worktrees/<name>`; empty for other forms."""
    if git_folder.parent.name != "worktrees":
        return ""
    common = git_folder.parent.parent
    # `.git` of a checkout, or a hidden bare clone beside its worktrees.
    if common.name.startswith("."):
        return common.parent.name
    return common.name.removesuffix(".git")


def _foreign_path(text: str) -> PurePath:
    is_windows = _WINDOWS_PATH.match(text) or text.startswith("\\\\")
    return PureWindowsPath(text) if is_windows else PurePosixPath(text)


def _clean_name(name: str) -> str:
    cleaned = _NOT_ALLOWED.sub("-", name)[:_MAX_NAME_CHARACTERS]
    if not name.isascii() or cleaned.strip(".-") == "":
        mark = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=4).hexdigest()
        return f"{cleaned.strip('.-')[: _MAX_NAME_CHARACTERS - 9] or 'project'}-{mark}" if name else ""
    return cleaned
