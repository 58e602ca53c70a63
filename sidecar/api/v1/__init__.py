"""Version 1 of the contract: generated from proto/sidecar/api/v1 by `make proto`, never edited."""
