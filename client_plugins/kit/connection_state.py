"""Tells whether and how a client is connected, from its files alone. Writes nothing, starts nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from client_plugins.kit.client_setup import FileEdit, McpServer
from client_plugins.kit.config_edit.files import ConfigFile
from client_plugins.kit.connecting import planned_change, text_without
from sidecar.errors import ClientConfigOccupiedError, SidecarError


class EntryState(StrEnum):
    """How what is ours stands in one file."""

    ABSENT = "absent"
    CONNECTED = "connected"
    DIFFERENT = "different"
    """There, but not as it would be written now: of an older version, another installation or another data folder."""
    OCCUPIED = "occupied"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class FileState:
    """How one file of a client is.

    Attributes:
        edit: What it is about.
        state: How ours stands in it.
        server: The server that is configured in it under our name, whosever it is.
        problem: Why the file cannot be read or changed; empty if it can.
    """

    edit: FileEdit
    state: EntryState
    server: McpServer | None = None
    problem: str = ""


def inspect_files(edits: Iterable[FileEdit]) -> list[FileState]:
    """Return how ours stands in each file."""
    return [_inspect(edit) for edit in edits]


def _inspect(edit: FileEdit) -> FileState:
    try:
        file = ConfigFile.read(edit.path)
        if file.text is None:
            return FileState(edit, EntryState.ABSENT)
        has_ours = text_without(edit, file, ()) != file.text
        server = edit.find_server(file.text) if edit.find_server is not None else None
        if not has_ours and server is None and edit.find_server is not None:
            return FileState(edit, EntryState.ABSENT)
        is_same = not planned_change(edit).is_needed
    except ClientConfigOccupiedError as error:
        return FileState(edit, EntryState.OCCUPIED, problem=error.message)
    except SidecarError as error:
        return FileState(edit, EntryState.UNREADABLE, problem=error.message)
    if is_same:
        return FileState(edit, EntryState.CONNECTED, server)
    return FileState(edit, EntryState.DIFFERENT if has_ours else EntryState.ABSENT, server)
