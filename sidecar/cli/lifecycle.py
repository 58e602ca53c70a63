"""Commands that run the sidecar: serve, start, stop, restart."""

from enum import StrEnum
from typing import Annotated

import typer

from sidecar.api.plain import JsonValue
from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.invocation import Globals, HomeOption, Invocation, JsonOption
from sidecar.errors import SidecarNotRunningError


def serve(context: typer.Context) -> None:
    """Run the sidecar in the foreground, until Ctrl-C or `sidecar stop`. Clients start one by themselves."""
    said = context.find_object(Globals)
    assert said is not None
    home = ["--home", str(said.home)] if said.home is not None else []
    raise typer.Exit(said.serve([*home, *context.args]))


def start(context: typer.Context, *, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Start the sidecar in the background, unless it runs already."""
    from sidecar.client import DataFolder, find_or_start, find_running  # noqa: PLC0415

    call = Invocation.of(context, home, is_json=as_json)
    folder = DataFolder.at(call.home)
    with call.output.waiting("Starting the sidecar …"):
        try:
            before = find_running(folder).holder.instance_id
        except SidecarNotRunningError:
            before = ""
        holder = find_or_start(folder).holder
    is_new = holder.instance_id != before
    if call.output.is_json:
        call.output.document(_running(holder.pid, str(folder.home)) | {"started": is_new})
    else:
        how = "Started" if is_new else "Running already"
        call.output.line(f"{how}: process {holder.pid}, data in {folder.home}")


def stop(
    context: typer.Context,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="End it even if it does not answer; what it acknowledged is safe.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the sidecar finish what it accepted, and stop it."""
    from sidecar.client import stop as stop_sidecar  # noqa: PLC0415

    call = Invocation.of(context, home, is_json=as_json)
    with call.output.waiting("Waiting for the sidecar to finish …"):
        stop_sidecar(call.home, force=force)
    if call.output.is_json:
        call.output.document({"stopped": True})
    else:
        call.output.line("Stopped.")


def restart(context: typer.Context, *, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Stop the sidecar, even one that does not answer, and start a new one."""
    from sidecar.client import resolve_home  # noqa: PLC0415
    from sidecar.client import restart as restart_sidecar  # noqa: PLC0415

    call = Invocation.of(context, home, is_json=as_json)
    with call.output.waiting("Restarting the sidecar …"):
        endpoint = restart_sidecar(call.home)
    if call.output.is_json:
        call.output.document(_running(endpoint.holder.pid, str(resolve_home(call.home))))
    else:
        call.output.line(f"Restarted: process {endpoint.holder.pid}")


class ToolSet(StrEnum):
    """Which tools an agent gets."""

    CORE = "core"
    ALL = "all"


def mcp(
    context: typer.Context,
    *,
    tools: Annotated[
        ToolSet, typer.Option("--tools", help="`core` are those every agent needs; `all` is every operation.")
    ] = ToolSet.CORE,
    home: HomeOption = None,
) -> None:
    """Serve the memory tools to an agent over stdin and stdout (MCP). The agent's client starts it."""
    # Normally `sidecar.cli.entry` starts the bridge before this module is even imported.
    from sidecar.cli.entry import run_mcp_bridge  # noqa: PLC0415

    call = Invocation.of(context, home, is_json=False)
    raise typer.Exit(ExitCode(run_mcp_bridge(call.home, is_offering_all=tools is ToolSet.ALL)))


def lsp(
    context: typer.Context,
    *,
    stdio: Annotated[  # noqa: ARG001 - there is no other way, and nothing to choose
        bool, typer.Option("--stdio", help="As without it; many editors add it.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Show memories in an editor over stdin and stdout (LSP). The editor starts it, beside its language servers."""
    from sidecar.cli.entry import run_lsp_bridge  # noqa: PLC0415 - as for `mcp`

    raise typer.Exit(ExitCode(run_lsp_bridge(Invocation.of(context, home, is_json=False).home)))


def hook(
    context: typer.Context,
    *,
    client: Annotated[str, typer.Argument(help="Whose hook: claude-code, codex or cursor.", metavar="CLIENT")],
    home: HomeOption = None,
) -> None:
    """Do what a hook of a client does, with its payload on stdin. The client's settings name a faster command."""
    from sidecar.cli.entry import run_hook  # noqa: PLC0415 - as for `mcp`

    run_hook(client, Invocation.of(context, home, is_json=False).home)


def _running(pid: int, home: str) -> dict[str, JsonValue]:
    return {"pid": pid, "data_folder": home}
