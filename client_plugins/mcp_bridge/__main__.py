"""Starts the bridge: takes the wire first, so that nothing that is imported later can write on it."""

import gc
import os
import sys

from client_plugins.kit.stdio_wire import Wire


def main(*, is_offering_all: bool = False) -> int:
    """Serve until the client closes stdin or is gone. Does not return when it served: whatever still runs is ended.

    Args:
        is_offering_all: Whether every operation is a tool, rather than those that every agent needs.
    """
    if _is_terminal():
        sys.stderr.write(_told_to_a_person())
        sys.stderr.flush()
    wire = Wire.take()
    # The SDK makes some 100,000 objects that stay; looking for garbage among them takes a fifth of the start.
    gc.disable()
    from client_plugins.mcp_bridge.bridge import serve  # noqa: PLC0415 - only now that stdout is safe

    gc.freeze()
    gc.enable()
    serve(wire, is_offering_all=is_offering_all)
    sys.stderr.flush()
    # A thread may still wait for an answer of the sidecar, which nobody is there to read any more.
    os._exit(0)


def _is_terminal() -> bool:
    # A client that closed stdin leaves none to ask.
    return sys.stdin is not None and sys.stdin.isatty()


def _told_to_a_person() -> str:
    program = os.path.abspath(sys.argv[0])  # noqa: PTH100 - pathlib need not be loaded for it
    command = f"{sys.executable} -m sidecar" if program.endswith(".py") else program
    return (
        "This is for agents, which speak JSON here; Ctrl-D ends it. To give it to Claude Code: "
        f"claude mcp add --scope user memory -- {command} mcp\n"
    )


if __name__ == "__main__":
    sys.exit(main())
