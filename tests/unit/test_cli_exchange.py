"""Export, import, backup and restore-backup: files are private and whole, and a slip of the finger costs nothing."""

import io
import json
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from sidecar.adapters.sqlite.backup import back_up
from sidecar.adapters.sqlite.connection import open_writer
from sidecar.adapters.sqlite.migration import migrate, shipped_migrations
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import maintenance_service_pb2 as service
from sidecar.api.v1 import memory_service_pb2 as memory_service
from sidecar.cli.doctor import check_integrity
from sidecar.cli.findings import Verdict
from sidecar.client import DataFolder
from sidecar.client.folder_lock import try_lock
from sidecar.errors import InvalidInputError
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to
from tests.unit.test_cli_commands import A, command

LINES = b'{"record":"export","format":1}\n{"record":"memory","id":"x"}\n{"record":"edge"}\n'


def exporting(*pieces: bytes, total: int | None = None) -> ScriptedSidecar:
    """Return a sidecar that exports these pieces, and says how many lines there are in all."""
    lines = b"".join(pieces).count(b"\n")

    def answer(request: object) -> Iterator[service.ExportMemoriesResponse]:
        done = 0
        for piece in pieces:
            done += piece.count(b"\n")
            yield service.ExportMemoriesResponse(lines=piece, done=done, total=lines if total is None else total)

    return ScriptedSidecar(export_memories=answer)  # type: ignore[arg-type]


def importing(received: list[bytes], *, refused: int = 0) -> ScriptedSidecar:
    """Return a sidecar that takes an import in, and refuses so many of its lines."""

    def answer(pieces: Iterable[service.ImportMemoriesRequest]) -> service.ImportMemoriesResponse:
        received.append(b"".join(piece.lines for piece in pieces))
        why = [f"line {number}: odd" for number in range(refused)]
        return service.ImportMemoriesResponse(imported=3, unchanged=1, refused=why, refused_count=refused)

    return ScriptedSidecar(import_memories=answer)


def test_export_is_private_and_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Pieces are put together as they come; the file is for its owner only and nothing else is left beside it."""
    connect_to(monkeypatch, exporting(LINES[:10], LINES[10:50], LINES[50:]))
    target = tmp_path / "all.jsonl"
    assert command("export", str(target), "--include-forgotten") == 0
    assert target.read_bytes() == LINES
    assert list(tmp_path.iterdir()) == [target]
    if sys.platform != "win32":
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert f"sidecar import {target}" in " ".join(capsys.readouterr().out.split())


def test_export_never_replaces_a_file_unasked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An older export may be the only one."""
    target = tmp_path / "all.jsonl"
    target.write_bytes(b"older")
    connect_to(monkeypatch, exporting(LINES))
    assert command("export", str(target)) == 2
    assert target.read_bytes() == b"older"
    assert command("export", str(target), "--force", "--json") == 0
    assert target.read_bytes() == LINES
    assert json.loads(capsys.readouterr().out)["lines"] == 3


def test_export_that_ends_early_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Half an export must not pass for a whole one."""
    connect_to(monkeypatch, exporting(LINES[:40], total=99))
    assert command("export", str(tmp_path / "all.jsonl")) == 5
    assert not list(tmp_path.iterdir())
    assert "of 99 lines" in capsys.readouterr().err


def test_export_and_import_go_through_pipes(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`-` is stdout for the one and stdin for the other; the note goes beside it."""
    connect_to(monkeypatch, exporting(LINES))
    assert command("export", "-") == 0
    assert capsysbinary.readouterr().out == LINES
    assert command("export", "-", "--json") == 2
    received: list[bytes] = []
    connect_to(monkeypatch, importing(received))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINES)))
    assert command("import", "-") == 0
    assert received == [LINES]
    assert b"3 lines imported, 1 were there already" in capsysbinary.readouterr().out


