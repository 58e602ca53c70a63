"""The table of operations: each RPC with its MCP tool, its command and their defaults, made from the code.

`python -m sidecar.cli.operations` prints it, for docs/operations.md. Only which belongs to which is written down here.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import typer
from typer._click.core import Command, Context
from typer.core import TyperGroup, TyperOption

from client_plugins.mcp_bridge.connection import Connection
from client_plugins.mcp_bridge.desk import Desk
from client_plugins.mcp_bridge.tools import all_tools, core_tools
from sidecar.api.v1 import (
    activity_service_pb2,
    admin_service_pb2,
    evidence_service_pb2,
    graph_service_pb2,
    insights_service_pb2,
    maintenance_service_pb2,
    memory_service_pb2,
    validation_service_pb2,
)
from sidecar.cli.app import build
from sidecar.config import SETTINGS

_CONTRACT: Final = (
    memory_service_pb2,
    graph_service_pb2,
    validation_service_pb2,
    activity_service_pb2,
    maintenance_service_pb2,
    insights_service_pb2,
    evidence_service_pb2,
    admin_service_pb2,
)
# Options of every command, and such as only say how a command behaves towards a person.
_EVERYWHERE: Final = frozenset({"home", "as_json", "help", "yes"})
_NOTHING: Final = "-"
# How a tool's or an option's description names the setting that decides where nothing is said.
_SETTING: Final = re.compile(r"setting `?(\w+)`?")

_BY_NAME: Final = {setting.name: setting.default for setting in SETTINGS}

Defaults: TypeAlias = Mapping[str, Mapping[str, str]]
"""How each default is shown, by tool or command and its argument or option; those that say nothing are left out."""


@dataclass(frozen=True)
class Ways:
    """How an operation is reached besides its RPC. Empty means: not at all."""

    tool: str = ""
    command: str = ""


WAYS: Final[Mapping[str, Ways]] = {
    "Remember": Ways("remember", "remember"),
    "Recall": Ways("recall", "recall"),
    "GetMemory": Ways("get", "get"),
    "ListMemories": Ways("list", "list"),
    "CountMemories": Ways("count", "count"),
    "ForgetMemories": Ways("forget", "forget"),
    "RestoreMemory": Ways("restore", "restore"),
    "BuildContext": Ways("build_context", "context"),
    "Relate": Ways("relate", "relate"),
    "DeleteEdges": Ways("delete_edges", "unrelate"),
    "InspectGraph": Ways("inspect_graph", "graph"),
    "ApplyMemory": Ways("apply", "apply"),
    "RecordOutcome": Ways("record_outcome", "outcome"),
    "ValidateMemory": Ways("validate", "validate"),
    "ListValidationEvents": Ways("history", "history"),
    "ChallengeMemory": Ways("challenge", "challenge"),
    "ListDisputes": Ways("list_disputes", "disputes"),
    "ResolveDispute": Ways("resolve_dispute", "resolve"),
    "PromoteMemory": Ways("promote", "promote"),
    "DemoteMemory": Ways("demote", "demote"),
    "DetectContradictions": Ways("detect_contradictions", "contradictions"),
    "CheckSupersedes": Ways("check_supersedes", "supersedes"),
    "AddFileActivity": Ways("add_file_activity", "activity add"),
    "ListRecentFiles": Ways("list_recent_files", "files"),
    "AnalyzeHealth": Ways("analyze_health", "health"),
    "ExportMemories": Ways(command="export"),
    "ImportMemories": Ways(command="import"),
    "BackUp": Ways(command="backup"),
    "CheckIntegrity": Ways(command="doctor --deep"),
    "ExportMetrics": Ways("export_metrics", "insights"),
    "ExplainMemory": Ways(command="why"),
    "ListReviewItems": Ways(command="review"),
    "RunHygiene": Ways(command="hygiene"),
    "GetJudgeQueue": Ways(command="judge"),
    "RetryJudgeJobs": Ways(command="judge --retry"),
    "ReplayRecalls": Ways(command="replay"),
    "StreamEvidence": Ways(command="ingest"),
    "ListSessions": Ways(command="sessions"),
    "GetCoverage": Ways(command="status"),
    "GetStatus": Ways("status", "status"),
    "Shutdown": Ways(command="stop"),
    "RetryParked": Ways(command="doctor --retry-parked"),
    "OpenDashboard": Ways(command="dashboard"),
}
"""By method. What is missing here is for programs only."""

LOCAL_COMMANDS: Final = frozenset(
    {
        *("start", "restart", "serve", "mcp", "lsp", "hook", "restore-backup", "demo", "bench", "judge-eval"),
        *("connect", "disconnect", "connections"),
    }
)
"""Commands that are no operation of a running sidecar."""


def methods() -> Iterator[tuple[str, str]]:
    """Yield (service, method) for every RPC of the contract."""
    for module in _CONTRACT:
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield service.name, method.name


def tool_defaults() -> Defaults:
    """Return the defaults of every MCP tool's arguments."""
    return {
        tool.name: _told(
            (name, schema.get("default"), schema.get("description", ""))
            for name, schema in tool.parameters.get("properties", {}).items()
        )
        for tool in all_tools(Desk(Connection()))
    }


