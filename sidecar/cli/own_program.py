"""How this program is started by others: which paths and settings go into the files of clients."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from client_plugins.kit.client_setup import McpServer
from sidecar.client import resolve_home
from sidecar.config import SETTINGS

_NAMES: Final = ("sidecar", "sidecar.exe")


def own_server(home: Path | None, environment: Mapping[str, str]) -> McpServer:
    """Return how a client starts our bridge: absolute paths, and what is not as it is by default.

    Args:
        home: The data folder that was named; without one SIDECAR_HOME, else the user's own.
        environment: Settings in it hold for this shell only, so that they are carried over.
    """
    command = own_command()
    arguments = [*command[1:], "mcp"]
    chosen = resolve_home(home, environment)
    if chosen != resolve_home(None, {}):
        arguments += ["--home", str(chosen)]
    carried = {each.variable: environment[each.variable] for each in SETTINGS if each.variable in environment}
    return McpServer(command[0], tuple(arguments), carried)


def own_command() -> list[str]:
    """Return this program as it can be started from anywhere: its script, or the interpreter with the module."""
    # The name it was started by goes first: where pipx or uv put a link, that stays when the rest moves.
    for program in (Path(os.path.abspath(sys.argv[0])), *(Path(sys.executable).with_name(name) for name in _NAMES)):  # noqa: PTH100 - a link must stay one
        if program.name in _NAMES and program.is_file():
            return [str(program)]
    return [os.path.abspath(sys.executable), "-m", "sidecar"]  # noqa: PTH100 - resolving leads out of a venv
