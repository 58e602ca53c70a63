"""Codex: where its transcripts (rollouts) lie and what their lines say, and how it is connected."""

from client_plugins.codex.plugin import CodexPlugin

PLUGIN = CodexPlugin()
"""What the entry point `memory_sidecar.clients` names."""
