"""Commands on copies of the whole database: backup, restore-backup."""

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sidecar.api.plain import plain
from sidecar.api.v1 import maintenance_service_pb2 as service
from sidecar.cli import rendering, values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.errors import InvalidInputError, StateConflictError, StorageError, UntrustedPathError

if TYPE_CHECKING:
    from sidecar.client import DataFolder


class SidecarRunningError(StateConflictError):
    """What is asked for needs the data folder for itself."""

    reason = "SIDECAR_RUNNING"

    def __init__(self, home: str) -> None:
        super().__init__(
            f"a sidecar runs for {home}, and its database cannot be replaced under it; run `sidecar stop` first, and "
            "close the agents that would start it again",
            home=home,
        )


def backup(
    context: typer.Context,
    *,
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist yet.", metavar="FILE")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a checked copy of the database while it is in use; only you can read it."""
    call = Invocation.of(context, home, is_json=as_json)
    # The sidecar works in another folder than this command.
    target = file.expanduser().absolute()
    with call.sidecar() as sidecar, call.output.waiting("Copying and checking …"):
        answer = sidecar.back_up(service.BackUpRequest(path=str(target)))
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    call.output.line(f"{answer.memory_count} memories, {rendering.size(answer.size_bytes)}, in {target}")
    call.output.line(f"use it: sidecar stop, then sidecar restore-backup {target}", indent=3)


def restore_backup(
    context: typer.Context,
    *,
    file: Annotated[Path, typer.Argument(help="What `sidecar backup` wrote.", metavar="FILE")],
    yes: values.YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a backup in the place of the database. The sidecar must be stopped; the present database is kept aside.

    It asks first; without a terminal only `--yes` goes on.
    """
    # The engine takes 0.1 s to import, and no other command needs it.
    from sidecar.adapters.sqlite.restoring import restore_backup as put_in_place  # noqa: PLC0415
    from sidecar.client import DataFolder  # noqa: PLC0415

    call = Invocation.of(context, home, is_json=as_json)
    source = file.expanduser().absolute()
    if _is_readable_by_others(source):
        call.output.warn(f"Others can read {source}, and with it every memory; run `chmod 600 {source}`.")
    folder = DataFolder.at(call.home)
    folder.prepare()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    aside = folder.database_path.with_name(f"{folder.database_path.name}.replaced-{stamp}")
    with _for_ourselves(folder):
        if not yes and not _consents(call, file, folder):
            return
        with call.output.waiting("Checking and copying …"):
            outcome = put_in_place(source, folder.database_path, aside=aside)
            _drop_index(folder.index_folder)
    if call.output.is_json:
        call.output.document(
            {
                "memory_count": outcome.memory_count,
                "schema": outcome.schema,
                "replaced_database": str(outcome.aside) if outcome.aside else None,
            }
        )
        return
    call.output.line(f"Restored: {outcome.memory_count} memories in {folder.home}")
    if outcome.aside:
        call.output.line(f"undo: sidecar restore-backup {outcome.aside}", indent=3)


def _consents(call: Invocation, file: Path, folder: "DataFolder") -> bool:
    if call.output.is_json or not call.output.can_ask:
        if call.output.is_json:
            call.output.document({"preview": True, "backup": str(file), "database": str(folder.database_path)})
        call.output.note(f"Nothing was changed. Add `--yes` to put {file} in the place of {folder.database_path}.")
        return False
    if typer.confirm(f"Put {file} in the place of {folder.database_path}?", err=True):
        return True
    call.output.note("Nothing was changed.")
    return False


def _is_readable_by_others(path: Path) -> bool:
    """Return whether others can read the file.

    Raises:
        UntrustedPathError: Others could have changed it: whoever did would decide what agents are told.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidInputError("FILE", str(path), f"a file that can be read ({error.strerror})") from error
    if sys.platform == "win32":
        return False
    if found.st_uid not in {os.geteuid(), 0} or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedPathError(str(path), "can be changed by other users")
    return bool(found.st_mode & (stat.S_IRGRP | stat.S_IROTH))


@contextlib.contextmanager
def _for_ourselves(folder: "DataFolder") -> Iterator[None]:
    """Keep every sidecar out for as long as the block takes."""
    from sidecar.client.folder_lock import try_lock  # noqa: PLC0415

    with try_lock(folder.lock_path) as is_ours:
        if not is_ours:
            raise SidecarRunningError(str(folder.home))
        yield


def _drop_index(folder: Path) -> None:
    """Remove the snapshot of another database's vectors; the next start makes the index anew."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(
            f"the memories are restored, but {folder} cannot be removed: {error.strerror}; remove it, then start"
        ) from error
