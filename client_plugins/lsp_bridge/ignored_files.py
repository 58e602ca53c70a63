"""Tells which files a repository does not keep, by `.gitignore`. Never runs git; the patterns are a stranger's."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from pathspec import GitIgnoreSpec

_NAME: Final = ".gitignore"
_EXCLUDE: Final = PurePosixPath(".git/info/exclude")
_MAX_BYTES: Final = 64 * 1024
_MAX_PATTERNS: Final = 1_000
# Many wild cards in one pattern make matching take for ever.
_MAX_PATTERN_CHARACTERS: Final = 200
_MAX_WILD_CARDS: Final = 6
_CACHE_ENTRIES: Final = 256


class IgnoredFiles:
    """Answers for files of repositories, and keeps what it read until the files change. Blocks."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[int, GitIgnoreSpec | None]] = {}

    def is_ignored(self, root: str, relative: str) -> bool:
        """Tell whether a file is ignored, or belongs to git itself.

        Args:
            root: Folder of the repository, absolute.
            relative: Path of the file below it, `/` between its parts.
        """
        path = PurePosixPath(relative)
        if ".git" in path.parts:
            return True
        return any(self._is_excluded(root, each) for each in (*reversed(path.parents[:-1]), path))

    def _is_excluded(self, root: str, path: PurePosixPath) -> bool:
        """Tell whether the rules exclude a folder or file; the rule nearest to it that says anything counts."""
        verdict = None
        for folder, spec in self._rules(root, path):
            name = path.relative_to(folder).as_posix()
            is_folder = Path(root, path).is_dir()
            said = spec.check_file(f"{name}/" if is_folder else name).include
            verdict = said if said is not None else verdict
        return bool(verdict)

    def _rules(self, root: str, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, GitIgnoreSpec]]:
        top = PurePosixPath()
        files = [
            (top, Path(root, _EXCLUDE)),
            *((folder, Path(root, folder, _NAME)) for folder in reversed(path.parents)),
        ]
        for folder, file in files:
            spec = self._spec(file)
            if spec is not None:
                yield folder, spec

    def _spec(self, file: Path) -> GitIgnoreSpec | None:
        try:
            found = file.lstat()
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
            return None
        known = self._read.get(str(file))
        if known is None or known[0] != found.st_mtime_ns:
            if len(self._read) >= _CACHE_ENTRIES:
                self._read.clear()
            known = self._read[str(file)] = (found.st_mtime_ns, _parsed(file))
        return known[1]


def _parsed(file: Path) -> GitIgnoreSpec | None:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()[:_MAX_PATTERNS]
    except OSError:
        return None
    return GitIgnoreSpec.from_lines(line for line in lines if _is_usable(line))


def _is_usable(pattern: str) -> bool:
    if len(pattern) > _MAX_PATTERN_CHARACTERS or pattern.count("*") + pattern.count("[") > _MAX_WILD_CARDS:
        return False
    try:
        GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error):
        # As git does, one that makes no sense is passed over.
        return False
    return True
