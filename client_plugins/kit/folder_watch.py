"""Tells early that a file below some folders may have changed. Hints only: the scan finds what no event told of.

Events go missing without a word: folders beyond the system's limit of watches, folders on network drives, a folder that
was deleted and made anew. So nobody may rely on them; `Watch` compares them with what its scans find.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

MakeObserver = Callable[[], BaseObserver]
FolderIdentity = tuple[int, int] | None


class Watching(StrEnum):
    """Whether events come: not at all, from now on, or since an earlier call already."""

    OFF = "off"
    BEGUN = "begun"
    STEADY = "steady"


SYSTEM_OBSERVER: Final[MakeObserver] = Observer
"""What the system offers: inotify, FSEvents, ReadDirectoryChangesW."""

# Reading a file makes events too (opened, closed), and would keep us awake for ever.
_EVENTS: Final[list[type[FileSystemEvent]]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
]
_MAX_WAITING_PATHS: Final = 10_000
_JOIN_S: Final = 5.0

log = logging.getLogger(__name__)


class ChangeMailbox:
    """Paths that may have changed, put in by any thread and taken out by the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._paths: set[Path] = set()
        self._wants_scan = False
        self._filled = asyncio.Event()

    def put(self, path: Path | None) -> None:
        """Say that a file may have changed; None that anything may have. Safe from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._put, path)
        except RuntimeError:
            # The loop has ended while the observer's thread was still at it.
            log.debug("event after the end")

    async def wait(self) -> None:
        """Return when something is in it."""
        await self._filled.wait()

    def take(self) -> tuple[set[Path], bool]:
        """Empty it: the paths, and whether a scan is wanted."""
        taken = (self._paths, self._wants_scan)
        self._paths, self._wants_scan = set(), False
        self._filled.clear()
        return taken

    def _put(self, path: Path | None) -> None:
        if path is None or len(self._paths) >= _MAX_WAITING_PATHS:
            self._wants_scan = True
        else:
            self._paths.add(path)
        self._filled.set()


class FolderWatch:
    """Watches folders with the system's means. Blocking; after a failure it is off and says so."""

    def __init__(self, mailbox: ChangeMailbox, make_observer: MakeObserver = SYSTEM_OBSERVER) -> None:
        self._mailbox = mailbox
        self._make_observer = make_observer
        self._observer: BaseObserver | None = None
        self._identities: dict[Path, FolderIdentity] = {}

    @property
    def is_working(self) -> bool:
        """Whether events may still come; not once one of the folders is gone, even if one of its name is back."""
        observer = self._observer
        return observer is not None and observer.is_alive() and all(e.is_alive() for e in observer.emitters)

    def follow(self, folders: Iterable[Path]) -> Watching:
        """Watch these folders; begin anew if they are others than before or were replaced."""
        identities: dict[Path, FolderIdentity] = {
            folder: identity for folder in folders if (identity := folder_identity(folder)) is not None
        }
        if self.is_working and identities == self._identities:
            return Watching.STEADY
        self.stop()
        self._identities = identities
        return Watching.BEGUN if self._start() else Watching.OFF

    def stop(self) -> None:
        """Watch nothing any more."""
        observer, self._observer = self._observer, None
        self._identities = {}
        if observer is not None and observer.is_alive():
            observer.stop()
            observer.join(_JOIN_S)

    def _start(self) -> bool:
        observer = self._make_observer()
        try:
            for folder in self._identities:
                observer.schedule(_Notifier(self._mailbox), str(folder), recursive=True, event_filter=_EVENTS)
            observer.start()
        except OSError as error:
            # Out of watches or handles (ENOSPC, EMFILE), or the folder went away this moment.
            log.warning("folders cannot be watched; polling", extra={"errno": error.errno or 0})
            return False
        self._observer = observer
        return True


class _Notifier(FileSystemEventHandler):
    def __init__(self, mailbox: ChangeMailbox) -> None:
        self._mailbox = mailbox

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.is_directory:
            # A folder that came may hold files already, of which no event tells.
            self._mailbox.put(None)
            return
        for name in (event.src_path, event.dest_path):
            if name:
                self._mailbox.put(Path(os.fsdecode(name)))


def folder_identity(folder: Path) -> FolderIdentity:
    """Return what tells this folder from another of its name: device and inode; None if it is not there."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino)
