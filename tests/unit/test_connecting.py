"""Clients' files are changed all or none, and connecting is undone exactly."""

import json
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_plugins.kit.client_setup import FileEdit, McpServer, Scope, SetupContext, installed_setups, select_setup
from client_plugins.kit.config_edit.files import ConfigFile
from client_plugins.kit.config_edit.journal import Connection, Journal
from client_plugins.kit.connecting import Connector
from client_plugins.kit.connection_state import EntryState, inspect_files
from sidecar.client import DataFolder
from sidecar.errors import (
    ClientConfigChangedError,
    ClientConfigError,
    ClientConfigMalformedError,
    ClientConfigOccupiedError,
    ClientConfigReadOnlyError,
    ClientConfigUneditableError,
)

SERVER = McpServer("/opt/memory/bin/sidecar", ("mcp",))
CLAUDE = '{\n  "numStartups": 3,\n  "mcpServers": {\n    "x": {"command": "x"}\n  }\n}\n'
CODEX = 'model = "x" # mine\n\n[mcp_servers.x]\ncommand = "x"\n'
CURSOR = '{\n  // mine\n  "mcpServers": {"x": {"command": "x"}}, // x\n}\n'
FILES = {
    "claude-code": (".claude.json", CLAUDE),
    "codex": (".codex/config.toml", CODEX),
    "cursor": (".cursor/mcp.json", CURSOR),
}


class Desk:
    """One user's home with files of clients in it, and what connects them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "user"
        self.home.mkdir()
        self.data = DataFolder(folder / "data")
        self.connector = Connector(Journal(self.data))

    def context(self, *, server: McpServer = SERVER, scope: Scope = Scope.USER) -> SetupContext:
        return SetupContext(scope, self.home, self.home / "project", {}, server, self.data.home)

    def edits(self, client: str, *, server: McpServer = SERVER, scope: Scope = Scope.USER) -> Sequence[FileEdit]:
        return select_setup(client).edits(self.context(server=server, scope=scope))

    def connect(self, client: str, *, server: McpServer = SERVER) -> bool:
        """Connect a client and return whether a file was changed."""
        return any(
            each.is_needed
            for each in self.connector.connect(Connection(client, "user"), self.edits(client, server=server))
        )

    def disconnect(self, client: str) -> bool:
        """Disconnect a client and return whether a file was changed."""
        return any(each.is_needed for each in self.connector.disconnect(Connection(client, "user"), self.edits(client)))

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def snapshot(self) -> dict[str, bytes | None]:
        """Return everything below the home: files with their content, folders without."""
        paths = sorted(self.home.rglob("*"))
        return {str(path.relative_to(self.home)): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a user without any client."""
    return Desk(tmp_path)


@pytest.mark.parametrize("client", FILES)
@pytest.mark.parametrize("has_files", [True, False], ids=["with files", "without files"])
def test_disconnecting_undoes_connecting(desk: Desk, client: str, has_files: bool) -> None:
    """Byte for byte, files and folders that were made included; doing either again changes nothing."""
    if has_files:
        desk.write(*FILES[client])
    before = desk.snapshot()
    assert desk.connect(client)
    connected = desk.snapshot()
    assert not desk.connect(client)
    assert desk.snapshot() == connected != before
    assert desk.disconnect(client)
    assert desk.snapshot() == before
    assert not desk.disconnect(client)


