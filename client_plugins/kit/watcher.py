"""The watcher process: `python -m client_plugins.kit.watcher --home <data folder>`. A child of the sidecar.

It ends when its stdin closes, which happens when the sidecar ends in whatever way, and reconnects when the connection
is lost but the sidecar is not. It keeps no state: killed at any time, the next one goes on where the sidecar's cursors
stand.

Exit codes: 0 told to end, or all read (`--once`); 2 wrong arguments; 3 the sidecar could not be reached (`--once`);
4 the sidecar refused us; 1 a fault of ours.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from client_plugins.kit.log_lines import log_to_stderr
from client_plugins.kit.plugin import ClientPlugin, select_plugins
from client_plugins.kit.sink import Connect, EvidenceSink, SidecarSink
from client_plugins.kit.watch import Watch, WatchSettings
from sidecar.client import AsyncSidecar, resolve_home
from sidecar.client.parent import call_when_parent_ends
from sidecar.errors import (
    InvalidInputError,
    ProtocolMismatchError,
    SidecarError,
    UnauthenticatedError,
    UntrustedPathError,
)

EXIT_DONE: Final = 0
EXIT_USAGE: Final = 2
EXIT_UNREACHABLE: Final = 3
EXIT_REFUSED: Final = 4

_FIRST_WAIT_S: Final = 0.5
_LAST_WAIT_S: Final = 30.0

log = logging.getLogger(__name__)


def connect_to(home: Path | None) -> Connect:
    """Return what connects to the sidecar of a data folder; it starts none, since that one is our parent."""

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[EvidenceSink]:
        async with await AsyncSidecar.connect(home, start=False) as sidecar:
            sink = SidecarSink(sidecar)
            try:
                yield sink
            finally:
                await sink.close()

    return connect


async def watch_for_ever(plugins: Sequence[ClientPlugin], connect: Connect, settings: WatchSettings) -> int:
    """Watch, and connect again whenever the sidecar is lost; return the exit code if it refuses us."""
    wait_s = _FIRST_WAIT_S
    while True:
        begun = time.monotonic()
        try:
            async with connect() as sink:
                log.info("watching", extra={"clients": [plugin.name for plugin in plugins]})
                await Watch(plugins, sink, environment=os.environ, settings=settings).run()
        except (UnauthenticatedError, ProtocolMismatchError, UntrustedPathError) as error:
            log.error("the sidecar refused the watcher", extra={"reason": error.reason})  # noqa: TRY400 - no trace
            return EXIT_REFUSED
        except SidecarError as error:
            log.warning("sidecar lost; connecting again", extra={"reason": error.reason, "wait_s": wait_s})
        if time.monotonic() - begun > _LAST_WAIT_S:
            wait_s = _FIRST_WAIT_S
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, _LAST_WAIT_S)


async def read_once(plugins: Sequence[ClientPlugin], connect: Connect, settings: WatchSettings) -> int:
    """Read everything there is; return the exit code."""
    try:
        async with connect() as sink:
            await Watch(plugins, sink, environment=os.environ, settings=settings).run_once()
    except SidecarError as error:
        log.error("the sidecar cannot be used", extra={"reason": error.reason})  # noqa: TRY400 - no trace
        return EXIT_UNREACHABLE
    return EXIT_DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the watcher; return its exit code."""
    options = _parse(arguments)
    log_to_stderr()
    try:
        plugins = select_plugins(options.clients)
    except InvalidInputError as error:
        log.error("unknown client", extra={"reason": error.message})  # noqa: TRY400 - nothing to trace
        return EXIT_USAGE
    settings = WatchSettings(
        max_age_days=options.max_age_days,
        scan_interval_s=options.scan_interval_s,
        data_folder=resolve_home(options.home),
    )
    connect = connect_to(options.home)
    run = read_once if options.once else _until_parent_ends
    try:
        return asyncio.run(run(plugins, connect, settings))
    except KeyboardInterrupt:
        return EXIT_DONE


async def _until_parent_ends(plugins: Sequence[ClientPlugin], connect: Connect, settings: WatchSettings) -> int:
    loop = asyncio.get_running_loop()
    watching = asyncio.create_task(watch_for_ever(plugins, connect, settings))

    def stop_watching() -> None:
        loop.call_soon_threadsafe(watching.cancel)

    # Started by hand or by a service manager, stdin is a terminal or nothing, and its end means nothing.
    if _is_pipe(sys.stdin.fileno()):
        call_when_parent_ends(stop_watching)
    try:
        return await watching
    except asyncio.CancelledError:
        return EXIT_DONE


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m client_plugins.kit.watcher", description=__doc__.split("\n")[0])
    parser.add_argument("--home", type=Path, help="data folder; else SIDECAR_HOME, else the user's own")
    parser.add_argument("--clients", nargs="*", default=[], help="only these clients, such as claude-code")
    parser.add_argument("--once", action="store_true", help="read everything there is, then end")
    parser.add_argument("--max-age-days", type=int, default=30, help="leave older transcripts unread (30)")
    parser.add_argument("--scan-interval-s", type=float, default=30.0, help="between scans, seconds (30)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
