"""Starts the commands, or for `serve` the server. What a client starts must not wait for the commands' imports."""

import sys
from pathlib import Path

from sidecar.cli import entry


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        sys.exit(_serve(arguments[1:]))
    sys.exit(entry.run(arguments, serve=_serve_home))


def _serve_home(home: Path | None) -> int:
    return _serve([] if home is None else ["--home", str(home)])


def _serve(arguments: list[str]) -> int:
    from sidecar.server import command  # noqa: PLC0415

    return command.main(arguments)


if __name__ == "__main__":
    main()