ODD = {
    "byte order mark": b'\xef\xbb\xbf{"mcpServers": {}}',
    "blank": b"",
    "white space": b"\n\n  \n",
    "one line": b'{"a":1,"mcpServers":{"x":{"command":"x"}},"z":[1,2]}',
    "carriage returns": b'{\r\n\t"a": 1\r\n}\r\n',
    "deep": b'{"projects": {"/p": {"mcpServers": {"memory": {"command": "theirs"}}}}}',
    "names twice": b'{"a": 1, "a": 2, "mcpServers": {"x": 1}, "mcpServers": {"y": 2}}',
    "other scripts": '{\n    "名前": "Zoë 🙂",\n    "mcpServers": {  }\n}'.encode(),
    "escapes": b'{"a": "\\u00e9 \\"mcpServers\\": {", "b": "C:\\\\x"}',
    "ours is empty space": b'{\n\n\n"mcpServers"   :\n\n   {\n\n }\n\n}',
    "large": json.dumps({f"p{at}": {"history": ["x" * 50] * 5} for at in range(500)}, indent=2).encode(),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_edited_and_restored(desk: Desk, name: str) -> None:
    """Whatever a valid file looks like, it stays valid, keeps its values, and comes back byte for byte."""
    path = desk.write(".claude.json", ODD[name])
    assert desk.connect("claude-code")
    text = path.read_bytes()
    assert text.startswith(b"\xef\xbb\xbf") == (name == "byte order mark")
    after = json.loads(text.decode("utf-8-sig"))
    before = json.loads(ODD[name].decode("utf-8-sig").strip() or "{}")
    assert after["mcpServers"].pop("memory")["command"] == SERVER.command
    assert after == {"mcpServers": {}} | before
    assert desk.disconnect("claude-code")
    assert path.read_bytes() == ODD[name]


def test_later_edits_of_the_user_stay(desk: Desk) -> None:
    """Who changed the files since keeps that; only what is ours goes."""
    for name, content in FILES.values():
        desk.write(name, content)
    hooks = desk.write(".claude/settings.json", '{\n  "hooks": {\n    "Stop": []\n  }\n}\n')
    for client in FILES:
        desk.connect(client)
    desk.write(".claude.json", (desk.home / ".claude.json").read_text().replace("3,", "4,"))
    desk.write(".codex/config.toml", (desk.home / ".codex/config.toml").read_text() + "\n# new\n[new]\na = 1\n")
    desk.write(".cursor/mcp.json", (desk.home / ".cursor/mcp.json").read_text().replace("// mine", "// mine, new"))
    theirs = {"type": "command", "command": "echo theirs"}
    settings = json.loads(hooks.read_text())
    settings["hooks"]["Stop"][0]["hooks"].append(theirs)
    hooks.write_text(json.dumps(settings, indent=2))
    for client in FILES:
        desk.disconnect(client)
    assert (desk.home / ".claude.json").read_text() == CLAUDE.replace("3,", "4,")
    assert (desk.home / ".codex/config.toml").read_text() == CODEX + "\n# new\n[new]\na = 1\n"
    assert (desk.home / ".cursor/mcp.json").read_text() == CURSOR.replace("// mine", "// mine, new")
    assert json.loads(hooks.read_text()) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_lost_journal_loses_only_exactness(desk: Desk) -> None:
    """What is ours is known by its looks, so that it can be taken out though the data folder was deleted."""
    desk.write(*FILES["codex"])
    desk.connect("codex")
    again = Desk.__new__(Desk)
    again.home, again.data = desk.home, DataFolder(desk.data.home.with_name("other"))
    again.connector = Connector(Journal(again.data))
    assert again.disconnect("codex")
    assert (desk.home / ".codex/config.toml").read_text() == CODEX
    assert "run.py" not in (desk.home / ".codex/hooks.json").read_text()


def test_record_that_makes_no_sense_is_as_good_as_none(desk: Desk) -> None:
    """A torn or meddled record must not lead to the restoring of some other file."""
    path = desk.write(*FILES["codex"])
    desk.connect("codex")
    record = desk.data.home / "connections" / "codex-user.json"
    value = json.loads(record.read_text())
    value["files"][str(path)]["backup"] = "../../user/.codex/hooks.json"
    record.write_text(json.dumps(value))
    assert desk.disconnect("codex")
    assert path.read_text() == CODEX


def test_newer_installation_takes_the_place_of_the_older(desk: Desk) -> None:
    """One server and one hook an event whatever was there before; the undo still goes back to before all of it."""
    before = desk.write(*FILES["claude-code"]).read_bytes()
    desk.connect("claude-code")
    assert desk.connect(
        "claude-code", server=McpServer("/new/bin/sidecar", ("mcp", "--home", "/d"), {"SIDECAR_X": "1"})
    )
    servers = json.loads((desk.home / ".claude.json").read_text())["mcpServers"]
    assert servers["memory"] == {
        "type": "stdio",
        "command": "/new/bin/sidecar",
        "args": ["mcp", "--home", "/d"],
        "env": {"SIDECAR_X": "1"},
    }
    hooks = json.loads((desk.home / ".claude/settings.json").read_text())["hooks"]
    assert {len(groups) for groups in hooks.values()} == {1}
    desk.disconnect("claude-code")
    assert (desk.home / ".claude.json").read_bytes() == before


def test_what_the_user_added_to_our_server_stays(desk: Desk) -> None:
    """A timeout or an approval of theirs survives an update, and does not make the entry look outdated."""
    path = desk.write(*FILES["claude-code"])
    desk.connect("claude-code")
    value = json.loads(path.read_text())
    value["mcpServers"]["memory"]["timeout"] = 5000
    path.write_text(json.dumps(value, indent=2))
    assert not desk.connect("claude-code")
    desk.connect("claude-code", server=McpServer("/new/sidecar", ("mcp",)))
    assert json.loads(path.read_text())["mcpServers"]["memory"]["timeout"] == 5000


@pytest.mark.parametrize("client", FILES)
def test_server_of_another_is_not_touched(desk: Desk, client: str) -> None:
    """Another memory server may have the name already; the user decides which goes."""
    name, content = FILES[client]
    path = desk.write(name, content.replace('"x":', '"memory":').replace("mcp_servers.x", "mcp_servers.memory"))
    before = desk.snapshot()
    with pytest.raises(ClientConfigOccupiedError, match="memory") as caught:
        desk.connect(client)
    assert str(path) in caught.value.message
    assert desk.snapshot() == before
    assert next(each.state for each in inspect_files(desk.edits(client))) is EntryState.OCCUPIED
    assert not desk.disconnect(client)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        (".claude.json", '{\n  // mine\n  "a": 1\n}', "line 2, column 3"),
        (".claude/settings.json", '{"a": 1,}', "line 1, column"),
        (".claude.json", b'{\n"a": "\xff"}', "line 2"),
        (".codex/config.toml", "a = 1\nb = \n", "line 2"),
        (".codex/hooks.json", "[1", "line 1"),
        (".cursor/mcp.json", '{"mcpServers" {}}', "line 1, column 15"),
    ],
)
def test_malformed_file_stops_before_anything_is_changed(
    desk: Desk, name: str, content: str | bytes, place: str
) -> None:
    """The message names the file and the place; also the client's other files stay as they were."""
    path = desk.write(name, content)
    before = desk.snapshot()
    client = {".claude": "claude-code", ".codex": "codex", ".cursor": "cursor"}[Path(name).parts[0].split(".json")[0]]
    with pytest.raises(ClientConfigMalformedError) as caught:
        desk.connect(client)
    assert str(path) in caught.value.message
    assert place in caught.value.message
    assert desk.snapshot() == before


