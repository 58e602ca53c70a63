"""Edits the configuration files of clients: as little text as possible, verified, backed up, and undone exactly."""
