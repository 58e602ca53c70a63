"""What a client's setup is: which of its files get what, and what its user should know. How setups are found.

Third parties ship theirs as an entry point. A setup writes nothing itself; `connecting` does.
"""

import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final, Protocol, TypeAlias, runtime_checkable

from client_plugins.kit.config_edit.editors import Editor
from sidecar.api.plain import JsonValue
from sidecar.errors import InvalidInputError

ENTRY_POINT_GROUP: Final = "memory_sidecar.client_setups"
SERVER_NAME: Final = "memory"
"""Under which our MCP server is registered with every client."""

# Known without installed metadata too, so that a source tree works.
_BUILT_IN: Final = {
    "claude-code": "client_plugins.claude_code.setup:SETUP",
    "codex": "client_plugins.codex.setup:SETUP",
    "cursor": "client_plugins.cursor.setup:SETUP",
}
_PROGRAM: Final = "sidecar"
_COMMAND: Final = "mcp"
_HOOK_PROGRAM: Final = "client_plugins/hooks/run.py"

log = logging.getLogger(__name__)


class Scope(StrEnum):
    """For whom a client is connected."""

    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True)
class McpServer:
    """How a client starts an MCP server over stdin and stdout.

    Attributes:
        command: The program.
        args: Its arguments.
        env: Variables besides those that the client passes on.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def as_values(self) -> dict[str, JsonValue]:
        """Return it as every client writes it; `env` is left out if it is empty."""
        values: dict[str, JsonValue] = {"command": self.command, "args": list(self.args)}
        return values | ({"env": dict(self.env)} if self.env else {})


SERVER_VALUES: Final = ("command", "args", "env")
"""What of a server's entry is ours to set; the rest is the user's."""


@dataclass(frozen=True)
class SetupContext:
    """For whom and with what a client is to be connected.

    Attributes:
        scope: For whom.
        user_home: The user's home folder.
        project: The top folder of the project, absolute.
        environment: Variables that may say where a client keeps its files.
        server: Our MCP server.
        data_home: The sidecar's data folder, absolute.
        has_hooks: Whether hooks are wanted.
    """

    scope: Scope
    user_home: Path
    project: Path
    environment: Mapping[str, str]
    server: McpServer
    data_home: Path
    has_hooks: bool = True


FindServer: TypeAlias = Callable[[str], McpServer | None]
"""Returns the server that a file's text configures under our name; None for none. Raises what an `Editor` does."""


@dataclass(frozen=True)
class FileEdit:
    """What of ours goes into one file.

    Attributes:
        path: The file; need not exist.
        what: What goes in, for a person.
        editor: Puts it in and takes it out.
        is_private: Whether the file, if it is new, is for the user alone.
        find_server: Set for the file that has the MCP server in it.
    """

    path: Path
    what: str
    editor: Editor
    is_private: bool = True
    find_server: FindServer | None = None


@runtime_checkable
class ClientSetup(Protocol):
    """How one client is connected. Reads files at most; writes none."""

    @property
    def name(self) -> str:
        """The client's name, lower case with hyphens."""
        ...

    @property
    def title(self) -> str:
        """The client's name as its users know it."""
        ...

    def is_present(self, context: SetupContext) -> bool:
        """Tell whether the user seems to have the client."""
        ...

    def edits(self, context: SetupContext) -> Sequence[FileEdit]:
        """Return what goes into which file."""
        ...

    def notes(self, context: SetupContext) -> Sequence[str]:
        """Return what the user has to do or should know once it is connected, its own memory feature included."""
        ...


def installed_setups() -> dict[str, ClientSetup]:
    """Return the setups that are there, by name. One that cannot be loaded is logged and left out."""
    installed = {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}
    setups: dict[str, ClientSetup] = {}
    # An installed one cannot take the place of ours.
    for name, target in {**installed, **_BUILT_IN}.items():
        setup = _load(name, target)
        if setup is not None:
            setups[name] = setup
    return setups


def select_setup(name: str) -> ClientSetup:
    """Return the setup of a client.

    Raises:
        InvalidInputError: There is none of this name.
    """
    setups = installed_setups()
    if name not in setups:
        raise InvalidInputError("client", name, f"one of {', '.join([*sorted(setups), 'all'])}")
    return setups[name]


def parse_server(value: JsonValue) -> McpServer | None:
    """Return the server that an entry describes; None if it starts no program."""
    if not isinstance(value, dict) or not isinstance(value.get("command"), str):
        return None
    args, env = value.get("args"), value.get("env")
    return McpServer(
        command=str(value["command"]),
        args=tuple(map(str, args)) if isinstance(args, list) else (),
        env={str(name): str(each) for name, each in env.items()} if isinstance(env, dict) else {},
    )


def is_our_server(value: JsonValue) -> bool:
    """Tell whether an entry starts our bridge: `sidecar mcp` or `python -m sidecar mcp`, wherever they are."""
    server = parse_server(value)
    if server is None:
        return False
    words = [_stem(server.command), *server.args]
    return words[:2] == [_PROGRAM, _COMMAND] or list(server.args[:3]) == ["-m", _PROGRAM, _COMMAND]


def is_our_hook(value: JsonValue) -> bool:
    """Tell whether an entry runs our hook program, wherever it is."""
    command = value.get("command") if isinstance(value, dict) else None
    if not isinstance(command, str):
        return False
    words = command.replace("\\", "/").replace('"', " ").replace("'", " ").split()
    return any(word.endswith(_HOOK_PROGRAM) for word in words) or (
        len(words) > 1 and _stem(words[0]) == _PROGRAM and words[1] == "hook"
    )


def shell_line(command: Sequence[str], *, is_windows: bool) -> str:
    """Return a command as one line for the shell that a client runs it with.

    Python ends with 2 if its program is gone, as after `pip uninstall`, which clients take for a hook that forbids what
    it was asked about; so that any failure becomes 0. Windows may run it in cmd, a Bourne shell or PowerShell, of
    which an old one knows no `||`; slashes and double quotes do for all.
    """
    if not is_windows:
        return f"{shlex.join(command)} || exit 0"
    words = [word.replace("\\", "/") for word in command]
    return " ".join(f'"{word}"' if any(each in word for each in " ()&^") else word for word in words)


def _stem(program: str) -> str:
    path = PureWindowsPath(program) if "\\" in program else PurePosixPath(program)
    return path.name.removesuffix(".exe")


def _load(name: str, target: str) -> ClientSetup | None:
    module, _, attribute = target.partition(":")
    try:
        setup = getattr(import_module(module), attribute)
    except Exception:  # Code of others: whatever it does on import must not stop the other clients.
        log.exception("client setup cannot be loaded", extra={"client": name})
        return None
    if not isinstance(setup, ClientSetup) or setup.name != name:
        log.error("client setup is none, or has another name than its entry point", extra={"client": name})
        return None
    return setup
