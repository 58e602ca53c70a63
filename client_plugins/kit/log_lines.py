"""Log lines of the watcher: one JSON object a line on stderr, for the sidecar to keep. Names and numbers only."""

import json
import logging
import sys
from typing import Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLineFormatter(logging.Formatter):
    """Writes time, level, logger, message and what was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        line: dict[str, object] = {
            "at": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info and record.exc_info[0] is not None:
            # Only what kind of error: its words may quote a transcript.
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, default=str)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send the logs of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLineFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # watchdog warns when folders are made and removed quickly.
    logging.captureWarnings(capture=True)
