-- When evidence became known, that a client's own citation block may be evidence, that a session may say that it ends, and
-- verdicts in an order in which they can be exported.

-- When the sidecar learnt of the event as it stands; NULL for at once. Earlier than its last verdict no judge's event was.
ALTER TABLE usage_events ADD COLUMN known_at INTEGER;
UPDATE usage_events SET known_at = (
    SELECT v.judged_at FROM verdicts v WHERE v.owner = usage_events.owner AND v.client = usage_events.client
        AND v.session = usage_events.session AND v.memory_id = usage_events.memory_id
) WHERE source = 'judge';

-- Memories that a session cited: proof of use once it is known that they were shown in it.
CREATE TABLE citations (
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (owner, client, session, memory_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX citations_memory ON citations (owner, memory_id);

-- When the client said last that the thread's session ends, by its clock; 0 for never. What comes later goes on with it.
ALTER TABLE evidence_sessions ADD COLUMN ended_at INTEGER NOT NULL DEFAULT 0;

-- As before; a citation is proof, too.
DROP VIEW counted_uses;
CREATE VIEW counted_uses AS
    SELECT u.owner, u.memory_id, u.client, u.session, u.source, u.at, u.at / 86400000000 AS day
    FROM usage_events u
    WHERE u.valence = 'useful' AND NOT (u.source = 'judge' AND EXISTS (
        SELECT 1 FROM usage_events p
        WHERE p.owner = u.owner AND p.memory_id = u.memory_id AND p.client = u.client AND p.session = u.session
            AND p.session <> '' AND p.source IN ('in_band', 'citation', 'challenge')));

-- As before, with a number that grows, by which they are read page by page.
DROP VIEW judged_memories;
ALTER TABLE verdicts RENAME TO old_verdicts;
DROP INDEX verdicts_memory;
DROP INDEX verdicts_shown;

CREATE TABLE verdicts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    judge TEXT NOT NULL,
    used REAL NOT NULL CHECK (used BETWEEN 0 AND 1),
    relevant REAL NOT NULL CHECK (relevant BETWEEN 0 AND 1),
    misled REAL NOT NULL CHECK (misled BETWEEN 0 AND 1),
    shown_at INTEGER NOT NULL,
    judged_at INTEGER NOT NULL,
    UNIQUE (owner, client, session, memory_id)
) STRICT;

INSERT INTO verdicts (owner, client, session, memory_id, judge, used, relevant, misled, shown_at, judged_at)
    SELECT owner, client, session, memory_id, judge, used, relevant, misled, shown_at, judged_at FROM old_verdicts
    ORDER BY judged_at;
DROP TABLE old_verdicts;

CREATE INDEX verdicts_memory ON verdicts (owner, memory_id);
CREATE INDEX verdicts_shown ON verdicts (owner, shown_at);

CREATE VIEW judged_memories AS
    SELECT v.owner, v.memory_id, v.client, v.session, v.shown_at AS at, v.shown_at / 86400000000 AS day,
        EXISTS (SELECT 1 FROM usage_events u WHERE u.owner = v.owner AND u.memory_id = v.memory_id
            AND u.valence = 'relevant' AND u.source = 'judge' AND u.client = v.client AND u.session = v.session
        ) AS is_relevant
    FROM verdicts v;