@pytest.mark.parametrize("content", ["[]", "1", '{"mcpServers": []}', '{"mcpServers": {"memory": 1}}'])
def test_values_of_another_kind_are_not_overwritten(desk: Desk, content: str) -> None:
    """A list where an object is expected is a mistake that only its user can mend."""
    path = desk.write(".claude.json", content)
    with pytest.raises((ClientConfigOccupiedError, ClientConfigUneditableError)):
        desk.connect("claude-code")
    assert path.read_text() == content


def test_links_modes_and_their_targets_stay(desk: Desk) -> None:
    """Dotfiles are often links into a repository; the file there is changed, and the link stays one."""
    real = desk.write("dotfiles/claude.json", CLAUDE)
    real.chmod(0o640)
    link = desk.home / ".claude.json"
    link.symlink_to(Path("dotfiles") / "claude.json")
    desk.connect("claude-code")
    assert link.is_symlink()
    assert "memory" in json.loads(real.read_text())["mcpServers"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    desk.disconnect("claude-code")
    assert (link.is_symlink(), real.read_text()) == (True, CLAUDE)


def test_new_files_and_backups_are_for_the_user_alone(desk: Desk) -> None:
    """They can hold keys, whatever the umask."""
    desk.write(*FILES["claude-code"])
    desk.connect("claude-code")
    backups = list((desk.data.home / "connections" / "backups").iterdir())
    assert [backup.read_text() for backup in backups] == [CLAUDE]
    for path in (desk.home / ".claude/settings.json", *backups):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_private_file_is_never_readable_for_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is what takes its place, from the moment that it is there."""
    path = desk.write("project/.mcp.json", CLAUDE)
    path.chmod(0o600)
    edits = [edit for edit in desk.edits("claude-code", scope=Scope.PROJECT) if edit.path == path]
    assert [edit.is_private for edit in edits] == [False]
    modes = []
    sync = os.fsync

    def look_and_sync(descriptor: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look_and_sync)
    before = os.umask(0)
    try:
        desk.connector.connect(Connection("claude-code", "project", str(desk.home / "project")), edits)
    finally:
        os.umask(before)
    assert modes
    assert set(modes) == {0o600}


def test_read_only_file_stops_before_anything_is_changed(desk: Desk) -> None:
    """Renaming over it would succeed, and disregard what its owner said."""
    settings = desk.write(".claude/settings.json", "{}")
    settings.chmod(0o444)
    before = desk.snapshot()
    with pytest.raises(ClientConfigReadOnlyError, match=r"settings\.json"):
        desk.connect("claude-code")
    assert desk.snapshot() == before
    settings.chmod(0o644)


def test_folder_in_the_place_of_a_file_is_refused(desk: Desk) -> None:
    """Nothing is guessed about what that is for."""
    (desk.home / ".claude.json").mkdir()
    with pytest.raises(ClientConfigError):
        desk.connect("claude-code")
    assert (desk.home / ".claude.json").is_dir()


def test_file_that_its_client_wrote_meanwhile_is_read_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a running client wrote between our reading and writing is not lost."""
    path = desk.write(*FILES["claude-code"])
    real, times = ConfigFile._check_unchanged, iter([1])

    def meddle(file: ConfigFile) -> None:
        if file.path == path and next(times, 0):
            path.write_text(CLAUDE.replace("3,", "4,"))
        real(file)

    monkeypatch.setattr(ConfigFile, "_check_unchanged", meddle)
    desk.connect("claude-code")
    value = json.loads(path.read_text())
    assert (value["numStartups"], "memory" in value["mcpServers"]) == (4, True)


def test_file_that_never_rests_is_left_and_all_is_undone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a connection would be worse than none: the file that was changed first is put back."""
    desk.write(*FILES["claude-code"])
    settings = desk.write(".claude/settings.json", "{}")
    before = desk.snapshot()
    real, turn = ConfigFile._check_unchanged, [0]

    def meddle(file: ConfigFile) -> None:
        if file.path == settings:
            turn[0] += 1
            settings.write_text(json.dumps({"turn": turn[0]}))
        real(file)

    monkeypatch.setattr(ConfigFile, "_check_unchanged", meddle)
    with pytest.raises(ClientConfigChangedError, match=r"settings\.json"):
        desk.connect("claude-code")
    assert turn[0] == 3
    assert desk.snapshot() == before | {".claude/settings.json": b'{"turn": 3}'}
    assert list(desk.home.rglob(".*.????????")) == []


def test_disconnecting_that_fails_half_way_leaves_everything_connected(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that never rests: the one that was changed before is connected again, and so remembered exactly."""
    desk.write(*FILES["claude-code"])
    settings = desk.write(".claude/settings.json", "{}")
    untouched = desk.snapshot()
    desk.connect("claude-code")
    before, connected = desk.snapshot(), settings.read_text()
    real = ConfigFile._check_unchanged

    def meddle(file: ConfigFile) -> None:
        if file.path == settings:
            settings.write_text(settings.read_text() + "\n")
        real(file)

    with monkeypatch.context() as patched:
        patched.setattr(ConfigFile, "_check_unchanged", meddle)
        with pytest.raises(ClientConfigChangedError, match=r"settings\.json"):
            desk.disconnect("claude-code")
    assert desk.snapshot() == before | {".claude/settings.json": f"{connected}\n\n\n".encode()}
    settings.write_text(connected)
    desk.disconnect("claude-code")
    assert desk.snapshot() == untouched


def test_deleted_file_comes_back_with_its_link_and_mode(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting comes last; should that fail in between, what went is as it was."""
    desk.connect("claude-code")
    settings = desk.home / ".claude" / "settings.json"
    real_file = desk.home / "dotfiles" / "settings.json"
    real_file.parent.mkdir()
    settings.rename(real_file)
    settings.symlink_to(real_file)
    real_file.chmod(0o640)
    before = desk.snapshot()
    remove, order = ConfigFile.remove, []

    def fail_behind(file: ConfigFile, *, is_link_kept: bool = False) -> None:
        order.append(file.path)
        if len(order) % 2 == 0:
            raise ClientConfigChangedError(str(file.path))
        remove(file, is_link_kept=is_link_kept)

    with monkeypatch.context() as patched:
        patched.setattr(ConfigFile, "remove", fail_behind)
        with pytest.raises(ClientConfigChangedError):
            desk.disconnect("claude-code")
    assert len(order) == 6
    assert desk.snapshot() == before
    assert (settings.is_symlink(), stat.S_IMODE(real_file.stat().st_mode)) == (True, 0o640)


def test_link_to_a_file_of_ours_goes_with_it(desk: Desk) -> None:
    """The user moved what we made into a repository since; a link that leads nowhere would be left behind."""
    desk.connect("claude-code")
    path = desk.home / ".claude.json"
    hidden = desk.home / "dotfiles" / "one" / "claude.json"
    hidden.parent.mkdir(parents=True)
    path.rename(hidden)
    between = desk.home / "dotfiles" / "claude.json"
    between.symlink_to(Path("one") / "claude.json")
    path.symlink_to(Path("dotfiles") / "claude.json")
    desk.disconnect("claude-code")
    assert not any(os.path.lexists(each) for each in (path, between, hidden))
    assert hidden.parent.is_dir()


def test_link_that_led_nowhere_before_leads_nowhere_again(desk: Desk) -> None:
    """It is the user's, made before the file that it is for; folders made for that go too."""
    link = desk.home / ".claude.json"
    link.symlink_to(Path("dotfiles") / "claude.json")
    desk.connect("claude-code")
    assert "memory" in json.loads((desk.home / "dotfiles" / "claude.json").read_text())["mcpServers"]
    desk.disconnect("claude-code")
    assert (link.is_symlink(), link.exists()) == (True, False)
    assert not (desk.home / "dotfiles").exists()


def test_linked_folder_of_a_client_stays_a_link(desk: Desk) -> None:
    """Only a link in the place of a file may go with it."""
    (desk.home / "dotfiles" / "claude").mkdir(parents=True)
    (desk.home / ".claude").symlink_to(Path("dotfiles") / "claude")
    before = desk.snapshot()
    desk.connect("claude-code")
    assert (desk.home / "dotfiles" / "claude" / "settings.json").is_file()
    desk.disconnect("claude-code")
    assert (desk.snapshot(), (desk.home / ".claude").is_symlink()) == (before, True)


def test_plan_touches_nothing(desk: Desk) -> None:
    """A dry run reads, and makes no folder either, not even in the data folder."""
    desk.write(*FILES["cursor"])
    before = desk.snapshot()
    changes = desk.connector.plan(desk.edits("cursor", scope=Scope.PROJECT))
    assert all(change.is_needed for change in changes)
    assert any('+      "command": "/opt/memory/bin/sidecar",' in change.diff() for change in changes)
    assert desk.snapshot() == before
    assert not desk.data.home.exists()


@pytest.mark.parametrize("client", FILES)
def test_state_is_told_from_the_files(desk: Desk, client: str) -> None:
    """Connected, of another installation, or not: what `sidecar connections` goes by."""
    assert {each.state for each in inspect_files(desk.edits(client))} == {EntryState.ABSENT}
    desk.connect(client)
    found = inspect_files(desk.edits(client))
    assert {each.state for each in found} == {EntryState.CONNECTED}
    assert found[0].server == SERVER
    other = inspect_files(desk.edits(client, server=replace(SERVER, command="/other/sidecar")))
    assert (other[0].state, other[0].server) == (EntryState.DIFFERENT, SERVER)


LATER = st.sampled_from(["", "client", "user"])
JSON = st.dictionaries(
    st.sampled_from(["a", "mcpServers", "hooks", "é"]),
    st.just({}) | st.dictionaries(st.sampled_from("xy"), st.just({"command": "x"})),
    max_size=3,
)


@given(
    state=JSON,
    settings=JSON,
    indent=st.sampled_from([None, 2, "\t"]),
    later=LATER,
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_connect_and_disconnect_is_no_change(
    state: dict[str, object], settings: dict[str, object], indent: int | str | None, later: str, newline: str
) -> None:
    """For files of any layout; if they were changed in between, no value is lost and none of ours stays."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        settings["hooks"] = {}
        for name, value in ((".claude.json", state), (".claude/settings.json", settings)):
            desk.write(name, json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline))
        before = desk.snapshot()
        desk.connect("claude-code")
        path = desk.home / ".claude.json"
        if later == "client":
            # Writes the whole file anew, in a layout of its own.
            path.write_text(json.dumps(json.loads(path.read_text()) | {"later": 1}, indent=2))
        elif later == "user":
            path.write_bytes(path.read_bytes() + b"\n\n")
        desk.disconnect("claude-code")
        if not later:
            assert desk.snapshot() == before
        expected = state | ({"later": 1} if later == "client" else {})
        assert json.loads(path.read_text()) == expected
        assert [each.name for each in (desk.home / ".claude").iterdir()] == ["settings.json"]


def test_every_client_has_a_setup() -> None:
    """Those that come with us are found without being installed."""
    assert set(FILES) <= set(installed_setups())
