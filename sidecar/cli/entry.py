"""Where every command begins. Imports next to nothing: the bridge must answer its client within a second."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

_HOME_OPTION: Final = "--home"
_TOOLS_OPTION: Final = "--tools"
_ALL: Final = "all"
# Many editors add it; there is no other way anyway.
_STDIO_OPTION: Final = "--stdio"
_HOOK_WORDS: Final = 2
_TOOL_SETS: Final = (None, "core", _ALL)


def run(arguments: Sequence[str], *, serve: Callable[[Sequence[str]], int]) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: What stands behind the name of the program.
        serve: Runs the sidecar in this process; handed in, since the commands must not know the server.
    """
    words, home = _without_option(arguments, _HOME_OPTION)
    words, tools = _without_option(words, _TOOLS_OPTION)
    if words[:1] == ["hook"] and len(words) == _HOOK_WORDS and not words[1].startswith("-"):
        run_hook(words[1], Path(home) if home else None)
    if words[:1] == ["lsp"] and set(words[1:]) <= {_STDIO_OPTION} and tools is None:
        return run_lsp_bridge(Path(home) if home else None)
    if words == ["mcp"] and tools in _TOOL_SETS:
        return run_mcp_bridge(Path(home) if home else None, is_offering_all=tools == _ALL)
    from sidecar.cli.app import run_command  # noqa: PLC0415 - typer and rich are not for the bridge

    return run_command(arguments, serve=serve)


def run_mcp_bridge(home: Path | None, *, is_offering_all: bool = False) -> int:
    """Serve MCP over stdin and stdout until the client closes stdin.

    Args:
        home: The data folder; without one SIDECAR_HOME, else the user's own.
        is_offering_all: Whether every operation is a tool, rather than those that every agent needs.
    """
    from client_plugins.mcp_bridge.__main__ import main  # noqa: PLC0415

    if home is not None:
        os.environ["SIDECAR_HOME"] = str(home)
    return main(is_offering_all=is_offering_all)


def run_lsp_bridge(home: Path | None) -> int:
    """Serve LSP over stdin and stdout until the editor ends it.

    Args:
        home: The data folder; without one SIDECAR_HOME, else the user's own.
    """
    from client_plugins.lsp_bridge.__main__ import main  # noqa: PLC0415

    if home is not None:
        os.environ["SIDECAR_HOME"] = str(home)
    return main()


def run_hook(client: str, home: Path | None) -> NoReturn:
    """Do what a hook of a client does, and end the process with 0; slower than the command that setup registers.

    Args:
        client: Such as `claude-code`.
        home: The data folder; without one SIDECAR_HOME, else the user's own.
    """
    from client_plugins.hooks.run import main  # noqa: PLC0415
    from sidecar.client.endpoint import resolve_home  # noqa: PLC0415 - imports gRPC, which only this way costs

    try:
        folder = resolve_home(home)
    except (OSError, RuntimeError):
        # No home is known; whatever else a hook meets, `main` ends with 0 as well.
        sys.exit(0)
    main((client, "--home", str(folder)))


def _without_option(arguments: Sequence[str], option: str) -> tuple[list[str], str | None]:
    """Return the arguments without an option, and its value if it is there."""
    words = list(arguments)
    for position, word in enumerate(words):
        name, separator, value = word.partition("=")
        if name == option and separator:
            return [*words[:position], *words[position + 1 :]], value
        if word == option and position + 1 < len(words):
            return [*words[:position], *words[position + 2 :]], words[position + 1]
    return words, None
