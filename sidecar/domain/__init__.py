"""Values and pure rules: no I/O, no clock, no third-party service."""
