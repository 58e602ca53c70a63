-- What the language model cost each day (UTC), what running calls have set aside included. Figures only.
CREATE TABLE llm_spending (
    day TEXT NOT NULL PRIMARY KEY,
    calls INTEGER NOT NULL CHECK (calls >= 0),
    tokens INTEGER NOT NULL CHECK (tokens >= 0)
) STRICT, WITHOUT ROWID;
