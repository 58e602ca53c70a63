"""Cursor: how it is connected."""
