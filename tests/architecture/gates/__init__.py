"""What `make` runs beside the tests: the list of checks, generated code, and torch's installation. No tests."""
