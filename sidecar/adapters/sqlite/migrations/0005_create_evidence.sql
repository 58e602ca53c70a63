-- The ledger: what each session thread was shown, and the redacted texts that wait for a judge. Triggers keep
-- `slice_bytes`, of all slices a thread holds, and `gathered_bytes`, of those since a memory was shown in it last.
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
    has_shown INTEGER NOT NULL DEFAULT 0,
    slice_bytes INTEGER NOT NULL DEFAULT 0,
    gathered_bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, client, session, agent_id)
) STRICT;

CREATE INDEX evidence_sessions_last_seen ON evidence_sessions (owner, last_seen_at);
CREATE INDEX evidence_sessions_with_slices ON evidence_sessions (last_seen_at) WHERE slice_bytes > 0;

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
CREATE INDEX evidence_calls_unseen ON evidence_calls (owner) WHERE kind = 'unseen';

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

-- `awaited_call`: id of the call that the text answers, while that was not read yet.
CREATE TABLE slices (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    thread INTEGER NOT NULL REFERENCES evidence_sessions (id),
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    at INTEGER NOT NULL,
    is_context INTEGER NOT NULL,
    awaited_call TEXT NOT NULL
) STRICT;

CREATE INDEX slices_thread ON slices (thread, is_context);
CREATE INDEX slices_awaiting ON slices (owner, awaited_call) WHERE awaited_call <> '';

-- Bytes of all slices of an owner.
CREATE TABLE slice_totals (
    owner TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER slices_added AFTER INSERT ON slices BEGIN
    UPDATE evidence_sessions SET slice_bytes = slice_bytes + new.size_bytes,
        gathered_bytes = gathered_bytes + iif(new.awaited_call = '', new.size_bytes, 0) WHERE id = new.thread;
    INSERT INTO slice_totals VALUES (new.owner, new.size_bytes)
        ON CONFLICT DO UPDATE SET size_bytes = size_bytes + excluded.size_bytes;
END;

CREATE TRIGGER slices_deleted AFTER DELETE ON slices BEGIN
    UPDATE evidence_sessions SET slice_bytes = slice_bytes - old.size_bytes WHERE id = old.thread;
    UPDATE slice_totals SET size_bytes = size_bytes - old.size_bytes WHERE owner = old.owner;
END;

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
