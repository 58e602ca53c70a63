"""The whole application without a network: everything is closed at the end, and what failed behind it is told."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.client import DataFolder
from sidecar.config import Settings, load_settings
from sidecar.errors import StorageError
from sidecar.server import children
from sidecar.server.application import Run
from sidecar.server.compose import SidecarApplication, watched_clients
from sidecar.use_cases.semantic_index import SemanticIndex

Started = tuple[tuple[str, ...], dict[str, str]]


def settings_of(home: Path, **flags: str | float | bool) -> Settings:
    """Return the settings of a data folder that is there."""
    DataFolder.at(home).prepare()
    return load_settings(home=home, flags={"embedder": "none", "watcher": False, **flags})


async def test_stop_closes_all_although_a_part_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is closed last, whatever was before it, and the failure is not swallowed."""
    application = SidecarApplication(settings_of(tmp_path), Run.new())
    await application.start()

    async def failing(self: SemanticIndex) -> None:
        raise OSError("no")

    closed: list[str] = []
    close_index, close_store = SemanticIndex.close, SqliteStore.close

    def noted_close(self: SemanticIndex) -> None:
        closed.append("index")
        close_index(self)

    async def noted_store_close(self: SqliteStore) -> None:
        closed.append("store")
        await close_store(self)

    monkeypatch.setattr(SemanticIndex, "save", failing)
    monkeypatch.setattr(SemanticIndex, "close", noted_close)
    monkeypatch.setattr(SqliteStore, "close", noted_store_close)
    with pytest.raises(OSError, match="no"):
        await application.stop()
    assert closed == ["index", "store"]
    # Nobody holds it any more.
    connection = apsw.Connection(str(DataFolder.at(tmp_path).database_path))
    connection.execute("BEGIN EXCLUSIVE")
    connection.close()


async def test_failure_behind_it_all_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that died is a problem that the status names, not a state that looks well."""

    async def failing(self: SemanticIndex) -> None:
        raise StorageError("the disk refuses")

    monkeypatch.setattr(SemanticIndex, "load", failing)
    application = SidecarApplication(settings_of(tmp_path), Run.new())
    await application.start()
    await until(lambda: application.problems)
    assert "memories are found by words only: the disk refuses" in application.problems[0]
    await application.stop()


async def until(condition: Callable[[], object]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("claude-code", ("claude-code",)),
        (" claude-code , codex,,", ("claude-code", "codex")),
        ("", ()),
        (" , ", ()),
    ],
)
def test_watched_clients_are_names_between_commas(tmp_path: Path, setting: str, expected: tuple[str, ...]) -> None:
    """The watcher takes each as an argument of its own, and an empty one is no client."""
    assert watched_clients(settings_of(tmp_path, watch_clients=setting)) == expected


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[Started]:
    """Note which children would be run, with which variables."""
    noted: list[Started] = []

    async def spawn(self: children.SupervisedChild) -> None:
        noted.append((self._command, self._environment))
        raise OSError(2, "not run by this test")

    monkeypatch.setattr(children.SupervisedChild, "_spawn", spawn)
    return noted


async def test_watcher_gets_its_clients_one_by_one(tmp_path: Path, commands: list[Started]) -> None:
    """And a quiet gRPC, whose lost connections at each stop are not worth a line."""
    settings = settings_of(tmp_path, watcher=True, watch_clients="claude-code, codex")
    application = SidecarApplication(settings, Run.new())
    await application.start()
    await until(lambda: commands)
    await application.stop()
    ((command, environment),) = commands
    assert command[-3:] == ("--clients", "claude-code", "codex")
    assert environment["GRPC_VERBOSITY"] == "ERROR"


async def test_no_clients_means_no_watcher(tmp_path: Path, commands: list[Started]) -> None:
    """Without names the watcher itself would read all of them."""
    application = SidecarApplication(settings_of(tmp_path, watcher=True, watch_clients=" ,"), Run.new())
    await application.start()
    await application.stop()
    assert commands == []
