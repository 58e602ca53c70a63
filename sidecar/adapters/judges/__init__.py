"""Judges of usefulness."""
