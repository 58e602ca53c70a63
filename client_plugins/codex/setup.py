"""Connects Codex: our MCP server in its config.toml, our hooks in its hooks.json. Seen with 0.171.0."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from client_plugins.kit.client_setup import (
    SERVER_NAME,
    SERVER_VALUES,
    FileEdit,
    McpServer,
    Scope,
    SetupContext,
    is_our_server,
    parse_server,
)
from client_plugins.kit.config_edit.editors import JsonEditor, TomlEditor
from client_plugins.kit.config_edit.toml_text import toml_value
from client_plugins.kit.setup_parts import (
    PLUGIN,
    PLUGIN_NOTE,
    SERVER_WHAT,
    configured_folder,
    grouped_hooks,
    is_on_path,
    toml_setting,
)

HOME_VARIABLE: Final = "CODEX_HOME"
_FOLDER: Final = ".codex"
_CONFIG: Final = "config.toml"
_TABLE: Final = ("mcp_servers", SERVER_NAME)
# Older versions wait 10 s, which a busy machine may need for the interpreter alone.
_STARTUP_TIMEOUT_S: Final = 30
_COMMENT: Final = (
    "Written by `sidecar connect codex`; `sidecar disconnect codex` takes it out again.\n"
    "Add `required = true` to make Codex wait for it before the first turn; Codex then ends if it cannot be started."
)


class CodexSetup:
    """See `ClientSetup`."""

    name = "codex"
    title = "Codex"

    def is_present(self, context: SetupContext) -> bool:
        """See `ClientSetup.is_present`."""
        return configured_folder(context, HOME_VARIABLE, _FOLDER).exists() or is_on_path("codex", context)

    def edits(self, context: SetupContext) -> Sequence[FileEdit]:
        """See `ClientSetup.edits`."""
        folder = _config_folder(context)
        is_user = context.scope is Scope.USER
        servers = FileEdit(
            path=folder / _CONFIG,
            what="the MCP server",
            editor=TomlEditor(
                path=_TABLE,
                table=context.server.as_values() | {"startup_timeout_sec": _STARTUP_TIMEOUT_S},
                owned=SERVER_VALUES,
                is_ours=is_our_server,
                what=SERVER_WHAT,
                comment=_COMMENT,
            ),
            is_private=is_user,
            find_server=_find_server,
        )
        hooks = FileEdit(
            path=folder / "hooks.json",
            what="the hooks",
            editor=JsonEditor([grouped_hooks(self.name, context)]),
            is_private=is_user,
        )
        return [servers, hooks] if context.has_hooks else [servers]

    def notes(self, context: SetupContext) -> Sequence[str]:
        """See `ClientSetup.notes`."""
        notes = ["Sessions that are open already see it after a restart of Codex."]
        if context.has_hooks:
            notes.append("Codex runs hooks only once you trust them: it asks at its next start, or use `/hooks` in it.")
        if context.scope is Scope.PROJECT:
            notes.append("Codex reads a project's .codex folder only if the project is trusted.")
        user_config = configured_folder(context, HOME_VARIABLE, _FOLDER) / _CONFIG
        if toml_setting(user_config, "plugins", PLUGIN, "enabled") is True:
            notes.append(PLUGIN_NOTE)
        if toml_setting(user_config, "features", "memories") is True:
            notes.append(
                "Codex keeps memories of its own too (`[features] memories = true`). They stay apart from these, and "
                "the same fact may be in both. The feature was left on."
            )
        return notes


SETUP: Final = CodexSetup()
"""What the entry point `memory_sidecar.client_setups` names."""


def _config_folder(context: SetupContext) -> Path:
    if context.scope is Scope.PROJECT:
        return context.project / _FOLDER
    return configured_folder(context, HOME_VARIABLE, _FOLDER)


def _find_server(text: str) -> McpServer | None:
    return parse_server(toml_value(text, _TABLE))
