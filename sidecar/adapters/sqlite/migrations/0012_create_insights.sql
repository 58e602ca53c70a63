-- What figures are made of, and who does what nobody else may do meanwhile.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- For what a window holds. Partial, so that no look-up of one memory's events, whose valence is bound, takes them.
CREATE INDEX usage_events_surfaced ON usage_events (owner, at) WHERE valence = 'surfaced';
CREATE INDEX usage_events_useful ON usage_events (owner, at) WHERE valence = 'useful';
CREATE INDEX usage_events_misled ON usage_events (owner, at) WHERE valence = 'misled';
CREATE INDEX usage_events_recall ON usage_events (recall_id) WHERE recall_id <> '';
CREATE INDEX recalls_session ON recalls (owner, client, session, at);
CREATE INDEX recalls_at ON recalls (owner, at);
CREATE INDEX shown_at ON shown (owner, at);
CREATE INDEX evidence_calls_at ON evidence_calls (owner, kind, at);

-- Recalls that agents asked for, briefings apart. Days are whole ones since 1970 UTC, here and below.
CREATE VIEW asked_recalls AS
    SELECT owner, client, session, recall_id, at, at / 86400000000 AS day, memory_count FROM recalls
    WHERE channel = 'recall';

-- Memories that those delivered.
CREATE VIEW deliveries AS
    SELECT u.owner, u.memory_id, u.recall_id, u.client, u.session, u.at, u.at / 86400000000 AS day
    FROM usage_events u JOIN asked_recalls r ON r.recall_id = u.recall_id AND r.owner = u.owner
    WHERE u.valence = 'surfaced';

-- Uses that count: a judge's opinion does not where its session has proof, for or against.
CREATE VIEW counted_uses AS
    SELECT u.owner, u.memory_id, u.client, u.session, u.source, u.at, u.at / 86400000000 AS day
    FROM usage_events u
    WHERE u.valence = 'useful' AND NOT (u.source = 'judge' AND EXISTS (
        SELECT 1 FROM usage_events p
        WHERE p.owner = u.owner AND p.memory_id = u.memory_id AND p.client = u.client AND p.session = u.session
            AND p.session <> '' AND p.source IN ('in_band', 'challenge')));

-- Verdicts with whether they found the memory relevant.
CREATE VIEW judged_memories AS
    SELECT v.owner, v.memory_id, v.client, v.session, v.shown_at AS at, v.shown_at / 86400000000 AS day,
        EXISTS (SELECT 1 FROM usage_events u WHERE u.owner = v.owner AND u.memory_id = v.memory_id
            AND u.valence = 'relevant' AND u.source = 'judge' AND u.client = v.client AND u.session = v.session
        ) AS is_relevant
    FROM verdicts v;

-- Recalls of which the session is known: by our own records, and where these do not name it by its transcript.
CREATE VIEW session_recalls AS
    SELECT owner, client, session, recall_id AS call, memory_id, at FROM deliveries WHERE session <> ''
    UNION ALL
    SELECT s.owner, e.client, e.session, s.call_id, s.memory_id, s.at
    FROM shown s JOIN evidence_sessions e ON e.id = s.thread
    JOIN evidence_calls c ON c.owner = s.owner AND c.client = e.client AND c.call_id = s.call_id
    WHERE c.tool <> 'build_context' AND NOT EXISTS (SELECT 1 FROM recalls r WHERE r.owner = s.owner
        AND r.client = e.client AND r.session = e.session AND r.channel = 'recall');
