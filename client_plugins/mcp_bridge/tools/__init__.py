"""The tools, those of every session one module each. An agent gets them in this order."""

from mcp.server.mcpserver.tools import Tool

from client_plugins.mcp_bridge.desk import Desk
from client_plugins.mcp_bridge.tools.build_context import build_context_tool
from client_plugins.mcp_bridge.tools.challenge import challenge_tool
from client_plugins.mcp_bridge.tools.forget import forget_tool
from client_plugins.mcp_bridge.tools.recall import recall_tool
from client_plugins.mcp_bridge.tools.record_outcome import record_outcome_tool
from client_plugins.mcp_bridge.tools.relate import relate_tool
from client_plugins.mcp_bridge.tools.remember import remember_tool


def core_tools(desk: Desk) -> list[Tool]:
    """Return the tools that every agent gets."""
    return [
        recall_tool(desk),
        remember_tool(desk),
        build_context_tool(desk),
        challenge_tool(desk),
        record_outcome_tool(desk),
        relate_tool(desk),
        forget_tool(desk),
    ]


def all_tools(desk: Desk) -> list[Tool]:
    """Return a tool for every operation that makes sense for an agent; for those who ask for it."""
    # Most agents get the core alone, and their client waits for the list.
    from client_plugins.mcp_bridge.tools.activity import activity_tools  # noqa: PLC0415
    from client_plugins.mcp_bridge.tools.browsing import browsing_tools  # noqa: PLC0415
    from client_plugins.mcp_bridge.tools.disputes import dispute_tools  # noqa: PLC0415
    from client_plugins.mcp_bridge.tools.graph import graph_tools  # noqa: PLC0415
    from client_plugins.mcp_bridge.tools.upkeep import upkeep_tools  # noqa: PLC0415
    from client_plugins.mcp_bridge.tools.validation import validation_tools  # noqa: PLC0415

    return [
        *core_tools(desk),
        *browsing_tools(desk),
        *graph_tools(desk),
        *validation_tools(desk),
        *dispute_tools(desk),
        *activity_tools(desk),
        *upkeep_tools(desk),
    ]
