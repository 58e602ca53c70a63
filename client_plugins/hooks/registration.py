"""Which hooks are to be registered with each client, and with which command. For whoever writes clients' settings.

Writes nothing itself. Not imported by the hooks when they run.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from client_plugins import hooks

HOOK_TIMEOUT_S: Final = 5
"""What clients are told to wait. A hook ends by itself long before; see `client_plugins.hooks.run`."""


@dataclass(frozen=True, slots=True)
class HookRegistration:
    """One event that a client is to run our command at.

    Attributes:
        event: As the client names it.
        matcher: The client's own pattern for when it is run; empty for always, and then to be left out.
        answers: Whether the client reads what the hook prints.
    """

    event: str
    matcher: str = ""
    answers: bool = False


_SESSION_HOOKS: Final = (
    HookRegistration("Stop"),
    HookRegistration("SubagentStop"),
    HookRegistration("SessionEnd"),
)

REGISTRATIONS: Final[Mapping[str, tuple[HookRegistration, ...]]] = {
    "claude-code": (
        HookRegistration("SessionStart", "startup|clear", answers=True),
        HookRegistration("UserPromptSubmit", answers=True),
        HookRegistration("PostToolUse", "Edit|Write|MultiEdit|NotebookEdit"),
        *_SESSION_HOOKS,
    ),
    "codex": (
        HookRegistration("SessionStart", "startup|clear", answers=True),
        HookRegistration("UserPromptSubmit", answers=True),
        HookRegistration("PostToolUse", "apply_patch|Edit|Write"),
        *_SESSION_HOOKS,
    ),
    # As few as will do: one that a build does not know voids the whole file there.
    "cursor": (
        HookRegistration("sessionStart", answers=True),
        HookRegistration("postToolUse", "MCP:(recall|build_context|remember)"),
        HookRegistration("afterFileEdit"),
        HookRegistration("afterAgentResponse"),
        HookRegistration("stop"),
        HookRegistration("sessionEnd"),
    ),
}
"""By client, in the order in which they are best written."""


def hook_command(client: str, home: Path) -> tuple[str, ...]:
    """Return the program and arguments of a client's hooks, the same for every event; all paths absolute.

    `-I -S` leave out the user's environment and site-packages: both could break a hook, and the second costs 10 ms.

    Args:
        client: A key of `REGISTRATIONS`.
        home: The data folder, absolute.
    """
    program = Path(hooks.__file__).resolve().with_name("run.py")
    return (sys.executable, "-I", "-S", str(program), client, "--home", str(home))
