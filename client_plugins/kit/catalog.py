"""Knows every transcript of one run of the watcher: how it looked last, its tail, and when to try it again."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from client_plugins.kit.plugin import ClientPlugin
from client_plugins.kit.project import ProjectFinder
from client_plugins.kit.scanner import FoundFile
from client_plugins.kit.tailer import TailLimits, TranscriptFile, TranscriptTail, path_key
from client_plugins.kit.transcript_file import FileState, is_compressed, plain_sibling
from sidecar.domain.evidence import TranscriptCursor

_FIRST_RETRY_S: Final = 30.0
_LAST_RETRY_S: Final = 3_600.0
_MAX_TAILS: Final = 256


class Look(StrEnum):
    """What a look at a file says: nothing to do, read it, or try again what failed before."""

    SETTLED = "settled"
    CHANGED = "changed"
    RETRY = "retry"


@dataclass(slots=True)
class _Entry:
    """What is known of one file. `seen` is how it looked when it was last put up for reading."""

    seen: FileState
    scan_number: int
    failures: int = 0
    retry_at: float = 0.0


class Catalog:
    """The transcripts of one client.

    Args:
        cursors: Where the sidecar says that reading stands.
        oldest_mtime_ns: Files without a cursor that were last written before are not read.
        now: Seconds that only go forward.
    """

    def __init__(
        self,
        plugin: ClientPlugin,
        cursors: Iterable[TranscriptCursor],
        *,
        project_of: ProjectFinder,
        oldest_mtime_ns: int,
        now: Callable[[], float],
        limits: TailLimits | None = None,
    ) -> None:
        self._plugin = plugin
        self._project_of = project_of
        self._limits = limits
        self._oldest_mtime_ns = oldest_mtime_ns
        self._now = now
        self._cursors = {cursor.path: cursor for cursor in cursors}
        self._paths_by_identity = {cursor.file_id: cursor.path for cursor in self._cursors.values()}
        self._entries: dict[str, _Entry] = {}
        self._scan_number = 0
        # Of the files that were read last; others are made again from their cursor when they change.
        self._tails: dict[str, TranscriptTail] = {}

    def begin_scan(self) -> None:
        """Say that from now on every file will be seen, until `end_scan`."""
        self._scan_number += 1

    def is_settled(self, path: str, status: os.stat_result) -> bool:
        """Tell quickly that a file is known, looks as before and has nothing to try again."""
        entry = self._entries.get(path)
        if entry is None or entry.failures or not entry.seen.is_still(status):
            return False
        entry.scan_number = self._scan_number
        return True

    def end_scan(self) -> None:
        """Forget files that were not seen; their cursors stay, in case a file has only moved."""
        for path in [path for path, entry in self._entries.items() if entry.scan_number != self._scan_number]:
            del self._entries[path]
            self._tails.pop(path, None)

    def look_at(self, found: FoundFile) -> Look:
        """Tell whether a file is to be read, and remember how it looks now."""
        path = str(found.file.path)
        entry = self._entries.get(path)
        if entry is None:
            self._entries[path] = _Entry(found.state, self._scan_number)
            return Look.SETTLED if self._is_too_old(found) else Look.CHANGED
        is_changed = entry.seen != found.state
        entry.seen, entry.scan_number = found.state, self._scan_number
        if entry.failures:
            return Look.RETRY if self._now() >= entry.retry_at else Look.SETTLED
        return Look.CHANGED if is_changed else Look.SETTLED

    def tail_of(self, file: TranscriptFile) -> TranscriptTail:
        """Return what reads this file, from where its cursor stands."""
        tail = self._tails.pop(str(file.path), None)
        if tail is None:
            tail = TranscriptTail(
                file,
                self._plugin,
                project_of=self._project_of,
                cursor=self._cursor_of(file),
                limits=self._limits,
            )
        self._tails[str(file.path)] = tail
        if len(self._tails) > _MAX_TAILS:
            del self._tails[next(iter(self._tails))]
        return tail

    def note_cursor(self, file: TranscriptFile, cursor: TranscriptCursor) -> None:
        """Remember where reading stands after an acknowledgement."""
        entry = self._entries.get(str(file.path))
        if entry is not None:
            entry.failures = 0
        self._cursors[cursor.path] = cursor
        self._paths_by_identity[cursor.file_id] = cursor.path

    def note_failure(self, file: TranscriptFile) -> None:
        """Leave a file alone for a while, longer each time."""
        entry = self._entries.get(str(file.path))
        if entry is None:
            return
        wait_s = min(_FIRST_RETRY_S * 2**entry.failures, _LAST_RETRY_S)
        entry.failures = min(entry.failures + 1, 16)
        entry.retry_at = self._now() + wait_s
        self._tails.pop(str(file.path), None)

    def _is_too_old(self, found: FoundFile) -> bool:
        if found.state.mtime_ns >= self._oldest_mtime_ns:
            return False
        # Finding the place in a compressed file takes reading all before it, and nothing is added to an old one.
        return is_compressed(found.file.path) or self._cursor_of(found.file, found.state) is None

    def _cursor_of(self, file: TranscriptFile, state: FileState | None = None) -> TranscriptCursor | None:
        """Return the file's cursor; that of its former path if it was moved or compressed."""
        own = self._cursors.get(path_key(file.path))
        if own is not None:
            return own
        state = state or self._entries[str(file.path)].seen
        if is_compressed(file.path):
            # The same lines, so reading goes on where it stood; the last line's hash tells if they are not.
            plain = self._cursors.get(path_key(plain_sibling(file.path)))
            return None if plain is None else replace(plain, file_id=state.file_id)
        former = self._paths_by_identity.get(state.file_id) if state.file_id != "unknown" else None
        # Where the former path still leads somewhere, this is a second link to the file or a reused number.
        if former is None or Path(former).exists():
            return None
        return self._cursors[former]
