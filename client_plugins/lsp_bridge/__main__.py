"""Starts the language server: takes the wire first, so that nothing that is imported later can write on it."""

import gc
import os
import sys

from client_plugins.kit.stdio_wire import Wire


def main() -> int:
    """Serve until the editor says `exit`, closes stdin or is gone. Does not return when it served."""
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            "This is for editors, which speak LSP here; Ctrl-D ends it. docs/editors says how each starts it.\n"
        )
        sys.stderr.flush()
    wire = Wire.take()
    # The classes of LSP make many objects that stay; looking for garbage among them takes a part of the start.
    gc.disable()
    from client_plugins.lsp_bridge.bridge import serve  # noqa: PLC0415 - only now that stdout is safe

    gc.freeze()
    gc.enable()
    exit_code = serve(wire)
    sys.stderr.flush()
    # A thread may still wait for an answer of the sidecar, which nobody is there to read any more.
    os._exit(exit_code)


if __name__ == "__main__":
    sys.exit(main())
