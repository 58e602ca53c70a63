"""Where every command begins. Imports next to nothing: the bridge must answer its client within a second."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

_HOME_OPTION: Final = "--home"


def run(arguments: Sequence[str], *, serve: Callable[[Sequence[str]], int]) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: What stands behind the name of the program.
        serve: Runs the sidecar in this process; handed in, since the commands must not know the server.
    """
    words, home = _without_home(arguments)
    if words == ["mcp"]:
        return run_mcp_bridge(home)
    from sidecar.cli.app import run_command  # noqa: PLC0415 - typer and rich are not for the bridge

    return run_command(arguments, serve=serve)


def run_mcp_bridge(home: Path | None) -> int:
    """Serve MCP over stdin and stdout until the client closes stdin.

    Args:
        home: The data folder; without one SIDECAR_HOME, else the user's own.
    """
    from client_plugins.mcp_bridge.__main__ import main  # noqa: PLC0415

    if home is not None:
        os.environ["SIDECAR_HOME"] = str(home)
    return main()


def _without_home(arguments: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return the arguments without the data folder, and that folder if one is named."""
    words = list(arguments)
    for position, word in enumerate(words):
        name, separator, value = word.partition("=")
        if name == _HOME_OPTION and separator:
            return [*words[:position], *words[position + 1 :]], Path(value)
        if word == _HOME_OPTION and position + 1 < len(words):
            return [*words[:position], *words[position + 2 :]], Path(words[position + 1])
    return words, None
