"""What the setups of clients have in common: a server in JSON, hooks, and a careful look into settings."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from client_plugins.hooks.registration import HOOK_TIMEOUT_S, REGISTRATIONS, hook_command
from client_plugins.kit.client_setup import (
    SERVER_NAME,
    SERVER_VALUES,
    FindServer,
    McpServer,
    SetupContext,
    is_our_hook,
    is_our_server,
    parse_server,
    shell_line,
)
from client_plugins.kit.config_edit.editors import JsonHooks, JsonMember
from client_plugins.kit.config_edit.files import ConfigFile
from client_plugins.kit.config_edit.json_spans import JsonSyntaxError
from client_plugins.kit.config_edit.json_text import JsonText
from client_plugins.kit.config_edit.toml_text import TomlSyntaxError, toml_value
from sidecar.api.plain import JsonValue
from sidecar.errors import ClientConfigError, InvalidInputError, StorageError

PLUGIN: Final = "memory-sidecar@memory-sidecar"
"""Our plugin for Claude Code and Codex, as they call it once it is installed from its folder."""
PLUGIN_NOTE: Final = f"The plugin {PLUGIN} is enabled too: keep one of the two, or every hook runs twice."
SERVER_WHAT: Final = f"an MCP server named {SERVER_NAME!r}"
_SERVERS: Final = "mcpServers"
_TYPE: Final[dict[str, JsonValue]] = {"type": "stdio"}


def json_server(server: McpServer) -> JsonMember:
    """Return our server as a member of `mcpServers`, as Claude Code and Cursor have it."""
    return JsonMember(
        path=(_SERVERS, SERVER_NAME),
        value=_TYPE | server.as_values(),
        owned=("type", *SERVER_VALUES),
        is_ours=is_our_server,
        what=SERVER_WHAT,
    )


def find_json_server(*, allows_comments: bool) -> FindServer:
    """Return what finds the server that `json_server` writes."""

    def find(text: str) -> McpServer | None:
        return parse_server(JsonText.parse(text, allows_comments=allows_comments).get((_SERVERS, SERVER_NAME)))

    return find


def grouped_hooks(client: str, context: SetupContext) -> JsonHooks:
    """Return our hooks as Claude Code and Codex have them: commands in groups that share a matcher."""
    command: dict[str, JsonValue] = {"type": "command", "command": _line(client, context), "timeout": HOOK_TIMEOUT_S}
    events: dict[str, JsonValue] = {
        each.event: ({"matcher": each.matcher} if each.matcher else {}) | {"hooks": [command]}
        for each in REGISTRATIONS[client]
    }
    return JsonHooks(("hooks",), events, is_our_hook, is_grouped=True)


def flat_hooks(client: str, context: SetupContext) -> JsonHooks:
    """Return our hooks as Cursor has them: commands, each with a matcher of its own."""
    command: dict[str, JsonValue] = {"command": _line(client, context), "timeout": HOOK_TIMEOUT_S}
    events: dict[str, JsonValue] = {
        each.event: command | ({"matcher": each.matcher} if each.matcher else {}) for each in REGISTRATIONS[client]
    }
    return JsonHooks(("hooks",), events, is_our_hook, is_grouped=False)


def configured_folder(context: SetupContext, variable: str, default: str) -> Path:
    """Return the folder of a client's own files: the one that a variable names, else one in the user's home.

    Raises:
        InvalidInputError: The variable holds a relative path.
    """
    named = context.environment.get(variable, "")
    if not named:
        return context.user_home / default
    folder = Path(named).expanduser()
    if not folder.is_absolute():
        raise InvalidInputError(variable, named, "an absolute path, or no such variable")
    return folder


def is_on_path(program: str, context: SetupContext) -> bool:
    """Tell whether a program is on the user's search path."""
    return shutil.which(program, path=context.environment.get("PATH", os.defpath)) is not None


def json_setting(path: Path, *names: str) -> JsonValue:
    """Return a value in a JSON file of a client; None if it cannot be told."""
    try:
        text = ConfigFile.read(path).text
        return None if text is None else JsonText.parse(text, allows_comments=True).get(names)
    except (JsonSyntaxError, ClientConfigError, StorageError):
        # Only for a remark; whoever edits the file tells what is wrong with it.
        return None


def toml_setting(path: Path, *names: str) -> JsonValue:
    """Return a value in a TOML file of a client; None if it cannot be told."""
    try:
        text = ConfigFile.read(path).text
        return None if text is None else toml_value(text, names)
    except (TomlSyntaxError, ClientConfigError, StorageError):
        # See `json_setting`.
        return None


def is_switched_on(environment: Mapping[str, str], variable: str) -> bool:
    """Tell whether a variable is set to something that clients take for yes."""
    return environment.get(variable, "").strip().lower() in {"1", "true", "yes", "on"}


def _line(client: str, context: SetupContext) -> str:
    return shell_line(hook_command(client, context.data_home), is_windows=os.name == "nt")
