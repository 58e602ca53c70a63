"""The command `export`: writes everything that is stored as JSON Lines, piece by piece."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from sidecar.api.v1 import maintenance_service_pb2 as service
from sidecar.cli import rendering
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.errors import InvalidInputError, StorageError

STDIO = "-"
_MODE = 0o600


def export(
    context: typer.Context,
    *,
    file: Annotated[str, typer.Argument(help="File to write, or `-` for stdout.", metavar="FILE|-")],
    include_forgotten: Annotated[bool, typer.Option("--include-forgotten", help="Also what was forgotten.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all memories with all that is known of them as JSON Lines; `sidecar import` takes them in again."""
    call = Invocation.of(context, home, is_json=as_json)
    if file == STDIO and call.output.is_json:
        raise InvalidInputError("--json", "with `-`", "one of the two: the export itself goes to stdout")
    target = Path(file).expanduser().absolute()
    request = service.ExportMemoriesRequest(include_forgotten=include_forgotten)
    with call.sidecar() as sidecar, call.output.counting("Exporting …") as count:
        pieces = sidecar.export_memories(request)
        if file == STDIO:
            lines, size_bytes = _write(pieces, sys.stdout.buffer, count)
        else:
            with _private_file(target, may_replace=force) as stream:
                lines, size_bytes = _write(pieces, stream, count)
    if call.output.is_json:
        call.output.document({"file": str(target), "lines": lines, "size_bytes": size_bytes})
    elif file == STDIO:
        call.output.note(f"{lines} lines.")
    else:
        call.output.line(f"{lines} lines, {rendering.size(size_bytes)}, in {target}")
        call.output.line(f"use it: sidecar import {target}", indent=3)


def _write(
    pieces: Iterable[service.ExportMemoriesResponse], stream: BinaryIO, count: Callable[[int, int], None]
) -> tuple[int, int]:
    """Write the pieces and return how many lines and bytes they have."""
    done = total = size_bytes = 0
    for piece in pieces:
        stream.write(piece.lines)
        size_bytes += len(piece.lines)
        done, total = piece.done, piece.total
        count(done, total)
    stream.flush()
    if done != total:
        raise StorageError(f"the export ended after {done} of {total} lines; run `sidecar doctor`, then export again")
    return done, size_bytes


@contextlib.contextmanager
def _private_file(target: Path, *, may_replace: bool) -> Iterator[BinaryIO]:
    """Give a stream that becomes the file, readable by its owner only, if the block ends well.

    Raises:
        InvalidInputError: It is there already and may not be replaced.
        StorageError: The disk refuses.
    """
    from sidecar.client.trusted_files import storage_error  # noqa: PLC0415 - gRPC comes with it

    if target.exists() and not may_replace:
        raise InvalidInputError("FILE", str(target), "a file that does not exist yet, or `--force`")
    # Under another name first: a file that was cut short must not pass for an export.
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    except OSError as error:
        raise storage_error(target, error) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
