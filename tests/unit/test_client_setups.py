"""What goes into the files of each client, and what its user is told."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from client_plugins.claude_code.setup import SETUP as CLAUDE_CODE
from client_plugins.codex.setup import SETUP as CODEX
from client_plugins.cursor.hooks_file import problem_of_hooks
from client_plugins.cursor.setup import RULE
from client_plugins.cursor.setup import SETUP as CURSOR
from client_plugins.hooks.registration import HOOK_TIMEOUT_S, REGISTRATIONS
from client_plugins.kit.client_setup import (
    ClientSetup,
    McpServer,
    Scope,
    SetupContext,
    is_our_hook,
    is_our_server,
    select_setup,
    shell_line,
)
from client_plugins.kit.connecting import Connector
from client_plugins.kit.mcp_probe import probe
from sidecar.api.plain import JsonValue
from sidecar.errors import ClientConfigMalformedError, InvalidInputError

PLUGIN = Path(__file__).parents[2] / "client_plugins" / "plugin_marketplace" / "memory-sidecar"


@pytest.fixture
def context(tmp_path: Path) -> SetupContext:
    """Give a user with a project and no client."""
    server = McpServer("/opt/bin/sidecar", ("mcp",))
    return SetupContext(Scope.USER, tmp_path, tmp_path / "project", {"PATH": ""}, server, tmp_path / "data")


def written(setup: ClientSetup, context: SetupContext) -> dict[str, str]:
    """Return what would be written below the user's home, by path."""
    changes = Connector.plan(Connector.__new__(Connector), setup.edits(context))
    return {
        str(change.edit.path.relative_to(context.user_home)): (change.after or b"").decode()
        for change in changes
        if change.is_needed
    }


@pytest.mark.parametrize(
    ("setup", "scope", "variables", "paths"),
    [
        (CLAUDE_CODE, Scope.USER, {}, [".claude.json", ".claude/settings.json"]),
        (CLAUDE_CODE, Scope.PROJECT, {}, ["project/.mcp.json", "project/.claude/settings.json"]),
        (CLAUDE_CODE, Scope.USER, {"CLAUDE_CONFIG_DIR": "c"}, ["c/.claude.json", "c/settings.json"]),
        (CODEX, Scope.USER, {}, [".codex/config.toml", ".codex/hooks.json"]),
        (CODEX, Scope.USER, {"CODEX_HOME": "x"}, ["x/config.toml", "x/hooks.json"]),
        (CODEX, Scope.PROJECT, {}, ["project/.codex/config.toml", "project/.codex/hooks.json"]),
        (CURSOR, Scope.USER, {}, [".cursor/mcp.json", ".cursor/hooks.json"]),
        (
            CURSOR,
            Scope.PROJECT,
            {},
            ["project/.cursor/mcp.json", "project/.cursor/hooks.json", "project/.cursor/rules/memory.mdc"],
        ),
    ],
)
def test_files_lie_where_the_client_reads_them(
    setup: ClientSetup, scope: Scope, variables: dict[str, str], paths: list[str], context: SetupContext
) -> None:
    """By scope, and by the variable with which the user moved the client's folder."""
    moved = {name: str(context.user_home / value) for name, value in variables.items()}
    assert list(written(setup, replace(context, scope=scope, environment=moved))) == paths


@pytest.mark.parametrize("setup", [CLAUDE_CODE, CODEX])
def test_relative_folder_of_a_client_is_refused(setup: ClientSetup, context: SetupContext) -> None:
    """It would mean another folder in every working directory."""
    variables = {"CLAUDE_CONFIG_DIR": "here", "CODEX_HOME": "here"}
    with pytest.raises(InvalidInputError, match="absolute"):
        setup.edits(replace(context, environment=variables))


@pytest.mark.parametrize(("setup", "file"), [(CLAUDE_CODE, ".claude/settings.json"), (CODEX, ".codex/hooks.json")])
def test_every_hook_is_registered_once(setup: ClientSetup, file: str, context: SetupContext) -> None:
    """With the matcher and timeout that the hooks ask for, and a command that never forbids anything."""
    groups = json.loads(written(setup, context)[file])["hooks"]
    assert list(groups) == [each.event for each in REGISTRATIONS[setup.name]]
    for each in REGISTRATIONS[setup.name]:
        (group,) = groups[each.event]
        (hook,) = group["hooks"]
        assert group.get("matcher", "") == each.matcher
        assert (hook["type"], hook["timeout"]) == ("command", HOOK_TIMEOUT_S)
        assert hook["command"].startswith(sys.executable)
        assert hook["command"].endswith(" || exit 0")
        assert is_our_hook(hook)


