"""The command `dashboard`: has the sidecar open it, and leads a browser there."""

import os
import sys
import webbrowser
from typing import Annotated

import typer

from sidecar.api.plain import plain
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption


def dashboard(
    context: typer.Context,
    *,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the dashboard in a browser: what is remembered, what helped, and what wants a decision.

    The sidecar serves it to this machine alone, and stops when nobody uses it any more. The link lets one browser in,
    once, within two minutes.
    """
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        answer = sidecar.open_dashboard()
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    is_opened = not no_browser and _has_screen() and webbrowser.open(answer.url)
    call.output.raw(answer.url)
    minutes = answer.idle_stop.ToTimedelta().total_seconds() / 60
    opened = "Opened in your browser. " if is_opened else ""
    call.output.note(
        f"{opened}The link works once, within two minutes. The dashboard closes after {minutes:g} minutes without use; "
        "`sidecar dashboard` opens it again."
    )


def _has_screen() -> bool:
    """Tell whether a browser would show in a window; a text browser would take over the terminal instead."""
    return sys.platform in {"win32", "darwin"} or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
