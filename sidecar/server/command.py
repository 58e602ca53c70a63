"""`sidecar serve`: reads flags and settings, builds the application, runs it. Has one flag for each setting."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sidecar.client.endpoint import Endpoint
from sidecar.client.isolation import OWN_PROCESS
from sidecar.config import SETTINGS, Settings, load_settings
from sidecar.domain.setting import Value
from sidecar.errors import SidecarError
from sidecar.server.application import Run
from sidecar.server.exit_codes import exit_code_of
from sidecar.server.lifecycle import serve

_EPILOG: Final = """\
examples:
  sidecar serve --log-level debug
      in the foreground, until Ctrl-C
  sidecar serve --home /srv/memories --idle-exit-s 3600
      for another data folder, until nobody called for an hour

exit codes:
  0  stopped in order
  1  a fault; the log has it
  2  a flag or setting is wrong
  3  another sidecar holds the data folder
  4  the data folder is not ours alone
  5  the disk or the database refuses

see also:
  sidecar start, sidecar status; docs/configuration.md has every setting
"""


def main(arguments: Sequence[str]) -> int:
    """Serve until asked to stop, and return what the process should end with.

    Args:
        arguments: What stands behind `sidecar serve`.
    """
    try:
        settings = _settings(arguments)
    except SidecarError as error:
        sys.stderr.write(f"sidecar: {error.message}\n")
        return exit_code_of(error)
    os.environ[OWN_PROCESS] = "1"
    return asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    # Engines and models are imported here, so that a wrong flag is told of at once.
    from sidecar.server.compose import SidecarApplication  # noqa: PLC0415

    run = Run.new()
    return await serve(settings, SidecarApplication(settings, run), run=run, ready=tell_ready)


def tell_ready(endpoint: Endpoint) -> None:
    """Tell whoever started it by hand that it works; a service manager or client finds out by itself."""
    if sys.stderr.isatty():
        sys.stderr.write(f"sidecar: ready, process {endpoint.holder.pid}; Ctrl-C stops it\n")
        sys.stderr.flush()


def _settings(arguments: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser(
        prog="sidecar serve",
        usage="sidecar serve [--home HOME] [--SETTING VALUE]...",
        description="Run the sidecar in the foreground. Clients start one by themselves; this is for services.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--home", type=Path, help="the data folder; without it SIDECAR_HOME, else the user's own")
    for setting in SETTINGS:
        # argparse formats its helps, so that a percent sign must stand twice.
        told = f"{setting.description} Default: {setting.default!r}.".replace("%", "%%")
        parser.add_argument(setting.flag, metavar="VALUE", help=told)
    given = vars(parser.parse_args(arguments))
    home: Path | None = given.pop("home")
    flags: dict[str, Value] = {name: value for name, value in given.items() if value is not None}
    return load_settings(home=home, flags=flags)
