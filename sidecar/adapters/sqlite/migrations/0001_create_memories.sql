-- Memories and how they relate. Times are microseconds since 1970 UTC. A key is never given out twice: an index may
-- still hold that of a purged memory.
CREATE TABLE memories (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    namespace TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'superseded', 'forgotten')),
    previous_state TEXT NOT NULL CHECK (previous_state IN ('active', 'superseded')),
    importance REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    created_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    first_accessed_at INTEGER NOT NULL,
    access_count INTEGER NOT NULL,
    provenance TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    superseded_by TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    metadata TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX memories_active_content ON memories (owner, namespace, content_hash) WHERE state = 'active';

-- Covers every field that filtering and ranking ask for, so that neither reads a row.
CREATE INDEX memories_filter ON memories (key, owner, namespace, state, type, importance, created_at, provenance);
CREATE INDEX memories_created ON memories (owner, created_at, id);
CREATE INDEX memories_superseded_by ON memories (superseded_by) WHERE superseded_by <> '';

CREATE TABLE edges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    source_key INTEGER NOT NULL REFERENCES memories (key) ON DELETE CASCADE,
    target_key INTEGER NOT NULL REFERENCES memories (key) ON DELETE CASCADE,
    relation TEXT NOT NULL,
    weight REAL NOT NULL CHECK (weight BETWEEN 0 AND 1),
    origin TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (source_key, target_key, relation)
) STRICT;

CREATE INDEX edges_target ON edges (target_key);

-- What a request with this key led to, so that a retry changes nothing.
CREATE TABLE request_keys (
    owner TEXT NOT NULL,
    request_key TEXT NOT NULL,
    digest TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    is_deduplicated INTEGER NOT NULL,
    used_memory_ids TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, request_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_keys_created ON request_keys (created_at);
CREATE INDEX request_keys_memory ON request_keys (memory_id);

-- The same for forgetting. `skipped`: a JSON array of [id, reason] pairs; `purged_keys`: of numbers. Ids only.
CREATE TABLE forget_requests (
    owner TEXT NOT NULL,
    request_key TEXT NOT NULL,
    digest TEXT NOT NULL,
    forgotten_ids TEXT NOT NULL,
    skipped TEXT NOT NULL,
    purged_keys TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, request_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX forget_requests_created ON forget_requests (created_at);