def test_hooks_of_cursor_are_valid(context: SetupContext) -> None:
    """One that is not would void the user's others too."""
    document = json.loads(written(CURSOR, context)[".cursor/hooks.json"])
    assert document["version"] == 1
    assert [each.event for each in REGISTRATIONS["cursor"]] == list(document["hooks"])
    assert problem_of_hooks(document) == ""


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"command": ""}, "has no `command`"),
        ({"timeout": 3}, "has no `command`"),
        ({"type": "", "command": "x"}, "has the type ''"),
        ({"type": "prompt", "command": "x"}, "has no `prompt`"),
        ({"command": "curl https://x"}, "has `//`"),
        ({"command": "x", "timeout": "5"}, "has a `timeout` that is not a number"),
        ({"command": "x", "timeout": True}, "has a `timeout` that is not a number"),
        ({"command": "x", "failClosed": 1}, "has a `failClosed` that is not true or false"),
        ("x", "is not an object"),
    ],
)
def test_invalid_hook_of_the_user_is_explained(entry: JsonValue, problem: str, context: SetupContext) -> None:
    """Cursor ignores such a file without a word; ours would be dead in it, and theirs are already."""
    path = context.user_home / ".cursor" / "hooks.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "hooks": {"stop": [{"command": "fine"}, entry]}}))
    before = path.read_bytes()
    with pytest.raises(ClientConfigMalformedError) as caught:
        written(CURSOR, context)
    assert "hooks.stop[1] " + problem in caught.value.message
    assert path.read_bytes() == before


@pytest.mark.parametrize("document", [{}, {"version": 2, "hooks": {}}, {"version": True, "hooks": {}}, {"version": 1}])
def test_hooks_file_of_another_form_is_invalid(document: JsonValue) -> None:
    """The version and the object are as much part of the form as the entries."""
    assert problem_of_hooks(document)


def test_own_memory_of_a_client_is_pointed_out(context: SetupContext) -> None:
    """Two memories that do not know of each other confuse users; nothing is switched off for them."""
    (context.user_home / ".claude").mkdir()
    settings = context.user_home / ".claude" / "settings.json"
    assert "auto memory" in " ".join(CLAUDE_CODE.notes(context))
    settings.write_text('{"autoMemoryEnabled": false}')
    assert "auto memory" not in " ".join(CLAUDE_CODE.notes(context))
    settings.write_text("{}")
    off = replace(context, environment={"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"})
    assert "auto memory" not in " ".join(CLAUDE_CODE.notes(off))
    (context.user_home / ".codex").mkdir()
    assert "memories of its own" not in " ".join(CODEX.notes(context))
    (context.user_home / ".codex" / "config.toml").write_text("[features]\nmemories = true\n")
    assert "memories of its own" in " ".join(CODEX.notes(context))
    assert "Memories" in " ".join(CURSOR.notes(context))


def test_plugin_beside_hooks_is_pointed_out(context: SetupContext) -> None:
    """Both together would run every hook twice and start two servers."""
    for folder, name, content in (
        (".claude", "settings.json", '{"enabledPlugins": {"memory-sidecar@memory-sidecar": true}}'),
        (".codex", "config.toml", '[plugins."memory-sidecar@memory-sidecar"]\nenabled = true\n'),
    ):
        (context.user_home / folder).mkdir()
        (context.user_home / folder / name).write_text(content)
    for setup in (CLAUDE_CODE, CODEX):
        assert "plugin" in " ".join(setup.notes(context))


def test_rule_of_cursor_that_the_user_rewrote_stays(context: SetupContext) -> None:
    """It is ours only as long as it says what we wrote."""
    (rule,) = [each for each in CURSOR.edits(replace(context, scope=Scope.PROJECT)) if each.path.suffix == ".mdc"]
    assert rule.editor.put(None).text == RULE
    assert rule.editor.take_out(RULE, ()) is None
    assert rule.editor.take_out(RULE + "Mine.\n", ()) == RULE + "Mine.\n"


