"""Cursor: how it is connected, where its transcripts lie and what their lines say, which is never what was shown."""

from client_plugins.cursor.plugin import CursorPlugin

PLUGIN = CursorPlugin()
"""What the entry point `memory_sidecar.clients` names."""
