"""Connects clients and disconnects them: changes their configuration files all together or not at all.

What goes into which file is said by a `ClientSetup`; this plans the changes, shows them, makes them and undoes them.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from client_plugins.kit.client_setup import FileEdit
from client_plugins.kit.config_edit.editors import Edited, InvalidEntryError, OccupiedError
from client_plugins.kit.config_edit.files import ConfigFile, remove_empty_folders
from client_plugins.kit.config_edit.journal import Connection, FileRecord, Journal, digest
from client_plugins.kit.config_edit.json_spans import JsonSyntaxError
from client_plugins.kit.config_edit.json_text import UneditableError
from client_plugins.kit.config_edit.toml_text import TomlSyntaxError
from sidecar.errors import (
    ClientConfigChangedError,
    ClientConfigMalformedError,
    ClientConfigOccupiedError,
    ClientConfigUneditableError,
    SidecarError,
)

_TRIES: Final = 3
_Text = TypeVar("_Text")


@dataclass(frozen=True)
class Change:
    """What one file is and what it becomes.

    Attributes:
        edit: What it is about.
        file: As it was read.
        after: What it becomes; None for no file.
        created: See `Edited.created`.
        is_restored: Whether it becomes again, byte for byte, what it was before it was connected.
        is_link_kept: Whether links in its place stay although it goes; see `ConfigFile.remove`.
    """

    edit: FileEdit
    file: ConfigFile
    after: bytes | None
    created: tuple[tuple[str, ...], ...] = ()
    is_restored: bool = False
    is_link_kept: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether the file would become another."""
        return self.after != self.file.content

    def diff(self) -> str:
        """Return the change as a unified diff; empty if there is none."""
        before, after = (_lines(content) for content in (self.file.content, self.after))
        names = ("/dev/null" if self.file.content is None else str(self.file.path)), str(self.file.path)
        return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


