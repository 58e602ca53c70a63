"""A memory for coding agents that knows which memories helped: store, recall, evidence, ranking."""

__version__ = "0.1.0"
