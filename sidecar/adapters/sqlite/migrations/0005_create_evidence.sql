-- The ledger: what each session thread was shown, and the redacted texts that wait for a judge.
CREATE TABLE evidence_sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    project TEXT NOT NULL,
    client_version TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    missing_ids INTEGER NOT NULL DEFAULT 0,
    dropped_slices INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, client, session, agent_id)
) STRICT;

CREATE INDEX evidence_sessions_last_seen ON evidence_sessions (owner, last_seen_at);

-- Digests of every event taken, of owner, client, kind and the event's id; kept for ever.
CREATE TABLE evidence_events (digest BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;

-- `id` counts in the order in which calls, or their answers, were first reported.
CREATE TABLE evidence_calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    call_id TEXT NOT NULL,
    thread INTEGER NOT NULL REFERENCES evidence_sessions (id),
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    memory_ids TEXT NOT NULL,
    is_answered INTEGER NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (owner, client, call_id)
) STRICT;

CREATE INDEX evidence_calls_thread ON evidence_calls (thread, kind);

CREATE TABLE shown (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    thread INTEGER NOT NULL REFERENCES evidence_sessions (id),
    memory_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    slice_seq INTEGER NOT NULL,
    UNIQUE (thread, memory_id, call_id)
) STRICT;

CREATE INDEX shown_memory ON shown (owner, memory_id);

CREATE TABLE slices (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    thread INTEGER NOT NULL REFERENCES evidence_sessions (id),
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX slices_thread ON slices (thread, size_bytes);

-- One for each session and memory, however often it was shown and to which of the session's agents.
CREATE TABLE judge_jobs (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    thread INTEGER NOT NULL REFERENCES evidence_sessions (id),
    first_slice_seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (owner, client, session, memory_id)
) STRICT;

CREATE INDEX judge_jobs_thread ON judge_jobs (thread);
CREATE INDEX judge_jobs_memory ON judge_jobs (owner, memory_id);

CREATE TABLE cursors (
    owner TEXT NOT NULL,
    client TEXT NOT NULL,
    path TEXT NOT NULL,
    file_id TEXT NOT NULL,
    offset_bytes INTEGER NOT NULL,
    line_hash TEXT NOT NULL,
    generation INTEGER NOT NULL,
    parser_version INTEGER NOT NULL,
    lines_read INTEGER NOT NULL,
    skipped TEXT NOT NULL,
    PRIMARY KEY (owner, client, path)
) STRICT, WITHOUT ROWID;
