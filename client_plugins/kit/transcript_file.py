"""Opens a transcript that someone else writes, safely and for a moment. Writes nothing, locks nothing.

Only regular files below their root are opened: no links out of it, pipes or devices. The file is closed after each
batch, so that on Windows its owner can delete it.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from client_plugins.kit.compression import open_decompressed
from sidecar.errors import UntrustedPathError

COMPRESSED_SUFFIX: Final = ".zst"
"""Of transcripts that their client has compressed; they are read as if they were not."""

MAX_HASHED_BYTES: Final = 1 << 20
"""Of a longer line only this much of its end is hashed, so that checking where reading stands stays cheap."""

_FIRST_LOOK_BYTES: Final = 1 << 16
_SCAN_BYTES: Final = 1 << 20
# Without these a link is followed, and opening a pipe waits for its writer. Windows has neither.
_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class FileState:
    """What the disk says of a file. `file_id` is `device:inode`, or `unknown` where there are no such numbers."""

    file_id: str
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileState":
        """Return the state from what `stat` returned."""
        file_id = f"{status.st_dev}:{status.st_ino}" if status.st_ino else "unknown"
        return cls(file_id, status.st_size, status.st_mtime_ns, status.st_ino)

    def is_still(self, status: os.stat_result) -> bool:
        """Tell whether the file looks the same by what `stat` returned."""
        look = (status.st_size, status.st_mtime_ns, status.st_ino)
        return look == (self.size, self.mtime_ns, self.inode)


def is_compressed(path: Path) -> bool:
    """Tell by its name whether a transcript is compressed."""
    return path.suffix == COMPRESSED_SUFFIX


def plain_sibling(path: Path) -> Path:
    """Return where a compressed transcript lay before, and lies again when its session is taken up anew."""
    return path.with_suffix("")


def is_same_file(one: str, other: str) -> bool:
    """Tell whether two identities may be of one file; a device number may change when the system starts anew."""
    return one.rpartition(":")[2] == other.rpartition(":")[2]


@contextmanager
def open_transcript(path: Path, root: Path) -> Iterator[tuple[BinaryIO, FileState]]:
    """Open a regular file below `root`; a compressed one as if it were not, its size being unknown and so without end.

    Args:
        root: With all links resolved.

    Raises:
        UntrustedPathError: If it is not below the root, a link, or no regular file.
        OSError: If it cannot be opened, such as when it is gone.
    """
    if not Path(os.path.realpath(path)).is_relative_to(root):
        raise UntrustedPathError(path.name, "leads out of its folder")
    with os.fdopen(os.open(path, _OPEN_FLAGS), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedPathError(path.name, "is no regular file")
        state = FileState.of(status)
        if not is_compressed(path):
            yield file, state
            return
        with open_decompressed(file) as content:
            yield content, replace(state, size=sys.maxsize)


def hash_line(line: bytes) -> str:
    """Return BLAKE2b-128 in hexadecimal of a line with its newline; of a long line only of its last MiB."""
    return hashlib.blake2b(line[-MAX_HASHED_BYTES:], digest_size=16).hexdigest()


def hash_line_before(file: BinaryIO, offset: int) -> str:
    """Return the `hash_line` of the line that ends at `offset`; empty if none ends there."""
    block = _read_before(file, offset, _FIRST_LOOK_BYTES)
    if b"\n" not in block[:-1]:
        block = _read_before(file, offset, MAX_HASHED_BYTES)
    return hash_line(block[block.rfind(b"\n", 0, -1) + 1 :]) if block.endswith(b"\n") else ""


def _read_before(file: BinaryIO, offset: int, length: int) -> bytes:
    """Return up to `length` bytes that end at `offset`; nothing if the file is shorter."""
    start = max(0, offset - length)
    file.seek(start)
    block = file.read(max(0, offset - start))
    return block if len(block) == offset - start else b""


def has_newline_from(file: BinaryIO, offset: int) -> bool:
    """Tell whether a line ends at or behind `offset`, in bounded memory."""
    file.seek(offset)
    while block := file.read(_SCAN_BYTES):
        if b"\n" in block:
            return True
    return False


def skip_line(file: BinaryIO, tail: bytes) -> tuple[int, str] | None:
    """Read to the end of a line that is too long to hold.

    Args:
        tail: What was read of it already; the file stands just behind.

    Returns:
        How many more bytes it had, and its `hash_line`; None if it has no end yet.
    """
    more = 0
    while block := file.readline(_SCAN_BYTES):
        more += len(block)
        tail = (tail + block)[-MAX_HASHED_BYTES:]
        if block.endswith(b"\n"):
            return more, hash_line(tail)
    return None
