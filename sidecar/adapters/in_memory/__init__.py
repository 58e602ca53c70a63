"""The light twin of the SQLite store: dicts, no files, the same contract."""
