"""Starts the command, or for `serve` the server. What a client starts must not wait for the command line's imports."""

import sys
from collections.abc import Sequence


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        sys.exit(_serve(arguments[1:]))
    if arguments == ["--version"]:
        from sidecar import __version__  # noqa: PLC0415

        sys.stdout.write(f"memory-sidecar {__version__}\n")
        sys.exit(0)
    from sidecar.cli import entry  # noqa: PLC0415

    sys.exit(entry.run(arguments, serve=_serve))


def _serve(arguments: Sequence[str]) -> int:
    """Run the sidecar in this process; the commands themselves do not know the server."""
    from sidecar.server import command  # noqa: PLC0415

    return command.main(arguments)


if __name__ == "__main__":
    main()
