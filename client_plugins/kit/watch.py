"""The watch itself: finds out what changed, reads it, sends it. Ends when told, or when the sidecar is lost.

Events say early that a file changed, a scan says it for sure. Nothing here is kept: the sidecar has the cursors.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from client_plugins.kit.blindness import Blindness
from client_plugins.kit.catalog import Catalog, Look
from client_plugins.kit.folder_watch import (
    SYSTEM_OBSERVER,
    ChangeMailbox,
    FolderIdentity,
    FolderWatch,
    MakeObserver,
    Watching,
    folder_identity,
)
from client_plugins.kit.own_sessions import marking_own
from client_plugins.kit.plugin import ClientPlugin
from client_plugins.kit.project import CachedProjects, ProjectFinder
from client_plugins.kit.read_queue import ReadQueue
from client_plugins.kit.readings import Readings
from client_plugins.kit.scanner import FoundFile, WatchedRoot, find_transcripts, found_at, resolved_roots
from client_plugins.kit.sink import EvidenceSink
from client_plugins.kit.tailer import TailLimits, TranscriptFile
from sidecar.domain.evidence import EvidenceBatch
from sidecar.errors import (
    DeadlineError,
    ProtocolMismatchError,
    SidecarError,
    StorageError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)

# These are about the sidecar, not about the file whose batch met them.
LOST: Final = (
    UnavailableError,
    DeadlineError,
    StorageError,
    TooManyRequestsError,
    UnauthenticatedError,
    ProtocolMismatchError,
)
_ROOT_CHECK_S: Final = 2.0
# Where only scans tell of changes, they may take this part of one core.
_POLLING_SHARE: Final = 0.02
_MIN_POLL_S: Final = 2.0
# Where events tell of them, scans only make sure, and thousands of folders must not keep a laptop awake.
_SCANNING_SHARE: Final = 0.005
_MAX_SCAN_INTERVAL_S: Final = 300.0
_DAY_NS: Final = 86_400 * 10**9

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How the watch goes about it.

    Attributes:
        scan_interval_s: Between scans that find what no event told of; longer where there are very many files.
        debounce_s: After an event; clients write a turn in several appends, and waiting merges them into one read.
        max_age_days: Transcripts that were last written before are not read when first met.
        make_observer: Makes what watches folders.
        data_folder: The sidecar's; sessions of agents that work in it are its own, and no evidence.
    """

    scan_interval_s: float = 30.0
    debounce_s: float = 0.2
    max_age_days: int = 30
    limits: TailLimits = field(default_factory=TailLimits)
    make_observer: MakeObserver = SYSTEM_OBSERVER
    data_folder: Path | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """A file in the queue."""

    client: str
    file: TranscriptFile


@dataclass(frozen=True, slots=True)
class _Due:
    """A file that a scan found to be read."""

    client: str
    found: FoundFile
    look: Look


