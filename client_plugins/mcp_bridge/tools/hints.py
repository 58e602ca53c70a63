"""What tools do to the world, as clients are told: they allow, ask or refuse by it."""

from typing import Final

from mcp.types import ToolAnnotations

READS: Final = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Changes nothing. Without this hint, Codex refuses a tool where it may not ask."""

ADDS_ONCE: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
"""Adds something; the same again adds nothing more."""

ADDS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
"""Adds something each time."""

TAKES_AWAY: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)
"""Takes something out of use."""
