-- What files sessions touched: paths and times, never what is in them. `metadata` is JSON; `uid` as in reports.
CREATE TABLE file_activity (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    project TEXT NOT NULL,
    path TEXT NOT NULL,
    action TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    metadata TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX file_activity_at ON file_activity (owner, at);
CREATE INDEX file_activity_metadata ON file_activity (owner) WHERE metadata <> '{}';

-- As in reports: what quotes a purged memory goes.
CREATE TRIGGER memories_purged_from_activity AFTER DELETE ON memories BEGIN
    UPDATE file_activity SET metadata = '{}'
        WHERE owner = old.owner AND metadata <> '{}'
            AND instr(metadata, substr(json_quote(old.content), 2, length(json_quote(old.content)) - 2)) > 0;
END;
