"""The tools, one module each. `core_tools` is the list that an agent gets, in this order."""

from mcp.server.mcpserver.tools import Tool

from client_plugins.mcp_bridge.desk import Desk
from client_plugins.mcp_bridge.tools.forget import forget_tool
from client_plugins.mcp_bridge.tools.recall import recall_tool
from client_plugins.mcp_bridge.tools.remember import remember_tool


def core_tools(desk: Desk) -> list[Tool]:
    """Return the tools that every agent gets."""
    return [recall_tool(desk), remember_tool(desk), forget_tool(desk)]
