"""Gives agents the memory tools over MCP (stdio). A thin client of the sidecar: stores, ranks and judges nothing."""
