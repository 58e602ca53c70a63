"""Everything outside the sidecar: a gRPC client each. A plugin never opens the database."""
