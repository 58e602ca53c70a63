-- Who does what nobody else may do meanwhile.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_events_misled ON usage_events (owner, at) WHERE valence = 'misled';
