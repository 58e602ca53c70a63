"""The requests of LSP itself, one module each. All only look: without a sidecar they answer empty, at once."""
