"""The commands that connect clients, as a user runs them in a home of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sidecar.client import stop
from sidecar.errors import SidecarNotRunningError
from tests.e2e.running import ROOT, write_settings

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Give a user's home with a project in it and two clients."""
    for name in ("work/shop/.git", "work/shop/deep", ".claude", ".codex"):
        (tmp_path / "user" / name).mkdir(parents=True)
    return tmp_path / "user"


@pytest.fixture
def sidecar(tmp_path: Path, user: Path) -> Iterator[Run]:
    """Give what runs one command deep in the project, with nothing of this machine but its search path."""
    home = tmp_path / "data"
    write_settings(home)
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from sidecar.__main__ import main; sys.exit(main())"

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", start, *arguments],
            cwd=user / "work" / "shop" / "deep",
            env={"PATH": os.environ["PATH"], "HOME": str(user), "SIDECAR_HOME": str(home), **variables},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    yield run
    with suppress(SidecarNotRunningError):
        stop(home, force=True)


def contents(folder: Path) -> dict[Path, bytes]:
    """Return every file below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_connect_all_then_probe_then_disconnect(sidecar: Run, user: Path, tmp_path: Path) -> None:
    """Those that are there are connected, each server really starts, and in the end no trace of it is left."""
    before = contents(user)
    dry = sidecar("connect", "all", "--dry-run")
    assert (dry.returncode, contents(user)) == (0, before), dry.stderr
    assert "+++ " in dry.stdout
    done = sidecar("connect", "all")
    assert done.returncode == 0, done.stderr
    assert dry.stdout.replace("would be connected", "connected") == done.stdout
    assert not (user / ".cursor").exists()
    server = json.loads((user / ".claude.json").read_text())["mcpServers"]["memory"]
    assert Path(server["command"]).is_absolute()
    assert server["args"][-2:] == ["--home", str(tmp_path / "data")]
    again = sidecar("connect", "all", "--json")
    assert [each["changed"] for each in json.loads(again.stdout)["clients"]] == [False, False]
    found = sidecar("connections", "--json")
    assert found.returncode == 0, found.stdout
    works = {(each["client"], each["scope"]): each["works"] for each in json.loads(found.stdout)["clients"]}
    assert works == {
        ("claude-code", "user"): True,
        ("codex", "user"): True,
        ("cursor", "user"): None,
        ("claude-code", "project"): None,
        ("codex", "project"): None,
        ("cursor", "project"): None,
    }
    gone = sidecar("disconnect", "all")
    assert gone.returncode == 0, gone.stderr
    assert contents(user) == before


def test_connect_in_a_project_without_hooks(sidecar: Run, user: Path) -> None:
    """It goes to the top of the work tree, wherever in it the command is run."""
    done = sidecar("connect", "cursor", "--scope", "project", "--no-hooks")
    assert done.returncode == 0, done.stderr
    project = user / "work" / "shop" / ".cursor"
    assert sorted(str(path.relative_to(project)) for path in contents(project)) == ["mcp.json", "rules/memory.mdc"]
    assert sidecar("disconnect", "cursor", "--scope", "project").returncode == 0
    assert not project.exists()


def test_settings_of_the_shell_are_carried_over(sidecar: Run, user: Path) -> None:
    """A client that is started from a menu has none of this shell's variables."""
    done = sidecar("connect", "claude-code", "--no-hooks", SIDECAR_LOG_LEVEL="debug", OTHER="x")
    assert done.returncode == 0, done.stderr
    server = json.loads((user / ".claude.json").read_text())["mcpServers"]["memory"]
    assert server["env"] == {"SIDECAR_LOG_LEVEL": "debug"}


def test_server_that_does_not_start_is_told(sidecar: Run, user: Path) -> None:
    """The probe runs what is configured, not what would be written now."""
    (user / ".claude.json").write_text('{"mcpServers": {"memory": {"command": "/nowhere/sidecar", "args": ["mcp"]}}}')
    found = sidecar("connections")
    assert found.returncode == 1
    assert "no program /nowhere/sidecar" in found.stdout
    assert "sidecar connect claude-code" in found.stderr
    assert sidecar("connections", "--no-probe").returncode == 0


def test_errors_tell_what_to_do(sidecar: Run, user: Path) -> None:
    """Each with the exit code of its kind; nothing is changed, not even for the client that came first."""
    unknown = sidecar("connect", "emacs")
    assert (unknown.returncode, "claude-code, codex, cursor" in unknown.stderr) == (2, True)
    (user / ".codex" / "config.toml").write_text("a = 1\nb =\n")
    before = contents(user)
    broken = sidecar("connect", "all")
    assert broken.returncode == 8
    assert "config.toml, line 2" in broken.stderr
    assert contents(user) == before
    for name in (".claude", ".codex"):
        (user / name).rename(user / name.strip("."))
    none = sidecar("connect", "all", PATH="/nowhere")
    assert (none.returncode, "sidecar connect claude-code" in none.stderr) == (7, True)
