"""The table of operations is complete, true and in the documentation."""

import re
from pathlib import Path

import pytest

from client_plugins.mcp_bridge.connection import Connection
from client_plugins.mcp_bridge.desk import Desk
from client_plugins.mcp_bridge.tools import all_tools
from sidecar.cli.operations import LOCAL_COMMANDS, WAYS, command_defaults, methods, operations_table, tool_defaults
from sidecar.client import Sidecar
from sidecar.config import SETTINGS

DOCUMENTATION = Path(__file__).parents[2] / "docs"
# Methods that a client reaches otherwise than by one call of the same name.
OTHER_NAMES = {"StreamEvidence"}


def test_documentation_has_the_table() -> None:
    """`python -m sidecar.cli.operations` prints the table; put it into docs/operations.md."""
    assert operations_table() in (DOCUMENTATION / "operations.md").read_text("utf-8")


def test_every_method_is_in_the_table_once() -> None:
    """What is written down belongs to the contract, and nothing of the contract is missing."""
    names = [method for _, method in methods()]
    assert len(names) == len(set(names))
    assert set(WAYS) <= set(names)
    table = operations_table()
    for service, method in methods():
        assert table.count(f"| `{service}.{method}` |") == 1


def test_every_tool_is_an_operation() -> None:
    """A tool that is nobody's operation would be missing from the documentation."""
    named = [ways.tool for ways in WAYS.values() if ways.tool]
    assert sorted(named) == sorted(tool.name for tool in all_tools(Desk(Connection())))


def test_every_command_is_an_operation_or_local() -> None:
    """A new command must be put into the table or said to be local."""
    named = [ways.command.split()[0] for ways in WAYS.values() if ways.command]
    assert set(named) | LOCAL_COMMANDS == set(command_defaults())
    assert not set(named) & LOCAL_COMMANDS


def test_client_has_every_method() -> None:
    """Whoever writes a program finds each operation under the name of its method."""
    missing = [
        method
        for _, method in methods()
        if method not in OTHER_NAMES and not hasattr(Sidecar, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method).lower())
    ]
    assert not missing


@pytest.mark.parametrize("defaults", [tool_defaults, command_defaults], ids=["tools", "commands"])
def test_settings_that_decide_exist(defaults: object) -> None:
    """A default that is left to a setting names one that there is, with its value."""
    assert callable(defaults)
    known = {setting.name: setting.default for setting in SETTINGS}
    shown = [value for options in defaults().values() for value in options.values()]
    named = [found for value in shown if (found := re.fullmatch(r"(\S+) \(`(\w+)`\)", value))]
    assert named
    assert all(found[1].strip("`") == f"{known[found[2]]}".removesuffix(".0") for found in named)


def test_bridge_document_names_every_tool() -> None:
    """A user decides by it whether to offer all of them."""
    text = (DOCUMENTATION / "clients" / "mcp.md").read_text("utf-8")
    assert not [tool.name for tool in all_tools(Desk(Connection())) if f"`{tool.name}`" not in text]
