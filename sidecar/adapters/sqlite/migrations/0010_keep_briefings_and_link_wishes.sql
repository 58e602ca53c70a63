-- Briefings are deliveries of a channel of their own: `channel` is `recall` or `briefing`, `context_kind` what a briefing
-- was for. Their usage events are `briefed` where those of recalls are `surfaced`.
ALTER TABLE recalls ADD COLUMN channel TEXT NOT NULL DEFAULT 'recall';
ALTER TABLE recalls ADD COLUMN context_kind TEXT NOT NULL DEFAULT '';

CREATE INDEX recalls_briefings ON recalls (owner, client, session) WHERE channel = 'briefing';

-- Which recall a request with this key counts as, so that a retry counts once.
CREATE TABLE recall_requests (
    owner TEXT NOT NULL,
    request_key TEXT NOT NULL,
    digest TEXT NOT NULL,
    recall_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, request_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX recall_requests_created ON recall_requests (created_at);

-- How memories are to be related by themselves once they are embedded; a row goes when that is done. Apart from the jobs to
-- embed them, which end before, and which another model begins anew.
CREATE TABLE link_wishes (
    key INTEGER PRIMARY KEY REFERENCES memories (key) ON DELETE CASCADE,
    max_links INTEGER NOT NULL,
    threshold REAL NOT NULL,
    is_refined INTEGER NOT NULL
) STRICT;