@pytest.mark.parametrize(
    ("value", "is_ours"),
    [
        ({"command": "/opt/bin/sidecar", "args": ["mcp"]}, True),
        ({"command": "sidecar", "args": ["mcp", "--home", "/x"]}, True),
        ({"command": "C:\\Tools\\sidecar.exe", "args": ["mcp"]}, True),
        ({"command": "/usr/bin/python3", "args": ["-m", "sidecar", "mcp"]}, True),
        ({"command": "/opt/bin/sidecar", "args": ["serve"]}, False),
        ({"command": "npx", "args": ["-y", "server-memory"]}, False),
        ({"command": "/opt/sidecar/run", "args": ["mcp"]}, False),
        ({"url": "http://127.0.0.1"}, False),
        ({"command": ["sidecar", "mcp"]}, False),
        (None, False),
    ],
)
def test_our_server_is_known_by_its_looks(value: JsonValue, is_ours: bool) -> None:
    """Of whatever installation or version; a server that only has the name is another's."""
    assert is_our_server(value) is is_ours


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ("/v/bin/python -I -S /v/site-packages/client_plugins/hooks/run.py codex --home /d || exit 0", True),
        ("'/my v/python' -I -S '/my v/client_plugins/hooks/run.py' codex", True),
        ('"C:/my v/python.exe" -I -S "C:/my v/client_plugins/hooks/run.py" cursor', True),
        ("C:\\v\\python.exe -I -S C:\\v\\client_plugins\\hooks\\run.py cursor", True),
        ("/opt/bin/sidecar hook claude-code", True),
        ("echo sidecar hook", False),
        ("python hooks/run.py", False),
        ("", False),
    ],
)
def test_our_hook_is_known_by_its_looks(command: str, is_ours: bool) -> None:
    """Also with blanks in its path, and as Windows writes paths."""
    assert is_our_hook({"command": command}) is is_ours


def test_command_line_is_quoted_for_its_shell() -> None:
    """A home folder may have a blank in it, on Windows backslashes, which a Bourne shell would eat."""
    assert shell_line(["/my v/python", "-I", "x.py"], is_windows=False) == "'/my v/python' -I x.py || exit 0"
    windows = shell_line(["C:\\my v\\python.exe", "-I", "C:\\x.py"], is_windows=True)
    assert windows == '"C:/my v/python.exe" -I C:/x.py'


def test_hook_whose_program_is_gone_forbids_nothing(tmp_path: Path) -> None:
    """Python ends with 2 then, for which clients would refuse every prompt of the user."""
    command = [sys.executable, "-I", "-S", str(tmp_path / "client_plugins" / "hooks" / "run.py"), "codex"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
    line = shell_line(command, is_windows=False)
    outcome = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False)
    assert (outcome.returncode, outcome.stdout) == (0, b"")


def test_unknown_client_is_named_with_those_there_are() -> None:
    """A typing error is answered with what could have been meant."""
    with pytest.raises(InvalidInputError, match=r"claude-code, codex, cursor.*all"):
        select_setup("claude")


def test_plugin_registers_the_same_hooks(context: SetupContext) -> None:
    """The folder is written by hand, and must not fall behind the registrations."""
    for client in ("claude-code", "codex"):
        groups = json.loads((PLUGIN / "hooks" / f"{client}.json").read_text("utf-8"))["hooks"]
        assert groups == {
            each.event: [
                ({"matcher": each.matcher} if each.matcher else {})
                | {
                    "hooks": [
                        {
                            "type": "command",
                            "command": f"sidecar hook {client} || exit 0",
                            "timeout": HOOK_TIMEOUT_S,
                        }
                    ]
                }
            ]
            for each in REGISTRATIONS[client]
        }


def test_plugin_manifests_agree() -> None:
    """Two clients read the same folder, each with a manifest of its own."""
    ours, theirs = (
        json.loads((PLUGIN / folder / "plugin.json").read_text("utf-8"))
        for folder in (".claude-plugin", ".codex-plugin")
    )
    assert {ours[name] == theirs[name] for name in ("name", "version", "description")} == {True}
    for manifest in (ours, theirs):
        assert (PLUGIN / manifest["hooks"]).is_file()
    server = json.loads((PLUGIN / ".mcp.json").read_text("utf-8"))["mcpServers"]["memory"]
    assert is_our_server(server)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (McpServer("/nowhere/sidecar", ("mcp",)), "no program /nowhere/sidecar"),
        (McpServer(sys.executable, ("-c", "import sys; sys.exit('no such module')")), "it said: no such module"),
        (McpServer(sys.executable, ("-c", "input(); input()")), "within 1 s"),
    ],
)
def test_probe_says_why_a_server_does_not_do(server: McpServer, problem: str) -> None:
    """What the user reads is the server's own last word, or that its program is gone."""
    found = probe(server, timeout_s=20.0 if "within" not in problem else 1.0)
    assert problem in found.problem
    assert found.tools == ()
