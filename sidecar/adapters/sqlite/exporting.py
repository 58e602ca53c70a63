"""Reads everything that is stored of an owner as export records, page by page, each a short read of its own."""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import Row, fetch_all, fetch_one
from sidecar.adapters.sqlite.values import MEMORY_TYPES, PROVENANCES, from_us
from sidecar.domain.confidence import ValidationKind
from sidecar.domain.confirmation import Standing
from sidecar.domain.context import ContextKind
from sidecar.domain.disputes import Resolution
from sidecar.domain.edges import EdgeOrigin
from sidecar.domain.evidence import Channel, UsageSource, Valence
from sidecar.domain.exchange import (
    ClaimRecord,
    DeliveryRecord,
    DisputeRecord,
    EdgeRecord,
    ExportRecord,
    FileRecord,
    MemoryRecord,
    MultiplierRecord,
    ReportRecord,
    UseRecord,
    VerdictRecord,
)
from sidecar.domain.file_activity import FileAction
from sidecar.domain.memory import MemoryState, MemoryType, Relation

# See `MEMORY_TYPES`.
_RELATIONS: Final = {str(member): member for member in Relation}
_ORIGINS: Final = {str(member): member for member in EdgeOrigin}
_STATES: Final = {str(member): member for member in MemoryState}
_VALENCES: Final = {str(member): member for member in Valence}

Place = int | str
BEGINNING: Final = ""
"""Before the first row of any section."""


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of record.

    Attributes:
        table: Where the rows are, each once; `NOT INDEXED` holds the engine to the order of places: left to itself, it
            finds all rows of the owner by an index and sorts them, for each page anew.
        joins: What else `columns` and `is_kept` need; adds and removes no row.
        owner: The column that says whose a row is.
        place: What rows are ordered by: unique, and ascending as rows are added.
        columns: In the order in which `record` takes them.
        is_kept: The condition without which a row belongs to a forgotten memory.
    """

    table: str
    joins: str
    owner: str
    place: str
    columns: str
    record: Callable[[Row], ExportRecord]
    is_kept: str = "1"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is of a section, and the place of its last row; rows that are added later are left out."""

    section: Section
    count: int
    last: Place
    is_including_forgotten: bool

    @property
    def condition(self) -> str:
        """Which rows belong to it, the owner being the first argument."""
        is_kept = "1" if self.is_including_forgotten else self.section.is_kept
        return f"{self.section.owner} = ? AND {is_kept}"


def extents(connection: apsw.Connection, owner: str, *, is_including_forgotten: bool) -> list[Extent]:
    """Return the sections that have rows, in an order in which records can be imported, as they are at one moment."""
    found = []
    for section in SECTIONS:
        extent = Extent(section, 0, 0, is_including_forgotten)
        # Joined only to be counted, edges would take longer than to be read.
        joins = "" if is_including_forgotten else section.joins
        row = fetch_one(
            connection,
            f"SELECT count(*), max({section.place}) FROM {section.table} {joins} WHERE {extent.condition}",
            (owner,),
        )
        if row is not None and row[0]:
            found.append(Extent(section, row[0], row[1], is_including_forgotten))
    return found


def read_page(
    connection: apsw.Connection, owner: str, extent: Extent, *, after: Place, limit: int
) -> tuple[tuple[ExportRecord, ...], Place]:
    """Return the next records of a section, and the place of the last."""
    section = extent.section
    condition = f"{extent.condition} AND {section.place} <= ?"
    bound: list[Place] = [owner, extent.last]
    if after != BEGINNING:
        condition += f" AND {section.place} > ?"
        bound.append(after)
    rows = fetch_all(
        connection,
        f"SELECT {section.place}, {section.columns} FROM {section.table} {section.joins} WHERE {condition} "
        f"ORDER BY {section.place} LIMIT ?",
        [*bound, limit],
    )
    return tuple(section.record(row[1:]) for row in rows), rows[-1][0] if rows else extent.last


def _memory(row: Row) -> MemoryRecord:
    return MemoryRecord(
        id=row[0],
        namespace=row[1],
        type=MEMORY_TYPES[row[2]],
        state=_STATES[row[3]],
        previous_state=_STATES[row[4]],
        importance=row[5],
        confidence=row[6],
        created_at=from_us(row[7]),
        accessed_at=from_us(row[8]),
        first_accessed_at=from_us(row[9]),
        access_count=row[10],
        provenance=PROVENANCES[row[11]],
        client=row[12],
        session=row[13],
        successor_id=row[14],
        type_before=MemoryType(row[15]) if row[15] else None,
        promoted_at=_optional_time(row[16]),
        metadata=json.loads(row[17]),
        content=row[18],
    )


def _edge(row: Row) -> EdgeRecord:
    return EdgeRecord(row[0], row[1], _RELATIONS[row[2]], row[3], _ORIGINS[row[4]], from_us(row[5]))


def _report(row: Row) -> ReportRecord:
    uid, memory_id, kind, is_direct, client, session, context, error, at = row
    return ReportRecord(
        uid, memory_id, ValidationKind(kind), bool(is_direct), client, session, context, error, from_us(at)
    )


def _dispute(row: Row) -> DisputeRecord:
    is_open = not row[7]
    return DisputeRecord(
        uid=row[0],
        memory_id=row[1],
        reason=row[2],
        evidence=row[3],
        client=row[4],
        session=row[5],
        at=from_us(row[6]),
        resolution=None if is_open else Resolution(row[7]),
        successor_id=row[8],
        resolved_at=None if is_open else from_us(row[9]),
    )


