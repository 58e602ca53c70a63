"""`sidecar serve`: reads flags and settings, builds the application, runs it. Has one flag for each setting."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from sidecar.client.endpoint import Endpoint
from sidecar.config import SETTINGS, Settings, load_settings
from sidecar.domain.setting import Value
from sidecar.errors import SidecarError
from sidecar.server.application import Run
from sidecar.server.exit_codes import exit_code_of
from sidecar.server.lifecycle import serve


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
        description="Run the sidecar in the foreground. Clients start one by themselves; this is for services.",
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