def test_refused_lines_are_told_and_end_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What was not taken must not be overlooked."""
    file = tmp_path / "all.jsonl"
    file.write_bytes(LINES)
    connect_to(monkeypatch, importing([], refused=2))
    assert command("import", str(file)) == 1
    assert "line 1: odd" in capsys.readouterr().err
    assert command("import", str(file), "--json") == 1
    assert json.loads(capsys.readouterr().out)["refused_count"] == 2


def test_dry_run_of_an_export_counts_without_a_sidecar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Looking needs nothing but the file; a line that is no record is told."""
    file = tmp_path / "all.jsonl"
    file.write_bytes(LINES + b"\n")
    connect_to(monkeypatch, ScriptedSidecar())
    assert command("import", str(file), "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["records"] == {"edge": 1, "memory": 1}
    file.write_bytes(LINES + b"[" * 10_000 + b"\n")
    assert command("import", str(file), "--dry-run") == 1
    assert "line 4" in capsys.readouterr().err


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project with notes for agents, and a folder of Claude Code."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "CLAUDE.md").write_text("# Rules\n- Use tabs.\n- Never push on Friday.\n", encoding="utf-8")
    (root / "AGENTS.md").write_text("# Testing\nRun `make test` first.\n", encoding="utf-8")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    notes = tmp_path / "claude" / "projects" / str(root).translate({ord("/"): "-", ord("_"): "-"}) / "memory"
    notes.mkdir(parents=True)
    (notes / "MEMORY.md").write_text("- The build needs Node 22.\n", encoding="utf-8")
    return root


def test_notes_of_a_project_are_planned_then_stored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    """The dry run asks no sidecar; the import stores the same, for the project of that folder, with its origin."""
    sidecar = ScriptedSidecar(remember=memory_service.RememberResponse(memory_id=A))
    connect_to(monkeypatch, sidecar)
    assert command("import", str(project), "--dry-run", "--json") == 0
    planned = json.loads(capsys.readouterr().out)
    assert len(planned["memories"]) == 3
    assert not sidecar.requests
    assert command("import", str(project)) == 0
    assert "3 memories stored" in capsys.readouterr().out
    assert {request.namespace for request in sidecar.requests} == {"project:shop"}
    assert [request.content for request in sidecar.requests] == [one["content"] for one in planned["memories"]]
    assert all(request.metadata["imported_from"]["path"] for request in sidecar.requests)


def test_notes_of_claude_code_come_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    """What lies outside of the project is read only if the user says so."""
    assert command("import", str(project), "--claude-notes", "--dry-run") == 0
    assert "Node 22" in capsys.readouterr().out
    assert command("import", str(project), "--dry-run") == 0
    assert "Node 22" not in capsys.readouterr().out


def test_memory_that_is_refused_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    """One bad note is told with its place; the import ends with one."""

    def remember(request: memory_service.RememberRequest) -> memory_service.RememberResponse:
        if "Friday" in request.content:
            raise InvalidInputError("content", "x", "something else")
        return memory_service.RememberResponse(memory_id=A)

    connect_to(monkeypatch, ScriptedSidecar(remember=remember))
    assert command("import", str(project)) == 1
    captured = capsys.readouterr()
    assert "2 memories stored" in captured.out
    assert "CLAUDE.md:3" in captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("missing.md",),
        ("notes.txt",),
        ("-", "--format", "json-lines"),
        (".", "--format", "agents-md"),
        ("notes.txt", "--format", "agents-md", "--claude-notes"),
        ("all.jsonl", "--namespace", "global"),
        ("notes.txt", "--format", "agents-md", "--namespace", "projekt:x"),
    ],
)
def test_import_that_makes_no_sense_stores_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """What cannot be told apart is asked for, not guessed."""
    (tmp_path / "notes.txt").write_text("# A\nb\n", encoding="utf-8")
    (tmp_path / "all.jsonl").write_bytes(LINES)
    monkeypatch.chdir(tmp_path)
    sidecar = ScriptedSidecar()
    connect_to(monkeypatch, sidecar)
    assert command("import", *arguments) == 2
    assert not sidecar.requests
    assert capsys.readouterr().err.startswith("Error: ")


