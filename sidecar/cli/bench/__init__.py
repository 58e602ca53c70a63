"""`sidecar bench`: how fast it is, against floors measured in the same run."""
