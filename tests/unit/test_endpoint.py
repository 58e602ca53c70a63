"""The data folder: what may be used, what is refused, and what the endpoint file says and hides."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.client.build import Build
from sidecar.client.endpoint import DataFolder, Endpoint, Holder, resolve_home
from sidecar.client.isolation import isolated_environment
from sidecar.client.trusted_files import (
    check_own_socket,
    ensure_private_folder,
    open_private_log,
    read_private_file,
    replace_private_file,
)
from sidecar.errors import StorageError, UntrustedPathError

ENDPOINT = Endpoint(Holder(123, 4.5, "ab12"), "unix:/run/x/sock", "s3cret", Build("1.2", 1), 1024)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A data folder that is ready for use."""
    found = DataFolder(tmp_path / "home")
    found.prepare()
    return found


def test_what_is_written_is_read(folder: DataFolder) -> None:
    """Both sides see the same."""
    ENDPOINT.write(folder)
    ENDPOINT.holder.write(folder)
    assert Endpoint.read(folder) == ENDPOINT
    assert Holder.read(folder) == ENDPOINT.holder
    assert stat.S_IMODE(folder.endpoint_path.stat().st_mode) == 0o600


def test_token_is_not_shown() -> None:
    """It must not get into a log by way of a message."""
    assert "s3cret" not in repr(ENDPOINT)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps access apart from the mode")
@pytest.mark.parametrize("content", [(), ("config.toml", "notes.txt"), ("memories.db",)])
def test_folder_made_by_hand_is_closed(tmp_path: Path, content: tuple[str, ...]) -> None:
    """An empty folder, or one with a file of ours, may become ours alone."""
    tmp_path.chmod(0o755)
    for name in content:
        (tmp_path / name).touch()
    DataFolder(tmp_path).prepare()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps access apart from the mode")
@pytest.mark.parametrize(
    ("mode", "content", "told"),
    [(0o755, "notes.txt", "not ours"), (0o1777, "memories.db", "share"), (0o1700, "memories.db", "share")],
)
def test_folder_of_another_purpose_is_left_alone(tmp_path: Path, mode: int, content: str, told: str) -> None:
    """Whoever points at /tmp or at a folder with other files must not lock out those who use it."""
    (tmp_path / content).touch()
    tmp_path.chmod(mode)
    with pytest.raises(UntrustedPathError, match=f"{told}.*choose an empty folder"):
        DataFolder(tmp_path).prepare()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    assert [path.name for path in tmp_path.iterdir()] == [content]


def test_home_of_the_user_is_no_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it is private already, our files do not belong among all others."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with pytest.raises(UntrustedPathError, match="your home folder"):
        DataFolder(tmp_path).prepare()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pid", 0),
        ("pid", True),
        ("pid", 2**80),
        ("started_at", "1"),
        ("started_at", float("nan")),
        ("token", ""),
        ("token", "a\nb"),
        ("instance_id", None),
        ("address", "unix:relative"),
        ("address", "10.0.0.1:80"),
        ("address", "127.0.0.1:0"),
        ("address", "127.0.0.1:99999"),
        ("address", "dns:evil.example:80"),
        ("protocol", 1.5),
        ("max_message_bytes", -1),
    ],
)
def test_endpoint_with_a_field_of_nonsense_is_none(folder: DataFolder, field: str, value: object) -> None:
    """Nor may it send a client to another machine."""
    ENDPOINT.write(folder)
    content = json.loads(folder.endpoint_path.read_text())
    content[field] = value
    replace_private_file(folder.endpoint_path, json.dumps(content).encode())
    assert Endpoint.read(folder) is None


def test_endpoint_cut_anywhere_is_none_or_whole(folder: DataFolder) -> None:
    """A torn file is never half believed."""
    ENDPOINT.write(folder)
    content = folder.endpoint_path.read_bytes()
    for length in range(len(content)):
        replace_private_file(folder.endpoint_path, content[:length])
        assert Endpoint.read(folder) is None


def test_endpoint_open_to_others_is_refused(folder: DataFolder) -> None:
    """Its token is no secret any more."""
    ENDPOINT.write(folder)
    folder.endpoint_path.chmod(0o644)
    with pytest.raises(UntrustedPathError, match="other users"):
        Endpoint.read(folder)


def test_folder_is_closed_to_others(tmp_path: Path) -> None:
    """New ones are made so; one that the user made by hand becomes so."""
    ensure_private_folder(tmp_path / "new" / "deep")
    (tmp_path / "old").mkdir(mode=0o755)
    ensure_private_folder(tmp_path / "old")
    assert stat.S_IMODE((tmp_path / "new" / "deep").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["link", "file", "pipe"])
