"""Exports all that is stored of an owner as JSON Lines, and imports such lines again; both stream."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sidecar.domain.exchange import DisputeRecord, ExportRecord, FileRecord, MemoryRecord, ReportRecord
from sidecar.domain.exchange_lines import HEADER, decode_record, encode_record
from sidecar.domain.memory import MAX_CONTENT_BYTES, MAX_METADATA_BYTES
from sidecar.domain.text import normalise
from sidecar.errors import InvalidInputError
from sidecar.ports import MaintenanceStore, Redactor
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.clean_text import clean
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.embed_memories import EmbedMemories

PIECE_BYTES: Final = 48 * 1024
"""Below the smallest message that the settings allow."""

# JSON writes a character in up to six bytes.
MAX_LINE_BYTES: Final = 6 * (MAX_CONTENT_BYTES + MAX_METADATA_BYTES) + 16 * 1024
MAX_REFUSALS_TOLD: Final = 100
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class ExportPiece:
    """Some bytes of the file, and how many of its lines are out by then, of how many."""

    data: bytes
    done: int
    total: int


@dataclass(slots=True)
class ImportReport:
    """What became of the lines. `refused` tells of the first of them which and why, for a person."""

    imported: int = 0
    unchanged: int = 0
    refused_count: int = 0
    refused: list[str] = field(default_factory=list)

    def refuse(self, number: int, reason: str) -> None:
        """Note that a line could not be taken; lines are counted from 1."""
        self.refused_count += 1
        if len(self.refused) < MAX_REFUSALS_TOLD:
            self.refused.append(f"line {number}: {reason}")


class Export:
    """Exports."""

    def __init__(self, *, maintenance: MaintenanceStore) -> None:
        self._maintenance = maintenance

    async def run(self, owner: str, *, is_including_forgotten: bool) -> AsyncIterator[ExportPiece]:
        """Yield the file in pieces; the header line counts as one of its lines."""
        yield ExportPiece(f"{HEADER}\n".encode(), 1, 1)
        pages = self._maintenance.export_records(owner, is_including_forgotten=is_including_forgotten)
        async for page in pages:
            data = await asyncio.to_thread(_encode, page.records)
            for start in range(0, len(data), PIECE_BYTES):
                is_last = start + PIECE_BYTES >= len(data)
                done = page.done if is_last else page.done - len(page.records)
                yield ExportPiece(data[start : start + PIECE_BYTES], done + 1, page.total + 1)


class Import:
    """Imports. What is not ours to trust is redacted once more; what was exported here comes back as it was."""

    def __init__(
        self,
        *,
        maintenance: MaintenanceStore,
        catalog: MemoryCatalog,
        embedding: EmbedMemories,
        redactor: Redactor,
        completion: Completion,
    ) -> None:
        self._maintenance = maintenance
        self._catalog = catalog
        self._embedding = embedding
        self._redactor = redactor
        self._completion = completion

    async def run(self, owner: str, pieces: AsyncIterator[bytes]) -> ImportReport:
        """Take a file in pieces, cut anywhere; what was taken stays, also if the rest never comes.

        Raises:
            StorageError: If the disk refuses; the lines before are stored.
            RedactionUnavailableError: If secrets cannot be looked for.
        """
        report, lines = ImportReport(), _Lines()
        try:
            async for piece in pieces:
                lines.add(piece)
                while len(batch := lines.take(_BATCH, is_all=False)) == _BATCH:
                    await self._take(owner, batch, report)
            while batch := lines.take(_BATCH, is_all=True):
                await self._take(owner, batch, report)
        finally:
            await self._completion.run(self._finish(owner))
        return report

    async def _take(self, owner: str, batch: Sequence[tuple[int, bytes | None]], report: ImportReport) -> None:
        numbers, records = await asyncio.to_thread(self._decode, batch, report)
        if records:
            await self._completion.run(self._store(owner, numbers, records, report))

    async def _store(
        self, owner: str, numbers: Sequence[int], records: Sequence[ExportRecord], report: ImportReport
    ) -> None:
        outcome = await self._maintenance.import_records(owner, records)
        self._catalog.apply(outcome.changed)
        report.imported += outcome.imported
        report.unchanged += outcome.unchanged
        for place, reason in outcome.refused:
            report.refuse(numbers[place], reason)

    async def _finish(self, owner: str) -> None:
        self._catalog.apply(await self._maintenance.finish_import(owner))
        self._embedding.wake()

    def _decode(
        self, batch: Sequence[tuple[int, bytes | None]], report: ImportReport
    ) -> tuple[list[int], list[ExportRecord]]:
        numbers: list[int] = []
        records: list[ExportRecord] = []
        for number, line in batch:
            if line is None:
                report.refuse(number, f"it is over {MAX_LINE_BYTES} bytes long")
                continue
            try:
                record = decode_record(line)
            except InvalidInputError as error:
                report.refuse(number, error.message)
                continue
            if record is not None:
                numbers.append(number)
                records.append(self._clean(record))
        return numbers, records

    def _clean(self, record: ExportRecord) -> ExportRecord:
        match record:
            case MemoryRecord():
                cleaned = clean(self._redactor, record.content, record.metadata)
                return replace(record, content=cleaned.content, metadata=cleaned.metadata)
            case ReportRecord():
                return replace(record, context=self._text(record.context), error=self._text(record.error))
            case DisputeRecord():
                return replace(record, reason=self._text(record.reason), evidence=self._text(record.evidence))
            case FileRecord():
                return replace(record, metadata=clean(self._redactor, "", record.metadata).metadata)
            case _:
                return record

    def _text(self, text: str) -> str:
        return self._redactor.redact(normalise(text)).text if text else ""


class _Lines:
    """Puts pieces together to lines, numbered from 1; of one that is too long only that is kept."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._waiting: list[tuple[int, bytes | None]] = []
        self._number = 0
        self._is_too_long = False

    def add(self, piece: bytes) -> None:
        """Take the next piece of the file."""
        *whole, rest = piece.split(b"\n")
        for part in whole:
            self._append(part)
            self._end_line()
        self._append(rest)

    def take(self, count: int, *, is_all: bool) -> list[tuple[int, bytes | None]]:
        """Return the next lines, at most so many; with `is_all` also fewer, and the last without its end."""
        if is_all and (self._rest or self._is_too_long):
            self._end_line()
        if len(self._waiting) < count and not is_all:
            return []
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def _append(self, part: bytes) -> None:
        if len(self._rest) + len(part) > MAX_LINE_BYTES:
            self._is_too_long = True
            self._rest.clear()
        elif not self._is_too_long:
            self._rest += part

    def _end_line(self) -> None:
        self._number += 1
        line = bytes(self._rest).strip()
        if self._is_too_long:
            self._waiting.append((self._number, None))
        elif line:
            self._waiting.append((self._number, line))
        self._rest.clear()
        self._is_too_long = False


def _encode(records: Sequence[ExportRecord]) -> bytes:
    return "".join(f"{encode_record(record)}\n" for record in records).encode()
