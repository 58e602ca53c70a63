"""Rows of recorded candidates: figures that recalls were ranked by, kept so that other constants can be tried."""
# ruff: noqa: S608 - only place holders of our own are put into statements; values are bound

import json
from datetime import datetime
from typing import Final

import apsw

from sidecar.adapters.sqlite.connection import fetch_all, placeholders
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.values import to_us
from sidecar.domain.replay import RecordedCandidate
from sidecar.domain.store_values import RecallRecord

_DIGITS: Final = 6
_PRUNE: Final = (
    "DELETE FROM recall_candidates WHERE at < ?1 OR recall_id IN (SELECT recall_id FROM ("
    "SELECT recall_id, row_number() OVER (PARTITION BY owner ORDER BY at DESC, recall_id DESC) AS place "
    "FROM recall_candidates) WHERE place > ?2)"
)


def record(connection: apsw.Connection, recall: RecallRecord) -> None:
    """Keep a recall's candidates; memories purged meanwhile are left out."""
    keys = [candidate.key for candidate in recall.candidates]
    found = fetch_all(connection, f"SELECT key, id FROM memories WHERE key IN ({placeholders(len(keys))})", keys)
    ids = {row[0]: row[1] for row in found}
    rows = [
        [ids[each.key], round(each.relevance, _DIGITS), round(each.factors, _DIGITS), int(each.is_exact)]
        for each in recall.candidates
        if each.key in ids
    ]
    connection.execute(
        "INSERT OR IGNORE INTO recall_candidates VALUES (?, ?, ?, ?, ?, ?)",
        (
            recall.recall_id,
            recall.owner,
            to_us(recall.at),
            recall.found_count,
            int(recall.is_unreinforced),
            json.dumps(rows, separators=(",", ":")),
        ),
    )


def candidates_from(text: str) -> tuple[RecordedCandidate, ...]:
    """Return the candidates as they were kept."""
    return tuple(
        RecordedCandidate(str(memory_id), float(relevance), float(factors), bool(is_exact))
        for memory_id, relevance, factors, is_exact in json.loads(text)
    )


def prune(transaction: Transaction, *, before: datetime, most: int) -> int:
    """See `InsightsStore.prune_recorded_recalls`."""
    transaction.connection.execute(_PRUNE, (to_us(before), most))
    return transaction.connection.changes()
