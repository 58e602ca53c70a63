"""Rows of what files sessions touched: paths and times, never what is in them."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

import apsw

from sidecar.adapters.sqlite.connection import fetch_all
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.values import from_us, to_us
from sidecar.domain.file_activity import MAX_RECENT_DAYS, FileAction, FileEvent, RecentFile, RecentFilesQuery


def add_file_activity(
    transaction: Transaction,
    owner: str,
    event: FileEvent,
    *,
    uid: str,
    client: str,
    metadata: Mapping[str, object],
) -> int:
    """See `ActivityStore.add_file_activity`."""
    connection = transaction.connection
    connection.execute(
        "DELETE FROM file_activity WHERE owner = ? AND at < ?",
        (owner, to_us(event.at - timedelta(days=MAX_RECENT_DAYS))),
    )
    connection.execute(
        "INSERT INTO file_activity (uid, owner, project, path, action, client, session, metadata, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            uid,
            owner,
            event.project,
            event.path,
            event.action,
            client,
            event.session,
            json.dumps(dict(metadata), ensure_ascii=False, separators=(",", ":")),
            to_us(event.at),
        ),
    )
    return connection.last_insert_rowid()


def recent_files(
    connection: apsw.Connection, owner: str, query: RecentFilesQuery, *, now: datetime
) -> tuple[RecentFile, ...]:
    """See `ActivityStore.recent_files`."""
    rows = fetch_all(
        connection,
        "SELECT path, action, at, touched FROM ("
        "SELECT path, action, at, count(*) OVER (PARTITION BY path) AS touched, "
        "row_number() OVER (PARTITION BY path ORDER BY at DESC, id DESC) AS place "
        "FROM file_activity WHERE owner = ?1 AND at >= ?2 AND (?3 = '' OR project = ?3)) "
        "WHERE place = 1 ORDER BY at DESC, path LIMIT ?4",
        (owner, to_us(now - timedelta(days=query.days)), query.project, query.limit),
    )
    return tuple(RecentFile(path, FileAction(action), from_us(at), count) for path, action, at, count in rows)
