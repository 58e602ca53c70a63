"""How our own processes are started: with nothing of the caller's surroundings but what is listed here.

A client may run in a hostile folder with a hostile environment (PYTHONPATH, LD_PRELOAD, a `sidecar.py` beside it); what
it starts must behave as if it had been started from an empty one.
"""

import os
import site
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import sidecar

OWN_PROCESS: Final = "MEMORY_SIDECAR_CHILD"
"""Set in the sidecar and all that it starts; the hooks of an agent among it keep still. No setting, hence the name."""

_KEPT: Final = frozenset(
    {
        OWN_PROCESS,
        *("HOME", "USER", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "TERM"),
        *("XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"),
        # Where the clients' transcripts and a user's own models lie.
        *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HF_HOME", "SENTENCE_TRANSFORMERS_HOME"),
        # Windows starts no Python without these.
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA"),
        *("PROGRAMDATA", "TEMP", "TMP", "USERNAME", "NUMBER_OF_PROCESSORS"),
    }
)
_KEPT_PREFIXES: Final = ("SIDECAR_", "LC_")


def isolated_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the part of the environment that our processes get: no PYTHON*, no LD_*, no proxies."""
    variables = os.environ if environment is None else environment
    return {
        name: value
        for name, value in variables.items()
        if name.upper() in _KEPT or name.upper().startswith(_KEPT_PREFIXES)
    }


def isolated_python() -> tuple[str, ...]:
    """Return the command that runs this Python without the current folder and without PYTHON* variables."""
    package = Path(sidecar.__file__).resolve().parent
    user_site = site.getusersitepackages() if site.ENABLE_USER_SITE else None
    if user_site and package.is_relative_to(Path(user_site).resolve()):
        # `-I` leaves the user's own site-packages out, and this installation is there.
        return (sys.executable, "-E", "-P")
    return (sys.executable, "-I")
