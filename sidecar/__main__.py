"""Starts the command, or for `serve` the server. What a client starts must not wait for the command line's imports."""

import sys


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        from sidecar.server import command  # noqa: PLC0415

        sys.exit(command.main(arguments[1:]))
    if arguments == ["--version"]:
        from sidecar import __version__  # noqa: PLC0415

        sys.stdout.write(f"memory-sidecar {__version__}\n")
        sys.exit(0)
    from sidecar.cli import app  # noqa: PLC0415

    sys.exit(app.main())


if __name__ == "__main__":
    main()
