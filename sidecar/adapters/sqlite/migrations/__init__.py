"""The schema as numbered SQL files, each applied once, in order, in one transaction."""