def command_defaults() -> Defaults:
    """Return the defaults of every command's options."""
    group = typer.main.get_command(build(lambda _arguments: 0))
    found: dict[str, Mapping[str, str]] = {}
    with group.make_context("sidecar", [], resilient_parsing=True) as context:
        for name, command in _commands(group, context):
            found[name] = _told(
                (max(option.opts, key=len), option.default, str(option.show_default))
                for option in command.params
                if isinstance(option, TyperOption) and option.name not in _EVERYWHERE
            )
    return found


def _commands(group: Command, context: Context) -> Iterator[tuple[str, Command]]:
    """Yield every command with its name, those of a group behind the group's."""
    assert isinstance(group, TyperGroup)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from ((f"{name} {below}", each) for below, each in _commands(command, context))
        elif command is not None:
            yield name, command


def operations_table() -> str:
    """Return the table of docs/operations.md."""
    tools, commands = tool_defaults(), command_defaults()
    core = {tool.name for tool in core_tools(Desk(Connection()))}
    lines = ["| RPC | MCP tool | its defaults | command | its defaults |", "|---|---|---|---|---|"]
    for service, method in methods():
        ways = WAYS.get(method, Ways())
        tool = f"`{ways.tool}`" + (" (core)" if ways.tool in core else "") if ways.tool else _NOTHING
        cells = (
            f"`{service}.{method}`",
            tool,
            _shown(tools.get(ways.tool, {})),
            f"`sidecar {ways.command}`" if ways.command else _NOTHING,
            _shown(commands.get(ways.command, {})),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _told(defaults: Iterable[tuple[str, object, str]]) -> dict[str, str]:
    """Return how defaults are shown that say something: neither empty, nor off, nor nothing.

    Args:
        defaults: Name, value, and the text that may name a setting.
    """
    told = {}
    for name, value, text in defaults:
        setting = _SETTING.search(text)
        if value is None and setting:
            told[name] = f"{_value(_BY_NAME[setting[1]])} (`{setting[1]}`)"
        elif isinstance(value, bool | int | float | str | Enum) and value:
            told[name] = _value(value)
    return told


def _shown(defaults: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {value}" for name, value in defaults.items()) or _NOTHING


def _value(value: object) -> str:
    content = value.value if isinstance(value, Enum) else value
    if isinstance(content, bool):
        return str(content).lower()
    return f"{content:g}" if isinstance(content, int | float) else f"`{content}`"


def _main(arguments: Iterable[str]) -> int:
    if list(arguments):
        sys.stderr.write("usage: python -m sidecar.cli.operations\n")
        return 2
    sys.stdout.write(operations_table())
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
