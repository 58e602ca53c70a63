"""Finds and reads the files of an import. Follows no link, opens regular files only, and reads within limits."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from sidecar.domain.importing import SkippedPart, SkipReason, SourceFormat, SourcePlace

MAX_NOTES_BYTES: Final = 512 * 1024
MAX_JSON_LINES_BYTES: Final = 256 * 1024 * 1024
MAX_FILES: Final = 1_000
MAX_DEPTH: Final = 6
_PROJECT_FILES: Final = (
    ("CLAUDE.md", SourceFormat.CLAUDE_MEMORY),
    ("CLAUDE.local.md", SourceFormat.CLAUDE_MEMORY),
    (".claude/CLAUDE.md", SourceFormat.CLAUDE_MEMORY),
    ("AGENTS.md", SourceFormat.AGENTS_MD),
    (".cursorrules", SourceFormat.CURSOR_RULES),
)
_RULES_FOLDER: Final = ".cursor/rules"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_NOT_IN_FOLDER_NAME: Final = re.compile("[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import. `label` is how it is named in the report and in metadata."""

    path: Path
    format: SourceFormat
    label: str


class UnreadableSourceError(Exception):
    """A file cannot be imported at all."""

    def __init__(self, reason: SkipReason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def named_source(path: Path, source_format: SourceFormat) -> Source:
    """Return a file that the user named."""
    return Source(path, source_format, path.as_posix())


def project_sources(root: Path) -> list[Source | SkippedPart]:
    """Return what agents were told in a project: CLAUDE.md, AGENTS.md, Cursor's rules; in a fixed order.

    Args:
        root: The project's folder; only fixed places in it are looked at.
    """
    found: list[Source | SkippedPart] = []
    for name, source_format in _PROJECT_FILES:
        path = root / name
        if _link_on_the_way(root, path):
            found.append(SkippedPart(SourcePlace(name), SkipReason.SYMLINK))
        elif path.exists():
            found.append(Source(path, source_format, name))
    if _link_on_the_way(root, root / _RULES_FOLDER):
        found.append(SkippedPart(SourcePlace(_RULES_FOLDER), SkipReason.SYMLINK))
        return found
    return [*found, *_below(root / _RULES_FOLDER, ".mdc", SourceFormat.CURSOR_RULES, _RULES_FOLDER)]


def claude_memory_sources(folder: Path) -> list[Source | SkippedPart]:
    """Return the files of a memory folder of Claude Code, by name.

    Args:
        folder: See `claude_memory_folder`.
    """
    if folder.is_symlink():
        return [SkippedPart(SourcePlace(folder.as_posix()), SkipReason.SYMLINK)]
    return list(_below(folder, ".md", SourceFormat.CLAUDE_MEMORY, folder.as_posix()))


def claude_memory_folder(config_folder: Path, project: Path) -> Path:
    """Return where Claude Code keeps its notes on a project.

    Args:
        config_folder: Such as `~/.claude`.
        project: Absolute path of the project's folder.
    """
    return config_folder / "projects" / _NOT_IN_FOLDER_NAME.sub("-", str(project)) / "memory"


def read_notes(path: Path) -> str:
    """Return the text of a file of notes; bytes that are no UTF-8 are taken for Windows-1252.

    Raises:
        UnreadableSourceError: It is a link, no regular file, too large, not readable, or no text.
    """
    with _opened(path, MAX_NOTES_BYTES) as file:
        raw = file.read(MAX_NOTES_BYTES + 1)
    if len(raw) > MAX_NOTES_BYTES:
        raise UnreadableSourceError(SkipReason.TOO_LARGE, f"it grew past {MAX_NOTES_BYTES} bytes")
    return decode_notes(raw)


def read_lines(path: Path, *, max_line_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a file of JSON Lines; of a longer line only so much that it can be told to be too long.

    Raises:
        UnreadableSourceError: See `read_notes`.
    """
    with _opened(path, MAX_JSON_LINES_BYTES) as file:
        while line := file.readline(max_line_bytes + 1):
            yield line
            while len(line) > max_line_bytes and not line.endswith(b"\n"):
                rest = file.readline(max_line_bytes)
                if not rest or rest.endswith(b"\n"):
                    break


def decode_notes(raw: bytes) -> str:
    """Return bytes as text, whatever editor wrote them.

    Raises:
        UnreadableSourceError: They are no text.
    """
    if raw.startswith(_UTF16_MARKS):
        return raw.decode("utf-16", "replace")
    if b"\0" in raw:
        raise UnreadableSourceError(SkipReason.BINARY, "it holds zero bytes")
    try:
        return raw.removeprefix(_UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


@contextmanager
def _opened(path: Path, most_bytes: int) -> Iterator[BinaryIO]:
    try:
        if path.is_symlink():
            raise UnreadableSourceError(SkipReason.SYMLINK, "name the file itself")
        # Non-blocking, or else a pipe would keep us waiting; the flags close the gap to the check above.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnreadableSourceError(SkipReason.UNREADABLE, reason) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size > most_bytes:
        os.close(descriptor)
        if stat.S_ISREG(found.st_mode):
            raise UnreadableSourceError(SkipReason.TOO_LARGE, f"{found.st_size} bytes; at most {most_bytes} are read")
        raise UnreadableSourceError(SkipReason.NOT_A_FILE)
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _link_on_the_way(root: Path, path: Path) -> bool:
    """Tell whether the path, or a folder between it and the root, is a link."""
    steps = [path, *path.parents]
    return any(step.is_symlink() for step in steps[: steps.index(root)])


def _below(folder: Path, suffix: str, source_format: SourceFormat, label: str) -> Iterator[Source | SkippedPart]:
    """Yield the files below a folder that end so, in the order of their names."""
    waiting = [(folder, label, 0)]
    count = 0
    while waiting:
        current, name, depth = waiting.pop()
        folders: list[tuple[Path, str, int]] = []
        for entry in _entries(current):
            entry_label = f"{name}/{entry.name}"
            is_wanted = entry.name.endswith(suffix)
            if entry.is_symlink():
                yield SkippedPart(SourcePlace(entry_label), SkipReason.SYMLINK)
            elif entry.is_dir(follow_symlinks=False):
                folders.append((Path(entry.path), entry_label, depth + 1))
            elif is_wanted and count < MAX_FILES:
                count += 1
                yield Source(Path(entry.path), source_format, entry_label)
            elif is_wanted:
                yield SkippedPart(SourcePlace(entry_label), SkipReason.TOO_MANY, f"one import takes {MAX_FILES} files")
        waiting += reversed([deeper for deeper in folders if deeper[2] <= MAX_DEPTH])


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        # What is not there, or not ours to read, has nothing to import.
        return []
