"""Takes in what `sidecar export` wrote, piece by piece, or counts what it holds."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from sidecar.api.plain import plain
from sidecar.api.v1 import maintenance_service_pb2 as service
from sidecar.cli.exporting import STDIO
from sidecar.cli.invocation import Invocation
from sidecar.cli.output import Output
from sidecar.errors import InvalidInputError

_PIECE_BYTES: Final = 256 * 1024
# Longer than any record can be: what it takes to tell that a line is none.
_MAX_LINE_BYTES: Final = 4 * 1024 * 1024
_FIRST_BYTES: Final = 4096
_MARK: Final = b'{"record":'
_RECORD: Final = "record"
_HEADER: Final = "export"


def looks_like_export(path: Path) -> bool:
    """Tell whether a file begins like an export."""
    with _opened(str(path)) as stream:
        return stream.read(_FIRST_BYTES).replace(b" ", b"").startswith(_MARK)


def take_export(call: Invocation, file: str) -> bool:
    """Store what an export holds, tell what became of it, and return whether all of it was taken.

    Args:
        file: Its path, or `-` for stdin.
    """
    with _opened(file) as stream, call.sidecar() as sidecar, call.output.counting("Importing … bytes:") as count:
        answer = sidecar.import_memories(_pieces(stream, count))
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        call.output.line(f"{answer.imported} lines imported, {answer.unchanged} were there already")
        for refused in answer.refused:
            call.output.warn(f"Not taken: {refused}")
        if answer.refused_count > len(answer.refused):
            call.output.warn(f"{answer.refused_count} lines were not taken in all.")
    return not answer.refused_count


def show_contents(output: Output, file: str) -> bool:
    """Tell how many records of each kind an export holds, and return whether every line is one."""
    counts: Counter[str] = Counter()
    bad_lines: list[int] = []
    with _opened(file) as stream, output.counting("Counting … lines:") as count:
        for number, line in enumerate(_lines(stream), 1):
            count(number, 0)
            kind = _kind(line)
            if not kind:
                bad_lines.append(number)
            elif kind != _HEADER:
                counts[kind] += 1
    if output.is_json:
        output.document({"dry_run": True, "records": dict(sorted(counts.items())), "no_records": [*bad_lines[:100]]})
    else:
        output.table(("records", "kind"), [(str(counts[kind]), kind) for kind in sorted(counts)])
        if bad_lines:
            output.warn(f"{len(bad_lines)} lines are no records, the first is line {bad_lines[0]}.")
        output.note("Nothing was stored. What is there already would stay as it is.")
    return not bad_lines


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that are not blank; a line that is too long comes in several parts, none of which is a record."""
    while line := stream.readline(_MAX_LINE_BYTES):
        if line.strip():
            yield line


def _kind(line: bytes) -> str:
    """Return what kind of record a line is, empty for none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    kind = record.get(_RECORD) if isinstance(record, dict) else None
    return kind if isinstance(kind, str) else ""


def _pieces(stream: BinaryIO, count: Callable[[int, int], None]) -> Iterator[service.ImportMemoriesRequest]:
    size_bytes = 0
    while piece := stream.read(_PIECE_BYTES):
        yield service.ImportMemoriesRequest(lines=piece)
        size_bytes += len(piece)
        count(size_bytes, 0)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == STDIO:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).expanduser().open("rb")
    except OSError as error:
        raise InvalidInputError("FILE", file, f"a file that can be read ({error.strerror})") from error
    with stream:
        yield stream
