-- What the reader of a transcript carries from the lines before the cursor to those after it.
ALTER TABLE cursors ADD COLUMN reader_state TEXT NOT NULL DEFAULT '';
