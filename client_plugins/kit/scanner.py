"""Finds transcripts below a root by looking at names and sizes only. Follows no links and opens nothing."""

import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from client_plugins.kit.plugin import ClientPlugin
from client_plugins.kit.tailer import TranscriptFile
from client_plugins.kit.transcript_file import FileState

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


def find_transcripts(root: WatchedRoot) -> Iterator[FoundFile]:
    """Give every transcript below a root. What vanishes or cannot be read meanwhile is passed over."""
    pending: list[tuple[str, ...]] = [()]
    count = 0
    while pending:
        parts = pending.pop()
        for entry in _entries(root.path.joinpath(*parts)):
            below = (*parts, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if root.plugin.may_hold_transcripts(below):
                    pending.append(below)
            elif (found := _found_file(root, entry, below)) is not None:
                count += 1
                if count > MAX_FILES:
                    log.warning("too many transcripts", extra={"client": root.plugin.name, "limit": MAX_FILES})
                    return
                yield found


def found_at(root: WatchedRoot, path: Path) -> FoundFile | None:
    """Return the transcript at one path as it is now; None if it is none, or gone."""
    file = root.file_at(path)
    if file is None:
        return None
    try:
        return FoundFile(file, FileState.of(path.lstat()))
    except OSError:
        return None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        log.info("folder cannot be listed", extra={"errno": error.errno or 0})
        return []


def _found_file(root: WatchedRoot, entry: os.DirEntry[str], parts: tuple[str, ...]) -> FoundFile | None:
    context = root.plugin.transcript_at(parts)
    if context is None or not entry.is_file(follow_symlinks=False):
        return None
    try:
        state = FileState.of(entry.stat(follow_symlinks=False))
    except OSError:
        return None
    return FoundFile(TranscriptFile(Path(entry.path), root.path, context), state)
