-- When evidence became known, that a client's own citation block may be evidence, and that a session may say that it ends.

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