def test_what_is_no_folder_of_ours_is_refused(tmp_path: Path, kind: str) -> None:
    """Whoever can write to the parent may have put it there before us."""
    path = tmp_path / "it"
    if kind == "link":
        path.symlink_to(tmp_path)
    elif kind == "file":
        path.touch()
    else:
        os.mkfifo(path)
    with pytest.raises(UntrustedPathError):
        ensure_private_folder(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_refused(folder: DataFolder, tmp_path: Path) -> None:
    """Folder, file, log and socket alike."""
    ENDPOINT.write(folder)
    os.chown(folder.endpoint_path, 12345, 12345)
    with pytest.raises(UntrustedPathError, match="another user"):
        Endpoint.read(folder)
    os.chown(folder.log_folder, 12345, 12345)
    with pytest.raises(UntrustedPathError, match="another user"):
        folder.prepare()
    log = tmp_path / "log"
    log.touch(0o600)
    os.chown(log, 12345, 12345)
    with pytest.raises(UntrustedPathError, match="another user"):
        open_private_log(log)


def test_folder_below_a_file_is_told(tmp_path: Path) -> None:
    """A message names the path rather than an errno."""
    (tmp_path / "file").touch()
    with pytest.raises((UntrustedPathError, StorageError), match="file"):
        ensure_private_folder(tmp_path / "file" / "home")
    assert read_private_file(tmp_path / "file" / "x") is None
    assert not check_own_socket(tmp_path / "file" / "x")


def test_replaced_file_does_not_follow_a_link(tmp_path: Path) -> None:
    """The link is replaced, its target stays."""
    (tmp_path / "target").write_text("keep")
    (tmp_path / "file").symlink_to(tmp_path / "target")
    replace_private_file(tmp_path / "file", b"new")
    assert (tmp_path / "target").read_text() == "keep"
    assert read_private_file(tmp_path / "file") == b"new"


@pytest.mark.parametrize("length", range(60, 240, 7))
def test_socket_path_fits_whatever_the_home(tmp_path: Path, length: int) -> None:
    """MacOS takes 103 bytes, Linux 107."""
    name = "h" * max(length - len(str(tmp_path)) - 1, 1)
    home = tmp_path / name[:200]
    folder = DataFolder(home)
    folder.prepare()
    socket_folder = folder.prepare_socket_folder()
    try:
        assert len(os.fsencode(socket_folder / "sock.12345678")) <= 100
        assert stat.S_IMODE(socket_folder.stat().st_mode) == 0o700
        assert folder.prepare_socket_folder() == socket_folder
    finally:
        socket_folder.rmdir()


def test_home_is_chosen_in_order(tmp_path: Path) -> None:
    """Given, variable, else the user's own; always absolute."""
    assert resolve_home(tmp_path, {"SIDECAR_HOME": "/x"}) == tmp_path
    assert resolve_home(None, {"SIDECAR_HOME": str(tmp_path)}) == tmp_path
    assert resolve_home(None, {}).name == "memory-sidecar"
    assert resolve_home("a/../b", {}) == Path.cwd() / "b"


def test_environment_of_our_processes_is_a_short_list() -> None:
    """What changes how Python, the loader or gRPC behave does not get through."""
    hostile = {
        "PYTHONPATH": "/x",
        "PYTHONSTARTUP": "/x",
        "LD_PRELOAD": "/x",
        "http_proxy": "http://x",
        "GRPC_TRACE": "all",
        "OPENAI_API_KEY": "k",
    }
    kept = {"HOME": "/h", "PATH": "/bin", "SIDECAR_HOME": "/s", "LC_ALL": "C.UTF-8"}
    assert isolated_environment(hostile | kept) == kept


def test_importing_the_client_loads_no_engine() -> None:
    """Hooks and bridges start all the time, and must not wait for what only the sidecar needs."""
    heavy = ("numpy", "faiss", "torch", "onnxruntime", "apsw", "sqlite3", "filelock", "psutil")
    program = f"import sys, sidecar.client; sys.stdout.write(' '.join(set(sys.modules) & set({heavy!r})))"
    loaded = subprocess.run((sys.executable, "-c", program), check=True, capture_output=True, text=True)
    assert loaded.stdout == ""


def test_builds_compare_by_protocol_and_numbers() -> None:
    """Only an upgrade may replace a sidecar; a suffix or a trailing zero is none."""
    assert Build("0.10.0", 1).is_newer_than(Build("0.9.3", 1))
    assert Build("0.1.0", 2).is_newer_than(Build("9.0", 1))
    assert not Build("1.0", 1).is_newer_than(Build("1.0.0", 1))
    assert not Build("1.0rc2", 1).is_newer_than(Build("1.0rc1", 1))
    assert not Build("nonsense", 1).is_newer_than(Build("0.1", 1))
