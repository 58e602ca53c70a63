"""The sidecar's log: one JSON object per line, rotated, mode 0600, never with text of memories.

An exception is written as its class and where it passed, without its message unless that is one of ours or the
system's: messages of other libraries quote what they were given.
"""

import json
import logging
import logging.handlers
import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from sidecar.client.trusted_files import open_private_log
from sidecar.errors import SidecarError

_MAX_LOG_BYTES: Final = 4 * 1024 * 1024
_KEPT_LOGS: Final = 3
_MAX_MESSAGE_CHARACTERS: Final = 500
_STANDARD_FIELDS: Final = frozenset(
    {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName", "suppressed"}
)
_LOUD_LIBRARIES: Final = ("grpc", "asyncio")
"""They log a traceback for each malformed message or broken connection; a stranger could fill the disk."""


# Made once: `json.dumps` makes an encoder for each call that names a default.
_encode: Final = json.JSONEncoder(default=str).encode


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: time (UTC), level, logger, message, and the record's extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_MAX_MESSAGE_CHARACTERS],
        }
        fields.update((key, value) for key, value in record.__dict__.items() if key not in _STANDARD_FIELDS)
        suppressed = getattr(record, "suppressed", 0)
        if suppressed:
            fields["suppressed"] = suppressed
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = _described(record.exc_info[1], with_frames=not _is_loud(record))
        return _encode(fields)


class RepeatLimit(logging.Filter):
    """Lets through so many records of a kind per window, then says how many were left out."""

    def __init__(self, *, window_s: float = 10.0, problems: int = 10, others: int = 500) -> None:
        super().__init__()
        self._window_s = window_s
        self._problems = problems
        self._others = others
        self._window_end = 0.0
        self._counts: dict[tuple[str, int, str], int] = {}
        self._left_out: dict[tuple[str, int, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter.filter`."""
        now = time.monotonic()
        if now >= self._window_end:
            limits = {key: count - self._limit(key[1]) for key, count in self._counts.items()}
            self._left_out = {key: over for key, over in limits.items() if over > 0}
            self._counts = {}
            self._window_end = now + self._window_s
        kind = (record.name, record.levelno, str(record.msg))
        self._counts[kind] = self._counts.get(kind, 0) + 1
        record.suppressed = self._left_out.pop(kind, 0)
        return self._counts[kind] <= self._limit(record.levelno)

    def _limit(self, level: int) -> int:
        return self._problems if level >= logging.WARNING else self._others


class _PrivateRotatingFile(logging.handlers.RotatingFileHandler):
    """A rotating log that nobody else can read, and that follows no link."""

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: ARG002, N802 - the base class's names
        """Tell whether the file is full. The base class formats each line a second time and asks for the path twice."""
        # Without a stream the file is being opened by this very record.
        return self.stream is not None and os.fstat(self.stream.fileno()).st_size >= self.maxBytes

    def _open(self) -> TextIOWrapper:
        return TextIOWrapper(os.fdopen(open_private_log(Path(self.baseFilename)), "ab"), encoding="utf-8")


@contextmanager
def logging_to(path: Path, *, level: str) -> Iterator[None]:
    """Send all log records of this process to a file for the block.

    Raises:
        UntrustedPathError: Something else than a regular file of ours is there.
        StorageError: The file cannot be made.
    """
    handler = _PrivateRotatingFile(path, maxBytes=_MAX_LOG_BYTES, backupCount=_KEPT_LOGS)
    handler.setFormatter(JsonLines())
    handler.addFilter(RepeatLimit())
    root = logging.getLogger()
    level_before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level_before)
        handler.close()


def _is_loud(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in _LOUD_LIBRARIES


def _described(error: BaseException, *, with_frames: bool) -> list[str]:
    """Return the error and what caused it, outermost first."""
    lines: list[str] = []
    current: BaseException | None = error
    while current is not None:
        # Only these messages are known to quote nothing that was sent.
        text = str(current)[:_MAX_MESSAGE_CHARACTERS] if isinstance(current, SidecarError | OSError) else ""
        lines.append(f"{type(current).__module__}.{type(current).__qualname__}{': ' if text else ''}{text}")
        if with_frames:
            frames = traceback.extract_tb(current.__traceback__)
            lines.extend(f"  {Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return lines
