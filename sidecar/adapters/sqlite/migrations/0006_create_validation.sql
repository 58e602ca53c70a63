-- Reports about memories, disputes and promotions. A `uid` is the same in every copy of a row, in which ids differ.

-- What a golden rule was before it was promoted, so that it can fall back; empty if it was not.
ALTER TABLE memories ADD COLUMN earlier_type TEXT NOT NULL DEFAULT '';

CREATE TABLE validation_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    key INTEGER NOT NULL REFERENCES memories (key) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    is_direct INTEGER NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    context TEXT NOT NULL,
    error TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX validation_events_key ON validation_events (key, kind, at);
CREATE INDEX validation_events_texts ON validation_events (owner) WHERE context <> '' OR error <> '';

-- `resolution` is empty while it is open, and `resolved_at` 0.
CREATE TABLE disputes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    key INTEGER NOT NULL REFERENCES memories (key) ON DELETE CASCADE,
    reason TEXT NOT NULL,
    evidence TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    resolution TEXT NOT NULL,
    successor_id TEXT NOT NULL,
    resolved_at INTEGER NOT NULL
) STRICT;

CREATE INDEX disputes_key ON disputes (key);
CREATE INDEX disputes_owner ON disputes (owner, at);
CREATE INDEX disputes_open ON disputes (key) WHERE resolution = '';

-- Delivered elsewhere as a standing rule. Owned through the memory.
CREATE TABLE standing_rules (
    key INTEGER PRIMARY KEY REFERENCES memories (key) ON DELETE CASCADE,
    promoted_at INTEGER NOT NULL
) STRICT;

CREATE INDEX edges_contradicting ON edges (owner) WHERE relation = 'contradicts';

-- A memory's own reports and disputes go with its row; what others quote of it goes too.
CREATE TRIGGER memories_purged_from_reports AFTER DELETE ON memories BEGIN
    UPDATE validation_events
        SET context = iif(instr(context, old.content) > 0, '', context),
            error = iif(instr(error, old.content) > 0, '', error)
        WHERE owner = old.owner AND (context <> '' OR error <> '')
            AND (instr(context, old.content) > 0 OR instr(error, old.content) > 0);
    UPDATE disputes
        SET reason = iif(instr(reason, old.content) > 0, '[removed]', reason),
            evidence = iif(instr(evidence, old.content) > 0, '', evidence)
        WHERE owner = old.owner AND (instr(reason, old.content) > 0 OR instr(evidence, old.content) > 0);
END;
