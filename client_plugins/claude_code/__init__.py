"""Claude Code: where its transcripts lie and what their lines say. Reads what the client writes anyway."""

from client_plugins.claude_code.plugin import ClaudeCodePlugin

PLUGIN = ClaudeCodePlugin()
"""What the entry point `memory_sidecar.clients` names."""