def test_backup_names_an_absolute_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The sidecar works in another folder than the one where the command was typed."""
    sidecar = ScriptedSidecar(back_up=service.BackUpResponse(size_bytes=4096, memory_count=2))
    connect_to(monkeypatch, sidecar)
    monkeypatch.chdir(tmp_path)
    assert command("backup", "copy.db") == 0
    assert sidecar.requests[0].path == str(tmp_path / "copy.db")
    assert "2 memories, 4.0 KiB" in capsys.readouterr().out


def database(path: Path, *, memories: int) -> Path:
    """Make a database with so many memories, and return its path."""
    connection = open_writer(path)
    migrate(connection, path, migrations=shipped_migrations(), now_us=1)
    connection.execute("CREATE TABLE marks (number INTEGER)")
    for number in range(memories):
        connection.execute("INSERT INTO marks VALUES (?)", (number,))
    connection.close()
    return path


def marks(path: Path) -> int:
    """Return how many rows tell the one database from the other."""
    connection = open_writer(path)
    try:
        return int(connection.execute("SELECT count(*) FROM marks").get)
    finally:
        connection.close()


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """Give a data folder with a database of three marks and a snapshot of its index."""
    found = DataFolder.at(tmp_path / "home")
    found.prepare()
    database(found.database_path, memories=3)
    found.index_folder.mkdir()
    (found.index_folder / "vectors.snapshot").write_bytes(b"of the other database")
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Give a backup of a database with seven marks."""
    target = tmp_path / "copy.db"
    back_up(database(tmp_path / "other.db", memories=7), target)
    return target


def test_backup_is_put_in_place_and_the_old_one_kept(
    capsys: pytest.CaptureFixture[str], folder: DataFolder, copy: Path
) -> None:
    """Restoring can be undone with what was set aside; the index of the other database is gone."""
    arguments = ("--home", str(folder.home), "restore-backup")
    assert command(*arguments, str(copy), "--yes", "--json") == 0
    aside = json.loads(capsys.readouterr().out)["replaced_database"]
    assert marks(folder.database_path) == 7
    assert not folder.index_folder.exists()
    assert copy.is_file()
    if sys.platform != "win32":
        assert stat.S_IMODE(folder.database_path.stat().st_mode) == 0o600
    assert command(*arguments, aside, "--yes") == 0
    assert marks(folder.database_path) == 3
    assert "undo: sidecar restore-backup" in capsys.readouterr().out
    assert not [path for path in folder.home.iterdir() if "restoring" in path.name]


def test_writes_in_the_journal_of_the_old_one_are_kept(folder: DataFolder, copy: Path) -> None:
    """After a crash the last writes are in the journal; they belong to what is set aside, never to the new one."""
    connection = open_writer(folder.database_path)
    connection.execute("INSERT INTO marks VALUES (99)")
    journal = folder.database_path.with_name("memories.db-wal")
    kept = journal.read_bytes()
    content = folder.database_path.read_bytes()
    connection.close()
    folder.database_path.write_bytes(content)
    journal.write_bytes(kept)
    assert command("restore-backup", str(copy), "-y", "--home", str(folder.home)) == 0
    assert marks(folder.database_path) == 7
    (aside,) = (path for path in folder.home.iterdir() if "replaced" in path.name and path.suffix[-1] == "Z")
    assert marks(aside) == 4


def test_running_sidecar_keeps_its_database(capsys: pytest.CaptureFixture[str], folder: DataFolder, copy: Path) -> None:
    """A database that is replaced under its process is lost."""
    with try_lock(folder.lock_path) as is_ours:
        assert is_ours
        assert command("restore-backup", str(copy), "--yes", "--home", str(folder.home)) == 8
    assert "sidecar stop" in capsys.readouterr().err
    assert marks(folder.database_path) == 3


