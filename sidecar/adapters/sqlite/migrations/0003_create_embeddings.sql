-- Vectors, one row for each memory and model, and the jobs that wait for one. Both are owned through the memory.
CREATE TABLE models (
    id INTEGER PRIMARY KEY,
    model_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    dim INTEGER NOT NULL,
    is_current INTEGER NOT NULL
) STRICT;

-- `vector`: windows x dim little-endian float16.
CREATE TABLE embeddings (
    model INTEGER NOT NULL REFERENCES models (id),
    key INTEGER NOT NULL REFERENCES memories (key) ON DELETE CASCADE,
    windows INTEGER NOT NULL CHECK (windows > 0),
    vector BLOB NOT NULL,
    PRIMARY KEY (model, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX embeddings_key ON embeddings (key);

CREATE TABLE embed_jobs (
    key INTEGER PRIMARY KEY REFERENCES memories (key) ON DELETE CASCADE,
    attempts INTEGER NOT NULL,
    next_try_at INTEGER NOT NULL,
    queued_at INTEGER NOT NULL,
    is_parked INTEGER NOT NULL,
    reason TEXT NOT NULL
) STRICT;
