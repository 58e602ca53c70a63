"""Reads what a judge is asked: texts around the moment at which a session was shown a memory."""

from collections.abc import Sequence
from typing import Final

import apsw

from sidecar.adapters.sqlite import reading
from sidecar.adapters.sqlite.connection import Row, fetch_all
from sidecar.adapters.sqlite.values import from_us
from sidecar.domain.evidence import SliceKind
from sidecar.domain.judge_jobs import MAX_OTHERS, JobKey, case_age_days, within_case
from sidecar.domain.judgement import JudgeCase, TranscriptPiece
from sidecar.domain.memory import MemoryState

_FIRST_SHOWN: Final = (
    "SELECT s.thread, s.at, s.slice_seq FROM shown s JOIN evidence_sessions e ON e.id = s.thread "
    "WHERE e.owner = ? AND e.client = ? AND e.session = ? AND s.memory_id = ? ORDER BY s.at, s.slice_seq"
)
_OTHERS: Final = (
    "SELECT m.content FROM shown s JOIN evidence_sessions e ON e.id = s.thread "
    "JOIN memories m ON m.id = s.memory_id AND m.owner = s.owner "
    "WHERE e.owner = ? AND e.client = ? AND e.session = ? AND s.memory_id <> ? AND m.state <> 'forgotten' "
    "GROUP BY m.id ORDER BY min(s.at), m.id LIMIT ?"
)


def judge_case(connection: apsw.Connection, key: JobKey) -> JudgeCase | None:
    """See `JudgeStore.judge_case`."""
    memory = reading.find(connection, key.owner, key.memory_id)
    if memory is None or memory.state is MemoryState.FORGOTTEN:
        return None
    of_key = (key.owner, key.client, key.session, key.memory_id)
    showings = fetch_all(connection, _FIRST_SHOWN, of_key)
    # The first one of each thread; later ones add nothing that was not said before.
    first_in_thread: dict[int, Row] = {}
    for row in showings:
        first_in_thread.setdefault(row[0], row)
    before, after = _texts(connection, list(first_in_thread.values()))
    if not after:
        return None
    return JudgeCase(
        memory_id=memory.id,
        content=memory.content,
        memory_type=memory.type,
        age_days=case_age_days(memory.created_at, from_us(showings[0][1])),
        others=tuple(row[0] for row in fetch_all(connection, _OTHERS, (*of_key, MAX_OTHERS))),
        before=before,
        after=within_case(after),
    )


def _texts(
    connection: apsw.Connection, showings: Sequence[Row]
) -> tuple[tuple[TranscriptPiece, ...], tuple[TranscriptPiece, ...]]:
    """Return what was said in these threads before and after each was shown the memory, by time."""
    sides: tuple[list[Row], list[Row]] = ([], [])
    for thread, at, seq in showings:
        rows = fetch_all(
            connection,
            "SELECT at, seq, kind, text FROM slices WHERE thread = ? AND awaited_call = ''",
            (thread,),
        )
        for row in rows:
            sides[(row[0], row[1]) > (at, seq)].append(row)
    before, after = (
        tuple(TranscriptPiece(SliceKind(kind), text) for _, _, kind, text in sorted(side, key=lambda row: row[:2]))
        for side in sides
    )
    return before, after
