"""Records what the database engine does to its files, and works out what a power failure may leave of it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw


@dataclass(frozen=True)
class Step:
    """Something done to a file: `write`, `truncate`, `sync`, `delete`, or any other word for a note in between.

    Attributes:
        name: The file, without its folder.
        place: Where a write begins, or the size a file is cut to.
    """

    what: str
    name: str
    place: int = 0
    data: bytes = b""


class RecordingFile(apsw.VFSFile):
    """A file whose writes and syncs are noted in order."""

    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], trace: list[Step]) -> None:
        super().__init__("unix", name, flags)
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name)).name
        self._trace = trace

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the engine's name
        super().xWrite(data, offset)
        self._trace.append(Step("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._trace.append(Step("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._trace.append(Step("sync", self._name))


class RecordingVfs(apsw.VFS):
    """The file system of every connection opened while it exists."""

    def __init__(self, trace: list[Step]) -> None:
        super().__init__("recording", "unix", makedefault=True)
        self._trace = trace

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> RecordingFile:  # noqa: N802
        return RecordingFile(name, flags, self._trace)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self._trace.append(Step("delete", Path(filename).name))


def disk_after(steps: Sequence[Step], chance: random.Random) -> dict[str, bytearray]:
    """Return what the disk may hold if power fails after these steps: what was not synced is kept at random."""
    disk = _Disk()
    for step in steps:
        disk.take(step)
    return disk.left_by_power_failure(chance)


class _Disk:
    def __init__(self) -> None:
        self._files: dict[str, bytearray] = {}
        self._pending: dict[str, list[Step]] = {}
        self._deleted: set[str] = set()

    def take(self, step: Step) -> None:
        if step.what in ("write", "truncate"):
            self._pending.setdefault(step.name, []).append(step)
        elif step.what == "delete":
            self._pending.pop(step.name, None)
            self._deleted.add(step.name)
        elif step.what == "sync":
            # At a new journal's first sync the engine syncs the folder, too; until then a deleted file may come back.
            if step.name not in self._files:
                self._forget(self._deleted)
            for waiting in self._pending.pop(step.name, []):
                self._apply(waiting)

    def left_by_power_failure(self, chance: random.Random) -> dict[str, bytearray]:
        self._forget({name for name in sorted(self._deleted) if chance.random() < 0.5})
        for steps in self._pending.values():
            for step in steps:
                if chance.random() < 0.5:
                    self._apply(step)
        return self._files

    def _forget(self, names: set[str]) -> None:
        for name in tuple(names):
            self._files.pop(name, None)
            self._deleted.discard(name)

    def _apply(self, step: Step) -> None:
        content = self._files.setdefault(step.name, bytearray())
        if step.what == "truncate":
            del content[step.place :]
            return
        content.extend(bytes(max(step.place + len(step.data) - len(content), 0)))
        content[step.place : step.place + len(step.data)] = step.data