class Watch:
    """One connection's worth of watching. Belongs to the event loop that it was made in."""

    def __init__(
        self,
        plugins: Sequence[ClientPlugin],
        sink: EvidenceSink,
        *,
        environment: Mapping[str, str],
        settings: WatchSettings,
    ) -> None:
        self._plugins = plugins
        self._sink = sink
        self._environment = environment
        self._settings = settings
        self._mailbox = ChangeMailbox()
        self._folders = FolderWatch(self._mailbox, settings.make_observer)
        self._queue: ReadQueue[_Reading] = ReadQueue()
        self._catalogs: dict[str, Catalog] = {}
        self._roots: list[WatchedRoot] = []
        self._roots_seen: list[FolderIdentity] = []
        self._blindness = Blindness()
        self._scan_cost_s = 0.0

    async def run_once(self) -> None:
        """Read everything there is, then return."""
        await self._load_cursors()
        self._find_roots()
        await self._scan()
        while self._queue:
            await self._read_next()

    async def run(self) -> None:
        """Watch until cancelled.

        Raises:
            SidecarError: The sidecar is lost; connect again.
        """
        await self._load_cursors()
        names = [plugin.name for plugin in self._plugins]
        readings = Readings(self._sink, names, roots=self._roots_now)
        following = asyncio.create_task(readings.follow(self._mailbox.put), name="reading-requests")
        try:
            while True:
                next_scan = await self._follow_and_scan()
                await self._serve_until(next_scan, is_watching=self._folders.is_working)
        finally:
            following.cancel()
            await asyncio.to_thread(self._folders.stop)
            with contextlib.suppress(asyncio.CancelledError):
                await following

    async def _serve_until(self, next_scan: float, *, is_watching: bool) -> None:
        """Read what is queued and what events tell of; return early when a root comes, goes or is replaced."""
        while (
            time.monotonic() < next_scan
            and self._look_of_roots() == self._roots_seen
            and self._folders.is_working == is_watching
        ):
            if self._queue:
                await self._read_next()
                await self._take_events()
            elif await self._wait_for_event(min(next_scan, time.monotonic() + _ROOT_CHECK_S)):
                await self._take_events()

    async def _load_cursors(self) -> None:
        own_folder = self._settings.data_folder
        projects: ProjectFinder = CachedProjects()
        if own_folder is not None:
            projects = marking_own(projects, own_folder)
        oldest = time.time_ns() - self._settings.max_age_days * _DAY_NS
        for plugin in self._plugins:
            self._catalogs[plugin.name] = Catalog(
                plugin,
                await self._sink.cursors(plugin.name),
                project_of=projects,
                oldest_mtime_ns=oldest,
                now=time.monotonic,
                limits=self._settings.limits,
            )

    async def _follow_and_scan(self) -> float:
        """Watch the folders, then scan them, in this order so that no change falls between. Return the next time."""
        self._find_roots()
        watching = Watching.OFF
        if not self._blindness.is_proven:
            watching = await asyncio.to_thread(self._folders.follow, [root.path for root in self._roots])
        changed = await self._scan()
        # Before and while it was being set up, changes made no events.
        if self._blindness.grows(changed if watching is Watching.STEADY else set()):
            log.warning("changes came without events", extra={"is_polling": self._blindness.is_proven})
            await asyncio.to_thread(self._folders.stop)
        interval_s = self._settings.scan_interval_s
        if watching is Watching.OFF:
            interval_s = min(interval_s, max(_MIN_POLL_S, self._scan_cost_s / _POLLING_SHARE))
        else:
            interval_s = max(interval_s, min(_MAX_SCAN_INTERVAL_S, self._scan_cost_s / _SCANNING_SHARE))
        return time.monotonic() + interval_s

    def _find_roots(self) -> None:
        self._roots_seen = self._look_of_roots()
        self._roots = self._roots_now()

    def _roots_now(self) -> list[WatchedRoot]:
        return [root for plugin in self._plugins for root in resolved_roots(plugin, self._environment)]

    def _look_of_roots(self) -> list[FolderIdentity]:
        return [folder_identity(root) for plugin in self._plugins for root in plugin.roots(self._environment)]

    async def _scan(self) -> set[Path]:
        """Queue what is to be read, the newest first; return the paths of what has changed."""
        begun = time.monotonic()
        due = await asyncio.to_thread(self._find_due)
        self._scan_cost_s = time.monotonic() - begun
        due.sort(key=lambda one: one.found.state.mtime_ns, reverse=True)
        self._queue.add_old(_Reading(one.client, one.found.file) for one in due)
        return {one.found.file.path for one in due if one.look is Look.CHANGED}

    def _find_due(self) -> list[_Due]:
        due: list[_Due] = []
        for name, catalog in self._catalogs.items():
            catalog.begin_scan()
            roots = self._roots_of(name)
            for found in chain.from_iterable(find_transcripts(root, catalog.is_settled) for root in roots):
                look = catalog.look_at(found)
                if look is not Look.SETTLED:
                    due.append(_Due(name, found, look))
            catalog.end_scan()
        return due

    def _roots_of(self, client: str) -> list[WatchedRoot]:
        return [root for root in self._roots if root.plugin.name == client]

    async def _wait_for_event(self, until: float) -> bool:
        """Return whether something was told of before the time of the next scan."""
        try:
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await self._mailbox.wait()
        except TimeoutError:
            return False
        await asyncio.sleep(self._settings.debounce_s)
        return True

    async def _take_events(self) -> None:
        paths, wants_scan = self._mailbox.take()
        self._blindness.noticed(paths)
        if wants_scan:
            await self._scan()
        for path in paths:
            for root in self._roots:
                found = found_at(root, path)
                if found is not None and self._catalogs[root.plugin.name].look_at(found) is not Look.SETTLED:
                    self._queue.add_live(_Reading(root.plugin.name, found.file))

    async def _read_next(self) -> None:
        """Read and send one batch of the next file."""
        reading, is_live = self._queue.take()
        catalog = self._catalogs[reading.client]
        try:
            tail = catalog.tail_of(reading.file)
            batch = await asyncio.to_thread(tail.next_batch)
            if batch is None:
                return
            await self._send(batch)
        except LOST:
            raise
        except (SidecarError, OSError) as error:
            reason = error.reason if isinstance(error, SidecarError) else f"errno {error.errno}"
            log.warning("transcript left alone for a while", extra={"file": reading.file.path.name, "reason": reason})
            catalog.note_failure(reading.file)
            return
        tail.acknowledge()
        catalog.note_cursor(reading.file, batch.cursor)
        self._queue.put_back(reading, is_live=is_live)

    async def _send(self, batch: EvidenceBatch) -> None:
        outcome = await self._sink.send(batch)
        log.debug(
            "batch acknowledged",
            extra={"event_count": len(batch.events), "new_count": outcome.new_events, "shown_count": outcome.shown},
        )
