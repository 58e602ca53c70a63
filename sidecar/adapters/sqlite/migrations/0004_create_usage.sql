-- Use of memories: ids, flags and weights, never text. Rows outlive the memories they name, but for multipliers.
CREATE TABLE recalls (
    recall_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    project TEXT NOT NULL,
    at INTEGER NOT NULL,
    memory_count INTEGER NOT NULL,
    is_degraded INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX recalls_project ON recalls (owner, client, project, at);

CREATE TABLE usage_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    credited_id TEXT NOT NULL,
    source TEXT NOT NULL,
    valence TEXT NOT NULL,
    weight REAL NOT NULL CHECK (weight BETWEEN 0 AND 1),
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    recall_id TEXT NOT NULL,
    is_weak INTEGER NOT NULL,
    occasion TEXT NOT NULL
) STRICT;

-- However often evidence is emitted, it counts once.
CREATE UNIQUE INDEX usage_events_once ON usage_events (owner, memory_id, occasion, valence, source);
CREATE INDEX usage_events_credited ON usage_events (credited_id, at);

-- Links that confirm use once their target is known to have been shown. `remember_id` stands for the call that made them.
CREATE TABLE claims (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    remember_id TEXT NOT NULL,
    source_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    relation TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    project TEXT NOT NULL,
    at INTEGER NOT NULL,
    standing TEXT NOT NULL,
    UNIQUE (owner, remember_id, target_id, relation)
) STRICT;

CREATE INDEX claims_source ON claims (owner, source_id);
CREATE INDEX claims_target ON claims (owner, target_id);

-- Owned through the memory.
CREATE TABLE multipliers (
    key INTEGER PRIMARY KEY REFERENCES memories (key) ON DELETE CASCADE,
    value REAL NOT NULL,
    useful REAL NOT NULL,
    misled REAL NOT NULL,
    computed_at INTEGER NOT NULL
) STRICT;