class Connector:
    """Makes and undoes connections, remembering them in a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def plan(self, edits: Iterable[FileEdit]) -> list[Change]:
        """Return what connecting changes in each file; nothing is written.

        Raises:
            ClientConfigError: A file cannot be changed, and why.
            StorageError: A file cannot be read.
        """
        return [planned_change(edit) for edit in edits]

    def connect(self, connection: Connection, edits: Sequence[FileEdit]) -> list[Change]:
        """Change the files of a client, all or none, and return the changes.

        Raises:
            ClientConfigError: A file cannot be changed, and why.
            StorageError: The disk refuses.
            UntrustedPathError: The data folder is not ours alone.
        """
        return self._again_if_changed(lambda: self._connect(connection, edits))

    def plan_disconnect(self, connection: Connection, edits: Iterable[FileEdit]) -> list[Change]:
        """Return what disconnecting changes in each file; nothing is written. Raises as `plan` does."""
        remembered = self._journal.find(connection)
        return [self._planned_undo(edit, remembered.files.get(str(edit.path))) for edit in edits]

    def disconnect(self, connection: Connection, edits: Sequence[FileEdit]) -> list[Change]:
        """Take everything of ours out of the files of a client, and return the changes. Raises as `connect` does."""
        return self._again_if_changed(lambda: self._disconnect(connection, edits))

    def _connect(self, connection: Connection, edits: Sequence[FileEdit]) -> list[Change]:
        changes = self.plan(edits)
        remembered = self._journal.find(connection)
        files = dict(remembered.files)
        for change in changes:
            change.file.check_writable()
        done: list[Change] = []
        try:
            for change in changes:
                if not change.is_needed:
                    continue
                record = self._record(change, files.get(str(change.edit.path)))
                # Remembered first: what is remembered and was not done does no harm, the reverse might.
                files[str(change.edit.path)] = record
                self._journal.keep(replace(remembered, files=files))
                made = self._write(change)
                done.append(change)
                if made:
                    files[str(change.edit.path)] = replace(record, folders=(*record.folders, *map(str, made)))
                    self._journal.keep(replace(remembered, files=files))
        except SidecarError:
            for change in reversed(done):
                self._write(_reverse(change))
                remove_empty_folders([Path(folder) for folder in files[str(change.edit.path)].folders])
            self._journal.keep(remembered)
            raise
        return changes

    def _disconnect(self, connection: Connection, edits: Sequence[FileEdit]) -> list[Change]:
        changes = self.plan_disconnect(connection, edits)
        remembered = self._journal.find(connection)
        for change in changes:
            change.file.check_writable()
        needed = [change for change in changes if change.is_needed]
        for change in needed:
            self._journal.back_up(change.file)
        done: list[Change] = []
        try:
            # Files that go come last: to bring one back is more than to write it.
            for change in sorted(needed, key=lambda change: change.after is None):
                self._write(change)
                done.append(change)
        except SidecarError:
            for change in reversed(done):
                change.file.restore_links()
                self._write(_redone(change))
            raise
        # Only now: several files may lie in one of them.
        folders = {Path(folder) for record in remembered.files.values() for folder in record.folders}
        remove_empty_folders(sorted(folders, key=lambda folder: len(folder.parts)))
        self._journal.keep(replace(remembered, files={}))
        return changes

    def _record(self, change: Change, previous: FileRecord | None) -> FileRecord:
        assert change.after is not None
        after = digest(change.after)
        content = change.file.content
        if previous is not None and content is not None and digest(content) == previous.after:
            # Nobody else wrote it since, so that the first backup is still what it was before us.
            return replace(previous, after=after, created=tuple(dict.fromkeys((*previous.created, *change.created))))
        is_ours_in_it = content is not None and text_without(change.edit, change.file, ()) != change.file.text
        created = (*(previous.created if previous and is_ours_in_it else ()), *change.created)
        folders = previous.folders if previous else ()
        return FileRecord(
            self._journal.back_up(change.file),
            after,
            not is_ours_in_it,
            tuple(dict.fromkeys(created)),
            folders,
            # What we wrote before says no more of it than what is there now.
            was_link=previous.was_link if previous else bool(change.file.links),
        )

    def _planned_undo(self, edit: FileEdit, record: FileRecord | None) -> Change:
        file = ConfigFile.read(edit.path)
        was_link = record is not None and record.was_link
        if file.content is None:
            return Change(edit, file, None)
        if record is not None and record.is_exact and digest(file.content) == record.after:
            before = self._journal.backup_content(record.backup) if record.backup else None
            if before is not None or not record.backup:
                return Change(edit, file, before, is_restored=True, is_link_kept=was_link)
        left = text_without(edit, file, record.created if record else ())
        return Change(edit, file, None if left is None else file.encoded(left), is_link_kept=was_link)

    def _again_if_changed(self, attempt: Callable[[], list[Change]]) -> list[Change]:
        for _ in range(_TRIES - 1):
            try:
                return attempt()
            except ClientConfigChangedError:
                # A client wrote its own file in between; what it wrote is read and kept the next time.
                continue
        return attempt()

    def _write(self, change: Change) -> list[Path]:
        if change.after is None:
            change.file.remove(is_link_kept=change.is_link_kept)
            return []
        return change.file.replace(change.after, is_private=change.edit.is_private)


def planned_change(edit: FileEdit) -> Change:
    """Return what connecting changes in one file; nothing is written. Raises as `Connector.plan` does."""
    file = ConfigFile.read(edit.path)
    edited = _told(edit, lambda: edit.editor.put(file.text))
    assert isinstance(edited, Edited)
    # As bytes of the file, so that an unchanged text is the unchanged file.
    after = file.content if edited.text == file.text else file.encoded(edited.text)
    return Change(edit, file, after, edited.created)


def _reverse(change: Change) -> Change:
    """Return the undoing of a change that was just made, which keeps what its client wrote even since then."""
    file = ConfigFile.read(change.edit.path)
    if file.content == change.after or file.content is None:
        return Change(change.edit, file, change.file.content, is_link_kept=bool(change.file.links))
    left = text_without(change.edit, file, change.created)
    return Change(change.edit, file, None if left is None else file.encoded(left), is_link_kept=bool(change.file.links))


def _redone(change: Change) -> Change:
    """Return the undoing of a disconnection that was just made; what its client wrote since then is kept with ours."""
    file = ConfigFile.read(change.edit.path)
    if file.content != change.after:
        return planned_change(change.edit)
    # One that was deleted comes back with the mode and owner that it had.
    return Change(change.edit, replace(file, found=file.found or change.file.found), change.file.content)


def text_without(edit: FileEdit, file: ConfigFile, created: tuple[tuple[str, ...], ...]) -> str | None:
    """Return a file's text without ours, None if nothing is left of it. Raises as `Connector.plan` does."""
    text = file.text
    assert text is not None
    return _told(edit, lambda: edit.editor.take_out(text, created))


def _told(edit: FileEdit, change: Callable[[], _Text]) -> _Text:
    """Run a change of a text; what may go wrong comes out naming the file and what to do."""
    path = str(edit.path)
    try:
        return change()
    except (JsonSyntaxError, TomlSyntaxError) as error:
        raise ClientConfigMalformedError(path, error.problem, line=error.line, column=error.column) from error
    except InvalidEntryError as error:
        raise ClientConfigMalformedError(path, str(error)) from error
    except OccupiedError as error:
        raise ClientConfigOccupiedError(path, str(error)) from error
    except UneditableError as error:
        raise ClientConfigUneditableError(path, f"set up {edit.what}") from error


def _lines(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode("utf-8", errors="replace").splitlines()
