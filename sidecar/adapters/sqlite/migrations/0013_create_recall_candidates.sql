-- Candidates of recalls, so that other constants can be tried on them. `candidates`: a JSON array of
-- [memory id, relevance, factors, is exact], best first. Ids and figures, never text.
CREATE TABLE recall_candidates (
    recall_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    at INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    is_unreinforced INTEGER NOT NULL,
    candidates TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX recall_candidates_at ON recall_candidates (owner, at);
