"""Looks at a data folder whose sidecar does not run: what its last start said, and whether the database is sound."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sidecar.cli.findings import Finding, Verdict
from sidecar.errors import StorageError

if TYPE_CHECKING:
    from sidecar.client import DataFolder

_SHOWN_CHARACTERS: Final = 300


def check_stopped(folder: "DataFolder") -> Iterator[Finding]:
    """Look at the database file and at the log of the last start; changes nothing."""
    yield from check_database(folder)
    last = last_words(folder)
    if last:
        yield Finding("last start", Verdict.DOUBTFUL, f"it said: {last}", f"the whole of it is {folder.start_log_path}")


def check_database(folder: "DataFolder") -> Iterator[Finding]:
    """Look at the database file itself."""
    # The engine need not be loaded to find a sidecar that is well.
    from sidecar.adapters.sqlite.inspection import find_damage  # noqa: PLC0415

    path = folder.database_path
    if not path.exists():
        yield Finding("database", Verdict.GOOD, "there is none yet; the first start makes it")
        return
    try:
        faults = find_damage(path)
    except StorageError as error:
        yield Finding("database", Verdict.BAD, error.message, f"see who may read {path}")
        return
    if faults:
        yield Finding("database", Verdict.BAD, f"{path} is damaged: {'; '.join(faults)}", rescue(folder))
    else:
        yield Finding("database", Verdict.GOOD, "sound")


def rescue(folder: "DataFolder") -> str:
    """Return what to do about a damaged database."""
    name = folder.database_path.name
    backups = sorted(folder.home.glob(f"{name}.before-*"), key=lambda path: path.stat().st_mtime)
    anew = "run `sidecar start`, which begins with an empty one"
    then = f"copy {backups[-1]} to {folder.database_path} and run `sidecar start`; or {anew}" if backups else anew
    return (
        f"1. Run `sidecar stop`, if one runs. 2. Move {name}, {name}-wal and {name}-shm out of {folder.home}, together,"
        f" and keep them. 3. Then {then}"
    )


def last_words(folder: "DataFolder") -> str:
    """Return the last line that the sidecar said when a client started it; empty if nothing."""
    try:
        lines = folder.start_log_path.read_text(errors="replace").strip().splitlines()
    except OSError:
        # No start was logged, or it may not be read, which the check of the folder tells of.
        return ""
    return lines[-1][:_SHOWN_CHARACTERS] if lines else ""
