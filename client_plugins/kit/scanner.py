"""Finds transcripts below a root by looking at names and sizes only. Follows no links and opens nothing."""

import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from client_plugins.kit.plugin import ClientPlugin
from client_plugins.kit.tailer import TranscriptFile
from client_plugins.kit.transcript_file import FileState, is_compressed, plain_sibling

IsSettled = Callable[[str, os.stat_result], bool]

MAX_FILES: Final = 200_000
"""More below one root are left alone, so that something gone wild cannot fill memory."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchedRoot:
    """A folder of one client's transcripts, links in its path resolved."""

    plugin: ClientPlugin
    path: Path

    def file_at(self, path: Path) -> TranscriptFile | None:
        """Return the transcript at a path; None if it is none or not below this root."""
        if not path.is_relative_to(self.path):
            return None
        context = self.plugin.transcript_at(path.relative_to(self.path).parts)
        if is_compressed(path) and plain_sibling(path).exists():
            # Being compressed or taken up again: the plain one is as new or newer.
            return None
        return None if context is None else TranscriptFile(path, self.path, context)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A transcript as the disk shows it now."""

    file: TranscriptFile
    state: FileState


def resolved_roots(plugin: ClientPlugin, environment: Mapping[str, str]) -> list[WatchedRoot]:
    """Return a client's roots that exist, each once however it is reached."""
    paths = dict.fromkeys(Path(os.path.realpath(root)) for root in plugin.roots(environment) if root.is_dir())
    return [WatchedRoot(plugin, path) for path in paths]


def find_transcripts(root: WatchedRoot, is_settled: IsSettled) -> Iterator[FoundFile]:
    """Give the transcripts below a root that are not settled. What vanishes or cannot be read is passed over.

    Args:
        is_settled: Asked for each regular file by path and `stat`, before anything is made of it: there may be many.
    """
    pending: list[tuple[str, ...]] = [()]
    count = 0
    while pending:
        parts = pending.pop()
        for entry in _entries(root.path.joinpath(*parts)):
            below = (*parts, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if root.plugin.may_hold_transcripts(below):
                    pending.append(below)
                continue
            count += 1
            if count > MAX_FILES:
                log.warning("too many files", extra={"client": root.plugin.name, "limit": MAX_FILES})
                return
            found = _found_file(root, entry, below, is_settled)
            if found is not None:
                yield found


def found_at(root: WatchedRoot, path: Path) -> FoundFile | None:
    """Return the transcript at one path as it is now; None if it is none, or gone."""
    file = root.file_at(path)
    if file is None:
        return None
    try:
        status = path.lstat()
    except OSError:
        return None
    return FoundFile(file, FileState.of(status)) if stat.S_ISREG(status.st_mode) else None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        log.info("folder cannot be listed", extra={"errno": error.errno or 0})
        return []


def _found_file(
    root: WatchedRoot, entry: os.DirEntry[str], parts: tuple[str, ...], is_settled: IsSettled
) -> FoundFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or is_settled(entry.path, status):
        return None
    # Asked before the path is looked at, since most files of a folder may be none.
    if root.plugin.transcript_at(parts) is None:
        return None
    file = root.file_at(Path(entry.path))
    return None if file is None else FoundFile(file, FileState.of(status))