def _delivery(row: Row) -> DeliveryRecord:
    recall_id, client, session, project, at, memory_count, is_degraded, channel, context_kind = row
    return DeliveryRecord(
        recall_id=recall_id,
        client=client,
        session=session,
        project=project,
        at=from_us(at),
        memory_count=memory_count,
        is_degraded=bool(is_degraded),
        channel=Channel(channel),
        context_kind=ContextKind(context_kind) if context_kind else None,
    )


def _use(row: Row) -> UseRecord:
    return UseRecord(
        memory_id=row[0],
        credited_id=row[1],
        source=UsageSource(row[2]) if row[2] else None,
        valence=_VALENCES[row[3]],
        weight=row[4],
        client=row[5],
        session=row[6],
        at=from_us(row[7]),
        recall_id=row[8],
        is_weak=bool(row[9]),
        occasion=row[10],
        known_at=_optional_time(row[11]),
    )


def _verdict(row: Row) -> VerdictRecord:
    memory_id, client, session, judge, used, relevant, misled, shown_at, judged_at = row
    return VerdictRecord(
        memory_id, client, session, judge, used, relevant, misled, from_us(shown_at), from_us(judged_at)
    )


def _claim(row: Row) -> ClaimRecord:
    remember_id, source_id, target_id, relation, client, session, project, at, standing = row
    return ClaimRecord(
        remember_id, source_id, target_id, Relation(relation), client, session, project, from_us(at), Standing(standing)
    )


def _multiplier(row: Row) -> MultiplierRecord:
    memory_id, value, useful, misled, computed_at = row
    return MultiplierRecord(memory_id, value, useful, misled, from_us(computed_at))


def _file(row: Row) -> FileRecord:
    uid, project, path, action, client, session, metadata, at = row
    return FileRecord(uid, project, path, FileAction(action), client, session, json.loads(metadata), from_us(at))


def _optional_time(value: int | None) -> datetime | None:
    return None if value is None else from_us(value)


_ALIVE: Final = "m.state <> 'forgotten'"

SECTIONS: Final = (
    Section(
        "memories m NOT INDEXED",
        "LEFT JOIN standing_rules r ON r.key = m.key",
        "m.owner",
        "m.key",
        "m.id, m.namespace, m.type, m.state, m.previous_state, m.importance, m.confidence, m.created_at, "
        "m.accessed_at, m.first_accessed_at, m.access_count, m.provenance, m.client, m.session, m.superseded_by, "
        "m.earlier_type, r.promoted_at, m.metadata, m.content",
        _memory,
        _ALIVE,
    ),
    Section(
        "edges e NOT INDEXED",
        "CROSS JOIN memories s ON s.key = e.source_key CROSS JOIN memories t ON t.key = e.target_key",
        "e.owner",
        "e.id",
        "s.id, t.id, e.relation, e.weight, e.origin, e.created_at",
        _edge,
        "s.state <> 'forgotten' AND t.state <> 'forgotten'",
    ),
    Section(
        "validation_events v NOT INDEXED",
        "CROSS JOIN memories m ON m.key = v.key",
        "v.owner",
        "v.id",
        "v.uid, m.id, v.kind, v.is_direct, v.client, v.session, v.context, v.error, v.at",
        _report,
        _ALIVE,
    ),
    Section(
        "disputes d NOT INDEXED",
        "CROSS JOIN memories m ON m.key = d.key",
        "d.owner",
        "d.id",
        "d.uid, m.id, d.reason, d.evidence, d.client, d.session, d.at, d.resolution, d.successor_id, d.resolved_at",
        _dispute,
        _ALIVE,
    ),
    Section(
        "recalls r NOT INDEXED",
        "",
        "r.owner",
        "r.recall_id",
        "r.recall_id, r.client, r.session, r.project, r.at, r.memory_count, r.is_degraded, r.channel, r.context_kind",
        _delivery,
    ),
    Section(
        "usage_events u NOT INDEXED",
        "",
        "u.owner",
        "u.id",
        "u.memory_id, u.credited_id, u.source, u.valence, u.weight, u.client, u.session, u.at, u.recall_id, "
        "u.is_weak, u.occasion, u.known_at",
        _use,
    ),
    Section(
        "verdicts v NOT INDEXED",
        "",
        "v.owner",
        "v.id",
        "v.memory_id, v.client, v.session, v.judge, v.used, v.relevant, v.misled, v.shown_at, v.judged_at",
        _verdict,
    ),
    Section(
        "claims c NOT INDEXED",
        "",
        "c.owner",
        "c.id",
        "c.remember_id, c.source_id, c.target_id, c.relation, c.client, c.session, c.project, c.at, c.standing",
        _claim,
    ),
    Section(
        "multipliers x NOT INDEXED CROSS JOIN memories m ON m.key = x.key",
        "",
        "m.owner",
        "x.key",
        "m.id, x.value, x.useful, x.misled, x.computed_at",
        _multiplier,
        _ALIVE,
    ),
    Section(
        "file_activity f NOT INDEXED",
        "",
        "f.owner",
        "f.id",
        "f.uid, f.project, f.path, f.action, f.client, f.session, f.metadata, f.at",
        _file,
    ),
)
