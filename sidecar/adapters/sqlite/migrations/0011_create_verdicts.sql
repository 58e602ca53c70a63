-- What judges said, and how far each job has come. Ids and figures, never text.

-- When anything of the thread was read last, by our own clock: transcripts may be read long after they were written.
ALTER TABLE evidence_sessions ADD COLUMN read_at INTEGER NOT NULL DEFAULT 0;
UPDATE evidence_sessions SET read_at = last_seen_at;

-- `revision` is raised when something is said that a verdict should know of. `has_lost_text`: what was said before the
-- last verdict is no longer there.
ALTER TABLE judge_jobs ADD COLUMN state TEXT NOT NULL DEFAULT 'waiting';
ALTER TABLE judge_jobs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE judge_jobs ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE judge_jobs ADD COLUMN next_try_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE judge_jobs ADD COLUMN leased_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE judge_jobs ADD COLUMN has_lost_text INTEGER NOT NULL DEFAULT 0;
ALTER TABLE judge_jobs ADD COLUMN reason TEXT NOT NULL DEFAULT '';

CREATE INDEX judge_jobs_waiting ON judge_jobs (next_try_at) WHERE state = 'waiting';

CREATE TABLE verdicts (
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
    PRIMARY KEY (owner, client, session, memory_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX verdicts_memory ON verdicts (owner, memory_id);
CREATE INDEX verdicts_shown ON verdicts (owner, shown_at);
