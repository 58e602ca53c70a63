"""Keeps out of the evidence what the sidecar itself had an agent do, such as judging: it would observe itself.

Processes of the sidecar work in its data folder and below, and so does an agent that one of them starts. No user's
project lies there. The hooks know such an agent by a variable; see `client_plugins.hooks.program`.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from client_plugins.kit.plugin import LineReading
from client_plugins.kit.project import ProjectFinder

OWN_SESSION: Final = "own_session"
"""Why nothing was taken from a line."""

# No project can have this name.
_OWN: Final = "/own"


def marking_own(project_of: ProjectFinder, data_folder: Path) -> ProjectFinder:
    """Return a finder that marks working directories in the data folder as ours."""
    folders = {str(data_folder), os.path.realpath(data_folder)}

    def find(cwd: str) -> str:
        # By its letters, as a client wrote it: the folder of a session that is over may be gone.
        is_own = any(cwd == folder or cwd.startswith(folder + os.sep) for folder in folders)
        return _OWN if is_own else project_of(cwd)

    return find


def without_own(reading: LineReading) -> LineReading:
    """Return the reading without events of our own sessions."""
    kept = tuple(event for event in reading.events if event.thread.project != _OWN)
    return reading if len(kept) == len(reading.events) else replace(reading, events=kept, skipped=OWN_SESSION)
