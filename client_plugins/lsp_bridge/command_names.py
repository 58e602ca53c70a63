"""What `workspace/executeCommand` takes, and which requests there are besides."""

from typing import Final

COMMAND_PREFIX: Final = "sidecar."
REQUEST_PREFIX: Final = "sidecar/"

# One that an editor shows to a person by itself; the others are for plugins, which show their answers themselves.
COMMANDS: Final = (
    *("remember", "recall", "forget", "context", "challenge", "validate", "status", "insights"),
    "memoriesForFile",
)

REMEMBER: Final = f"{COMMAND_PREFIX}remember"
RECALL: Final = f"{COMMAND_PREFIX}recall"
MEMORIES_FOR_FILE: Final = f"{COMMAND_PREFIX}memoriesForFile"
