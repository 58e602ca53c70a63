"""The log: JSON lines, nobody else's to read, no text of memories, and no flood."""

import json
import logging
from pathlib import Path

import pytest

from sidecar.errors import StorageFullError, UntrustedPathError
from sidecar.server.logs import RepeatLimit, logging_to

log = logging.getLogger("tests.logs")


def lines(path: Path) -> list[dict[str, object]]:
    """Return the records that were written."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_record_becomes_one_json_line_with_its_fields(tmp_path: Path) -> None:
    """A program can read it, and a person too."""
    with logging_to(tmp_path / "log", level="info"):
        log.info("index rebuilt", extra={"memory_count": 3})
        log.debug("left out")
    [record] = lines(tmp_path / "log")
    assert record["message"] == "index rebuilt"
    assert record["memory_count"] == 3
    assert record["level"] == "info"
    assert str(record["time"]).endswith("+00:00")
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_exception_is_written_without_its_text_unless_that_is_ours(tmp_path: Path) -> None:
    """Other libraries quote what they were given; our own messages and the system's do not."""
    with logging_to(tmp_path / "log", level="info"):
        try:
            try:
                raise ValueError("my secret memory")
            except ValueError as error:
                raise StorageFullError("/data") from error
        except StorageFullError:
            log.exception("failed")
    [record] = lines(tmp_path / "log")
    described = record["error"]
    assert isinstance(described, list)
    assert described[0].startswith("sidecar.errors.storage.StorageFullError: no space left where /data")
    assert "builtins.ValueError" in described
    assert any("test_logs.py" in line for line in described)
    assert "secret" not in json.dumps(record)


def test_repeated_problem_is_written_a_few_times_only() -> None:
    """A stranger's malformed calls must not fill the disk; how many were left out is told later."""
    limit = RepeatLimit(window_s=1000.0, problems=3, others=5)
    warnings = [limit.filter(logging.makeLogRecord({"levelno": logging.WARNING, "msg": "broken"})) for _ in range(10)]
    others = [limit.filter(logging.makeLogRecord({"levelno": logging.INFO, "msg": "call"})) for _ in range(10)]
    assert (sum(warnings), sum(others)) == (3, 5)


def test_number_of_records_left_out_is_told_in_the_next_window() -> None:
    """Silence must not look like peace."""
    limit = RepeatLimit(window_s=0.0, problems=0)
    records = [logging.makeLogRecord({"levelno": logging.WARNING, "msg": "broken"}) for _ in range(2)]
    assert [limit.filter(record) for record in records] == [False, False]
    assert records[1].__dict__["suppressed"] == 1


def test_traceback_of_a_library_for_broken_messages_is_one_line(tmp_path: Path) -> None:
    """GRPC logs one for each message that cannot be parsed."""
    with logging_to(tmp_path / "log", level="info"):
        try:
            raise RuntimeError("bytes")
        except RuntimeError:
            logging.getLogger("grpc._cython.cygrpc").exception("unexpected")
    [record] = lines(tmp_path / "log")
    assert record["error"] == ["builtins.RuntimeError"]


def test_link_in_place_of_the_log_is_refused(tmp_path: Path) -> None:
    """It would write our lines into somebody's file."""
    (tmp_path / "target").touch()
    (tmp_path / "log").symlink_to(tmp_path / "target")
    with pytest.raises(UntrustedPathError), logging_to(tmp_path / "log", level="info"):
        log.info("never written")
    assert (tmp_path / "target").read_text() == ""
