"""What is told of a data folder whose sidecar does not run or cannot be started."""

import json
import shutil
import sys
from pathlib import Path

import apsw
import pytest

from sidecar.cli.entry import run
from sidecar.cli.exit_codes import exit_code_of
from sidecar.client import DataFolder, Launch, find_or_start
from sidecar.errors import SidecarStartError, StorageFullError

_EXIT = "import sys; print('sidecar: it is so'); sys.exit(int(sys.argv[1]))"


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Give a data folder with a sound database of many pages."""
    found = DataFolder(tmp_path / "home")
    found.prepare()
    connection = apsw.Connection(str(found.database_path))
    connection.execute("CREATE TABLE t (x)")
    connection.execute(
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 4000) INSERT INTO t SELECT i FROM n"
    )
    connection.close()
    found.database_path.chmod(0o600)
    return found


def findings(folder: DataFolder, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    """Return what doctor finds, by check."""
    assert run(["--home", str(folder.home), "doctor", "--json"], serve=lambda arguments: 0) == 1
    return {finding["check"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}


def test_sound_database_is_told(folder: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Then starting is all there is to do."""
    found = findings(folder, capsys)
    assert found["database"]["verdict"] == "good"
    assert "run `sidecar start`" in found["sidecar"]["remedy"]
    assert "last start" not in found


@pytest.mark.parametrize("kind", ["header", "page"])
def test_damaged_database_is_told_with_the_way_out(
    folder: DataFolder, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """The steps name the files to keep and the newest backup; the file stays as it is."""
    content = bytearray(folder.database_path.read_bytes())
    at = 0 if kind == "header" else 4096
    content[at : at + 2000] = b"\xff" * 2000
    folder.database_path.write_bytes(content)
    folder.start_log_path.write_text("noise\nsidecar: the database is damaged\n")
    backup = folder.home / "memories.db.before-2"
    backup.write_bytes(b"")
    found = findings(folder, capsys)
    assert found["database"]["verdict"] == "bad"
    for told in ("memories.db-wal", "sidecar stop", str(backup), "sidecar start"):
        assert told in found["database"]["remedy"]
    assert "sidecar start" not in found["sidecar"]["remedy"]
    assert found["last start"]["told"] == "it said: sidecar: the database is damaged"
    assert folder.database_path.read_bytes() == bytes(content)


@pytest.mark.parametrize(("ended", "code"), [(1, 6), (2, 2), (4, 4), (5, 5), (7, 6)])
def test_reason_of_a_failed_start_is_passed_on(folder: DataFolder, ended: int, code: int) -> None:
    """A script learns whether a setting, a folder or the disk keeps the sidecar from starting."""
    launch = Launch(command=(sys.executable, "-c", _EXIT, str(ended)))
    with pytest.raises(SidecarStartError, match="saying: sidecar: it is so") as failed:
        find_or_start(folder, launch=launch)
    assert exit_code_of(failed.value) == code


def test_full_disk_is_named(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sidecar that ends on a full disk cannot write why."""
    usage = shutil.disk_usage(folder.home)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type(usage)(usage.total, usage.total, 0))
    with pytest.raises(StorageFullError) as failed:
        find_or_start(folder, launch=Launch(command=(sys.executable, "-c", _EXIT, "120")))
    assert exit_code_of(failed.value) == 5
