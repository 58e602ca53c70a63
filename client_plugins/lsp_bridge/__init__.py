"""Shows memories in editors over LSP (stdio), beside the real language servers. Stores, ranks and judges nothing."""
