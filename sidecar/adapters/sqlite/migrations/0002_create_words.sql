-- Word search: `words` finds candidates, `memory_words` scores them. Both can be rebuilt from the memories.
-- Terms are made by sidecar.domain.words; to the ascii tokenizer every character beyond ASCII is a letter, so that with
-- the underscore it splits at nothing but our spaces, whatever Unicode version it knows.
CREATE VIRTUAL TABLE words USING fts5 (
    terms, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '_'"
);

-- Purged words leave the index at once, rather than when segments are merged.
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE words_vocabulary USING fts5vocab (words, row);

-- `terms`: one little-endian 64-bit number for each different term, its hash above and its count in the low 16 bits.
-- Owned through the memory.
CREATE TABLE memory_words (
    key INTEGER PRIMARY KEY REFERENCES memories (key) ON DELETE CASCADE,
    length INTEGER NOT NULL,
    terms BLOB NOT NULL
) STRICT;
