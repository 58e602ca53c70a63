"""Connects Claude Code: our MCP server and our hooks in its files. What it says of the files was seen with 2.1.197.

All of them are strict JSON to it: one comment, and it takes `.claude.json` for damaged, and ignores the others.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from client_plugins.claude_code.locate import CONFIG_FOLDER_VARIABLE
from client_plugins.kit.client_setup import FileEdit, Scope, SetupContext
from client_plugins.kit.config_edit.editors import JsonEditor
from client_plugins.kit.setup_parts import (
    PLUGIN,
    PLUGIN_NOTE,
    configured_folder,
    find_json_server,
    grouped_hooks,
    is_on_path,
    is_switched_on,
    json_server,
    json_setting,
)

_FOLDER: Final = ".claude"
_STATE: Final = ".claude.json"
_SETTINGS: Final = "settings.json"
_NO_AUTO_MEMORY: Final = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"


class ClaudeCodeSetup:
    """See `ClientSetup`."""

    name = "claude-code"
    title = "Claude Code"

    def is_present(self, context: SetupContext) -> bool:
        """See `ClientSetup.is_present`."""
        folder = configured_folder(context, CONFIG_FOLDER_VARIABLE, _FOLDER)
        return folder.exists() or _state_file(context).exists() or is_on_path("claude", context)

    def edits(self, context: SetupContext) -> Sequence[FileEdit]:
        """See `ClientSetup.edits`."""
        is_user = context.scope is Scope.USER
        servers = FileEdit(
            path=_state_file(context) if is_user else context.project / ".mcp.json",
            what="the MCP server",
            editor=JsonEditor([json_server(context.server)]),
            is_private=is_user,
            find_server=find_json_server(allows_comments=False),
        )
        hooks = FileEdit(
            path=_settings_folder(context) / _SETTINGS,
            what="the hooks",
            editor=JsonEditor([grouped_hooks(self.name, context)]),
            is_private=is_user,
        )
        return [servers, hooks] if context.has_hooks else [servers]

    def notes(self, context: SetupContext) -> Sequence[str]:
        """See `ClientSetup.notes`."""
        notes = ["Sessions that are open already see it after a restart of Claude Code."]
        if context.scope is Scope.PROJECT:
            notes.append("Claude Code asks once whether the project's MCP server may be used; `claude mcp list` tells.")
        if context.environment.get(CONFIG_FOLDER_VARIABLE):
            notes.append(
                f"{CONFIG_FOLDER_VARIABLE} is set: name that folder as `claude_config_dir` in "
                f"{context.data_home / 'config.toml'} too, or else its transcripts may not be read."
            )
        settings = configured_folder(context, CONFIG_FOLDER_VARIABLE, _FOLDER) / _SETTINGS
        if json_setting(settings, "enabledPlugins", PLUGIN) is True:
            notes.append(PLUGIN_NOTE)
        if self._has_auto_memory(context):
            notes.append(
                "Claude Code keeps notes of its own too (auto memory, in projects/<project>/memory). They stay apart "
                "from these memories, and the same fact may be in both. It was left on; "
                '`"autoMemoryEnabled": false` in its settings.json switches it off.'
            )
        return notes

    def _has_auto_memory(self, context: SetupContext) -> bool:
        if is_switched_on(context.environment, _NO_AUTO_MEMORY):
            return False
        user = configured_folder(context, CONFIG_FOLDER_VARIABLE, _FOLDER) / _SETTINGS
        project = context.project / _FOLDER
        # The first that says something is in force.
        for path in (project / "settings.local.json", project / _SETTINGS, user):
            said = json_setting(path, "autoMemoryEnabled")
            if isinstance(said, bool):
                return said
        return True


SETUP: Final = ClaudeCodeSetup()
"""What the entry point `memory_sidecar.client_setups` names."""


def _state_file(context: SetupContext) -> Path:
    """Return where the user's own servers are: beside the folder, or in it if a variable names it."""
    if context.environment.get(CONFIG_FOLDER_VARIABLE):
        return configured_folder(context, CONFIG_FOLDER_VARIABLE, _FOLDER) / _STATE
    return context.user_home / _STATE


def _settings_folder(context: SetupContext) -> Path:
    if context.scope is Scope.PROJECT:
        return context.project / _FOLDER
    return configured_folder(context, CONFIG_FOLDER_VARIABLE, _FOLDER)
