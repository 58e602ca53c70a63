"""Says for whom a call is made: client, session and project, as far as this process can know."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from client_plugins.kit.project import project_name
from sidecar.api.v1.memory_pb2 import CallContext

CLAUDE_CODE: Final = "claude-code"
CODEX: Final = "codex"
CURSOR: Final = "cursor"

_SESSION_VARIABLE: Final = "CLAUDE_CODE_SESSION_ID"
_PROJECT_VARIABLE: Final = "CLAUDE_PROJECT_DIR"
# What the clients call themselves in `initialize`, lower case, and what their transcript plugins are named.
_NAMES: Final = {"claude-code": CLAUDE_CODE, "codex-mcp-client": CODEX, "cursor-vscode": CURSOR}
_FAMILIES: Final = (("codex", CODEX), ("cursor", CURSOR), ("claude-code", CLAUDE_CODE))
_NOT_ALLOWED: Final = re.compile(r"[^a-z0-9._-]+")
_MAX_CHARACTERS: Final = 64
_MAX_SESSION_CHARACTERS: Final = 200


def describe_caller(told_name: str, environment: Mapping[str, str]) -> CallContext:
    """Return who calls.

    Args:
        told_name: The name that the client gave itself; empty if none.
        environment: Of this process.
    """
    session = environment.get(_SESSION_VARIABLE, "")[:_MAX_SESSION_CHARACTERS]
    client = client_name(told_name) or (CLAUDE_CODE if session else "")
    # Another agent that Claude Code started inherits the variable, and must not pass for its session.
    is_own_session = client == CLAUDE_CODE
    return CallContext(client=client, session=session if is_own_session else "", project=_project(environment))


def client_name(told_name: str) -> str:
    """Return the name by which the client's transcripts go, or its own in a tidy form."""
    name = _NOT_ALLOWED.sub("-", told_name.lower()).strip("-")[:_MAX_CHARACTERS]
    if name in _NAMES:
        return _NAMES[name]
    return next((known for prefix, known in _FAMILIES if name.startswith(prefix)), name)


def _project(environment: Mapping[str, str]) -> str:
    folder = environment.get(_PROJECT_VARIABLE, "")
    if not folder:
        try:
            folder = str(Path.cwd())
        except FileNotFoundError:
            # The folder that the client started us in was removed.
            return ""
    return project_name(folder)
