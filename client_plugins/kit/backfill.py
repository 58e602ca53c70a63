"""Reads transcripts that are there already, once, oldest first. Goes on where it or the watcher left off.

It may run beside the watcher: both send the same events under the same ids, and the sidecar takes each once. Cursors
are kept by the sidecar, so whoever stops it loses nothing.
"""

import asyncio
import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from client_plugins.kit.catalog import Catalog
from client_plugins.kit.plugin import ClientPlugin
from client_plugins.kit.project import CachedProjects
from client_plugins.kit.scanner import FoundFile, WatchedRoot, find_transcripts, found_at, resolved_roots
from client_plugins.kit.sink import EvidenceSink
from client_plugins.kit.tailer import TailLimits
from client_plugins.kit.watch import LOST
from sidecar.domain.coverage import SKIPPED, UNRECOGNISED
from sidecar.domain.evidence import BatchOutcome, TranscriptCursor
from sidecar.errors import InvalidInputError, SidecarError

TOO_OLD: Final = "too_old"
NOT_READABLE: Final = "not_readable"

# <root>/<project>/<session>/subagents/workflows/<workflow>/<file> is the deepest there is.
_MAX_DEPTH: Final = 8

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Is told how many bytes have been read, and how many there are."""


@dataclass(slots=True)
class BackfillReport:
    """What was read, and what was not and why.

    Attributes:
        files: Transcripts found; `unchanged` of them had nothing new.
        left_out: Files that were not read, or not to their end, by reason.
        bytes_read: Of finished lines.
        new_events: Events that the sidecar did not know; `repeated_events` it did.
        skipped: Lines from which nothing, or not everything, was taken, by reason.
        unrecognised: Records of kinds that a reader does not know, by kind.
    """

    files: int = 0
    unchanged: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    lines: int = 0
    new_events: int = 0
    repeated_events: int = 0
    recalls: int = 0
    shown: int = 0
    unknown: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unrecognised: Counter[str] = field(default_factory=Counter)

    def add(self, before: TranscriptCursor | None, after: TranscriptCursor, outcome: BatchOutcome) -> None:
        """Count one batch, from the cursor before it to the one behind it."""
        goes_on = before is not None and before.generation == after.generation
        earlier = dict(before.skipped) if before is not None and goes_on else {}
        self.bytes_read += after.offset - (before.offset if before is not None and goes_on else 0)
        self.lines += after.lines_read - (before.lines_read if before is not None and goes_on else 0)
        for name, count in after.skipped:
            for prefix, counts in ((SKIPPED, self.skipped), (UNRECOGNISED, self.unrecognised)):
                if name.startswith(prefix) and count > earlier.get(name, 0):
                    counts[name.removeprefix(prefix)] += count - earlier.get(name, 0)
        self.new_events += outcome.new_events
        self.repeated_events += outcome.repeated_events
        self.recalls += outcome.recalls
        self.shown += outcome.shown
        self.unknown += outcome.unknown


class Backfill:
    """One run over what is there. Belongs to the event loop."""

    def __init__(
        self,
        plugins: Sequence[ClientPlugin],
        sink: EvidenceSink,
        *,
        environment: Mapping[str, str],
        oldest_mtime_ns: int = 0,
        limits: TailLimits | None = None,
    ) -> None:
        """Take what is needed.

        Args:
            environment: In which the clients' folders are looked up.
            oldest_mtime_ns: Files last written before are left out and counted.
        """
        self._plugins = plugins
        self._sink = sink
        self._environment = environment
        self._oldest_mtime_ns = oldest_mtime_ns
        self._limits = limits
        self.report = BackfillReport()

    async def run(self, paths: Sequence[Path] = (), *, progress: Progress = lambda _done, _total: None) -> None:
        """Read all transcripts below the clients' folders, or below these paths only; `report` grows meanwhile.

        Raises:
            InvalidInputError: If a path leads to no transcript of these clients.
            SidecarError: If the sidecar is lost; another run goes on from there.
        """
        found = await asyncio.to_thread(self._find, paths)
        found.sort(key=lambda one: one[1].state.mtime_ns)
        total = sum(one.state.size for _, one in found)
        projects = CachedProjects()
        catalogs = {
            plugin.name: Catalog(
                plugin,
                await self._sink.cursors(plugin.name),
                project_of=projects,
                oldest_mtime_ns=0,
                now=lambda: 0.0,
                limits=self._limits,
            )
            for plugin in self._plugins
        }
        done = 0
        for client, one in found:
            self.report.files += 1
            await self._read(catalogs[client], one, partial(_advance, progress, done, total))
            done += one.state.size
            progress(done, total)

    async def _read(self, catalog: Catalog, found: FoundFile, progress: Callable[[int], None]) -> None:
        """Read one file to its end; what is wrong with it is counted and costs no other file."""
        catalog.look_at(found)
        tail = catalog.tail_of(found.file)
        before = catalog.cursor_of(found.file)
        has_read = False
        try:
            while (batch := await asyncio.to_thread(tail.next_batch)) is not None:
                outcome = await self._sink.send(batch)
                tail.acknowledge()
                self.report.add(before, batch.cursor, outcome)
                catalog.note_cursor(found.file, batch.cursor)
                before, has_read = batch.cursor, True
                progress(min(batch.cursor.offset, found.state.size))
        except LOST:
            raise
        except (SidecarError, OSError) as error:
            reason = error.reason.lower() if isinstance(error, SidecarError) else NOT_READABLE
            self.report.left_out[reason] += 1
            log.warning("transcript left out", extra={"file": found.file.path.name, "reason": reason})
            return
        self.report.unchanged += not has_read

    def _find(self, paths: Sequence[Path]) -> list[tuple[str, FoundFile]]:
        roots = [root for plugin in self._plugins for root in resolved_roots(plugin, self._environment)]
        places = (
            chain.from_iterable(self._below(path, roots) for path in paths) if paths else ((r, r.path) for r in roots)
        )
        found: dict[Path, tuple[str, FoundFile]] = {}
        for root, folder in places:
            for one in _transcripts(root, folder):
                if one.state.mtime_ns < self._oldest_mtime_ns:
                    self.report.left_out[TOO_OLD] += one.file.path not in found
                else:
                    found[one.file.path] = (root.plugin.name, one)
        return list(found.values())

    def _below(self, path: Path, roots: Sequence[WatchedRoot]) -> Iterator[tuple[WatchedRoot, Path]]:
        """Give the roots that a path lies in, or that lie in it; else those that it would have as a copy."""
        try:
            resolved = Path(os.path.realpath(path, strict=True))
        except (OSError, ValueError) as error:
            raise InvalidInputError("PATH", str(path), "a file or folder that is there") from error
        known = [(root, resolved) for root in roots if resolved.is_relative_to(root.path)]
        known += [(root, root.path) for root in roots if root.path != resolved and root.path.is_relative_to(resolved)]
        places = known or [(root, resolved) for plugin in self._plugins for root in _roots_of_copy(plugin, resolved)]
        if not places:
            named = ", ".join(plugin.name for plugin in self._plugins)
            raise InvalidInputError(
                "PATH", str(path), f"a transcript of {named}, or a folder with some as they write it"
            )
        yield from places


def _transcripts(root: WatchedRoot, place: Path) -> Iterable[FoundFile]:
    """Give the transcripts of a root at or below a place."""
    if place.is_file():
        one = found_at(root, place)
        return [one] if one is not None else []
    return find_transcripts(root, _never_settled, begin=place.relative_to(root.path).parts)


def _advance(progress: Progress, done: int, total: int, read: int) -> None:
    progress(done + read, total)


def _never_settled(path: str, status: os.stat_result) -> bool:
    del path
    return not stat.S_ISREG(status.st_mode)


def _roots_of_copy(plugin: ClientPlugin, place: Path) -> Iterator[WatchedRoot]:
    """Give the folder that would be the client's root if a place elsewhere is a copy of it or of what is in it."""
    if place.is_dir():
        root = WatchedRoot(plugin, place)
        if next(iter(find_transcripts(root, _never_settled)), None) is not None:
            yield root
        return
    # The farthest first: a nearer one may take a sub-agent's file for a session's.
    for parent in list(place.parents)[_MAX_DEPTH::-1]:
        root = WatchedRoot(plugin, parent)
        if root.file_at(place) is not None:
            yield root
            return
