"""The generated contract."""