def test_restoring_asks_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: DataFolder, copy: Path
) -> None:
    """Without a terminal and without `--yes` nothing is replaced."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert command("restore-backup", str(copy), "--home", str(folder.home)) == 0
    assert "--yes" in capsys.readouterr().err
    assert command("restore-backup", str(copy), "--home", str(folder.home), "--json") == 0
    assert json.loads(capsys.readouterr().out)["preview"] is True
    assert marks(folder.database_path) == 3


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8192])


def _of_the_future(path: Path) -> None:
    connection = open_writer(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()


def _of_another_program(path: Path) -> None:
    path.unlink()
    connection = open_writer(path)
    connection.execute("CREATE TABLE x (y)")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (_truncated, 2),
        (_of_the_future, 5),
        (_of_another_program, 2),
        (lambda path: path.write_bytes(b"no database" * 100), 2),
        (lambda path: path.write_bytes(b""), 2),
        (Path.unlink, 2),
    ],
)
def test_what_is_no_sound_backup_is_not_put_in_place(
    capsys: pytest.CaptureFixture[str], folder: DataFolder, copy: Path, spoil: Callable[[Path], None], code: int
) -> None:
    """It is checked before anything is moved."""
    spoil(copy)
    assert command("restore-backup", str(copy), "--yes", "--home", str(folder.home)) == code
    assert "Traceback" not in capsys.readouterr().err
    assert marks(folder.database_path) == 3
    assert not [path for path in folder.home.iterdir() if "restoring" in path.name or "replaced" in path.name]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps access apart from the mode")
def test_backup_that_others_could_change_is_refused(
    capsys: pytest.CaptureFixture[str], folder: DataFolder, copy: Path
) -> None:
    """Whoever can write it decides what agents are told; one that others can only read is told of."""
    copy.chmod(0o666)
    assert command("restore-backup", str(copy), "--yes", "--home", str(folder.home)) == 4
    copy.chmod(0o644)
    assert command("restore-backup", str(copy), "--yes", "--home", str(folder.home)) == 0
    assert "chmod 600" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "verdicts"),
    [
        (service.CheckIntegrityResponse(stored_vectors=4, indexed_vectors=4), [Verdict.GOOD, Verdict.GOOD]),
        (service.CheckIntegrityResponse(faults=["page 3 is odd"], stored_vectors=4), [Verdict.BAD, Verdict.DOUBTFUL]),
    ],
)
def test_deep_examination_tells_faults_with_a_remedy(
    answer: service.CheckIntegrityResponse, verdicts: list[Verdict]
) -> None:
    """What is wrong with the database or the index comes with what to do about it."""
    findings = list(check_integrity(ScriptedSidecar(check_integrity=answer)))  # type: ignore[arg-type]
    assert [finding.verdict for finding in findings] == verdicts
    assert all(finding.remedy for finding in findings if finding.verdict is not Verdict.GOOD)


def test_doctor_looks_deep_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The long check is made only with `--deep`."""
    sidecar = ScriptedSidecar(
        get_status=admin.GetStatusResponse(storage=admin.StorageStatus(free_bytes=2**40)),
        remember=memory_service.RememberResponse(memory_id=A),
        recall=memory_service.RecallResponse(),
        forget_memories=memory_service.ForgetMemoriesResponse(),
        check_integrity=service.CheckIntegrityResponse(faults=["page 3 is odd"]),
    )
    sidecar.endpoint = type("Endpoint", (), {"address": "unix:/x"})  # type: ignore[attr-defined]
    connect_to(monkeypatch, sidecar)
    command("doctor", "--home", str(tmp_path / "home"))
    assert "page 3" not in capsys.readouterr().out
    assert command("doctor", "--deep", "--home", str(tmp_path / "home")) == 1
    assert "page 3 is odd" in capsys.readouterr().out
