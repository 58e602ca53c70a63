"""Reads what users already have into proposals of memories: a plan first, which stores nothing."""
