"""Codex: how it is connected."""
