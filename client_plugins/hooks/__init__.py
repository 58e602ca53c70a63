"""Hooks: what a client runs at certain moments of a session. See `run` for the program and docs/clients/hooks.md.

They are a package of their own, apart from the readers of the same clients: a hook must be over before its user notices
it, so nothing here is imported at start but the standard library.
"""
